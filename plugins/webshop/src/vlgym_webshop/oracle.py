"""The oracle: knows which product the instruction was written for, and finds its way there from any page."""

from __future__ import annotations

from collections.abc import Iterator

from .catalogue.records import Goal, Product
from .reward import count_options
from .search import PAGE
from .session import BACK, BUY, DETAIL, DONE, ITEM, NEXT, PREVIOUS, RESULTS, Page
from .shop import Shop
from .suggestion import suggest_search


def plan_action(shop: Shop, goal: Goal, page: Page) -> str | None:
    """Return the next action towards buying the goal's product with its options; `None` where no search finds it."""
    if page.kind == DONE:
        return None
    if page.kind == RESULTS:
        return _turn_pages(shop, goal, page)
    if page.kind == ITEM and page.asin == goal.asin:
        value = missing_option(shop.catalogue.product(page.asin), goal, page)
        return f"click[{value or BUY}]"
    if page.kind == DETAIL and page.asin == goal.asin:
        return f"click[{PREVIOUS}]"
    if page.kind in (ITEM, DETAIL):
        return f"click[{BACK}]"
    query = best_query(shop, goal)
    return None if query is None else f"search[{query}]"


def missing_option(product: Product, goal: Goal, page: Page) -> str | None:
    """Return an option value that the goal wants and the page has not chosen; `None` when all are met."""
    for wanted in goal.options:
        if count_options([value for _, value in page.options], [wanted]):
            continue
        offered = [value for values in product.options.values() for value in values]
        exact = [value for value in offered if value == wanted]
        alike = [value for value in offered if count_options([value], [wanted])]
        if exact or alike:
            return (exact or alike)[0]
    return None


def best_query(shop: Shop, goal: Goal) -> str | None:
    """Return the first search that lists the goal's product on page 1, else the one that lists it earliest: the
    instruction's telling words, the product's name, more of its text."""
    early: tuple[int, str] | None = None
    for query in _queries(shop, goal):
        found = shop.search(query)
        if goal.asin in found[:PAGE]:
            return query
        if goal.asin in found and (early is None or found.index(goal.asin) < early[0]):
            early = found.index(goal.asin), query
    return early[1] if early else None


def _queries(shop: Shop, goal: Goal) -> Iterator[str]:
    product = shop.catalogue.product(goal.asin)
    yield suggest_search(goal.instruction)  # what a shopper could know; a learner can imitate it
    for text in (product.title, f"{product.title} {' '.join(product.bullets[:1])}", product.document()):
        words = "".join(letter if letter.isalnum() or letter in ".'" else " " for letter in text.lower()).split()
        query = " ".join(words)[:280]
        yield query.rpartition(" ")[0] if len(query) == 280 else query


def _turn_pages(shop: Shop, goal: Goal, page: Page) -> str:
    found = shop.search(page.query)
    if goal.asin not in found:
        return f"click[{BACK}]"
    wanted = found.index(goal.asin) // PAGE + 1
    if wanted == page.number:
        return f"click[{goal.asin.lower()}]"
    if abs(wanted - page.number) > 3 and page.query != best_query(shop, goal):
        return f"click[{BACK}]"
    return f"click[{NEXT if wanted > page.number else PREVIOUS}]"
