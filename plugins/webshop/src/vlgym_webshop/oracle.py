"""The oracle: knows the product of the instruction, and finds its way there from any page."""

import re
from collections.abc import Iterator

from .catalogue.generate import load_words
from .catalogue.records import Goal, Product
from .reward import count_options
from .search import PAGE
from .services import Shop
from .session import BACK, BUY, DETAIL, DONE, ITEM, NEXT, PREVIOUS, RESULTS, Page

LONGEST = 12  # words that are kept
_PRICE = re.compile(
    r"(?:,? (?:and )?price lower than [\d.]+ dollars|,? (?:for less than|under|priced below"
    r"|that costs no more than|with a budget of|below|less than) \$?[\d.]+(?: dollars)?)"
)
_WORD = re.compile(r"[a-z0-9][a-z0-9.'&-]*[a-z0-9]|[a-z0-9]")
_FILLERS = frozenset(load_words("fillers"))


def suggest_search(instruction: str) -> str:
    """Return up to 12 telling words of an instruction in lower case; if none is left, its first 12."""
    text = _PRICE.sub(" ", instruction.lower())
    words = [word for word in _WORD.findall(text) if word not in _FILLERS]
    return " ".join(words[:LONGEST]) or " ".join(text.split()[:LONGEST]) or "gift"


def plan_action(shop: Shop, goal: Goal, page: Page) -> str | None:
    """Return the next action towards the goal's product; `None` where no search finds it."""
    if page.kind == DONE:
        return None
    if page.kind == RESULTS:
        return _turn_pages(shop, goal, page)
    if page.kind in (ITEM, DETAIL) and page.asin != goal.asin:
        return f"click[{BACK}]"
    if page.kind == DETAIL:
        return f"click[{PREVIOUS}]"
    if page.kind == ITEM:
        value = missing_option(shop.catalogue.product(page.asin), goal, page)
        return f"click[{value or BUY}]"

    # On the search page, the words that a shopper could know come first.
    query = best_query(shop, goal)
    return None if query is None else f"search[{query}]"


def missing_option(product: Product, goal: Goal, page: Page) -> str | None:
    """Return an option value that the goal wants and the page lacks; `None` when all are met."""
    chosen = [value for _, value in page.options]
    offered = [value for values in product.options.values() for value in values]
    for wanted in goal.options:
        if not count_options(chosen, [wanted]):
            alike = (value for value in offered if count_options([value], [wanted]))
            value = wanted if wanted in offered else next(alike, None)
            if value is not None:
                return value
    return None


def best_query(shop: Shop, goal: Goal) -> str | None:
    """Return the first search that lists the goal's product on page 1, else the one with it earliest."""
    early: tuple[int, str] | None = None
    for query in _queries(shop, goal):
        hits = shop.search(query)
        if goal.asin in hits[:PAGE]:
            return query
        if goal.asin in hits and (early is None or hits.index(goal.asin) < early[0]):
            early = hits.index(goal.asin), query
    return early[1] if early else None


def _queries(shop: Shop, goal: Goal) -> Iterator[str]:
    product = shop.catalogue.product(goal.asin)
    yield suggest_search(goal.instruction)  # a shopper could know it; a learner can imitate it
    more = f"{product.title} {' '.join(product.bullets[:1])}"
    for text in (product.title, more, product.document()):
        letters = (c if c.isalnum() or c in ".'" else " " for c in text.lower())
        query = " ".join("".join(letters).split())[:280]
        yield query.rpartition(" ")[0] if len(query) == 280 else query


def _turn_pages(shop: Shop, goal: Goal, page: Page) -> str:
    hits = shop.search(page.query)
    if goal.asin not in hits:
        return f"click[{BACK}]"
    wanted = hits.index(goal.asin) // PAGE + 1
    if wanted == page.number:
        return f"click[{goal.asin.lower()}]"
    if abs(wanted - page.number) > 3 and page.query != best_query(shop, goal):
        return f"click[{BACK}]"
    return f"click[{NEXT if wanted > page.number else PREVIOUS}]"
