"""The oracle: knows which product the instruction was written for, and finds its way there from any page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .catalogue.records import Goal, Product
from .reward import count_options
from .search import PAGE
from .session import BACK, BUY, DETAIL, DONE, ITEM, NEXT, PREVIOUS, RESULTS, Page
from .shop import Shop

LONGEST = 12
"""Words that are kept."""

_PRICE = re.compile(
    r"(?:,? (?:and )?price lower than [\d.]+ dollars|,? (?:for less than|under|priced below|that costs no more than"
    r"|with a budget of|below|less than)"
    r" \$?[\d.]+(?: dollars)?)"
)
_WORD = re.compile(r"[a-z0-9][a-z0-9.'&-]*[a-z0-9]|[a-z0-9]")
_FILLER_WORDS = (
    "a about after also am an and another any anything are as asked at be been birthday borrowing brother broke "
    "brother's but buy by can cart could daughter do doctor else fancy find for found friend friend's from get "
    "give going good hello help i i'd i'm i've if in interested is it it's its just keeps let's like list look "
    "looking love make makes me mine miss mother moving my myself necessary need needs next not nothing of office "
    "old on one or order out pick place please present promised put really recommended replace roommate run says "
    "search see saw sell shopping should show sister so some something still than that the them then there they "
    "thinking this to told trip trying us want wants was we week weekend what where which while will winter wish "
    "with would year you your happy have having house has i'll"
)
_FILLERS = frozenset(_FILLER_WORDS.split())


def suggest_search(instruction: str) -> str:
    """Return up to 12 telling words of an instruction, lower case, in order; the whole instruction if none is left."""
    text = _PRICE.sub(" ", instruction.lower())
    words = [word for word in _WORD.findall(text) if word not in _FILLERS]
    return " ".join(words[:LONGEST]) or " ".join(text.split()[:LONGEST]) or "gift"


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
        hits = shop.search(query)
        if goal.asin in hits[:PAGE]:
            return query
        if goal.asin in hits and (early is None or hits.index(goal.asin) < early[0]):
            early = hits.index(goal.asin), query
    return early[1] if early else None


def _queries(shop: Shop, goal: Goal) -> Iterator[str]:
    product = shop.catalogue.product(goal.asin)
    yield suggest_search(goal.instruction)  # what a shopper could know; a learner can imitate it
    for text in (product.title, f"{product.title} {' '.join(product.bullets[:1])}", product.document()):
        words = "".join(letter if letter.isalnum() or letter in ".'" else " " for letter in text.lower()).split()
        query = " ".join(words)[:280]
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
