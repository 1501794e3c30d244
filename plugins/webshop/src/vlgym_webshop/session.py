"""The rules of the shop: five kinds of page, what can be clicked on each, and where a search or a click leads.

A `Page` is a value: everything that the browser shows is a function of the goal and the page, so an episode can be
saved, restored and replayed without a browser. Addresses belong to `site.addresses`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .catalogue.records import Product, fold_text
from .search import PAGE

SEARCH, RESULTS, ITEM, DETAIL, DONE = "search", "results", "item", "detail", "done"
DETAILS = ("description", "features", "reviews")
BACK, PREVIOUS, NEXT, BUY = "back to search", "< prev", "next >", "buy now"
LONGEST_QUERY = 300
"""Characters of a query that are read; the rest is cut off."""

_ACTION = re.compile(r"\s*(search|click)\s*\[(.+)\]\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """Position of the shopper.

    Attributes:
        kind: `search`, `results`, `item`, `detail` or `done`.
        query: the last search, lower case.
        number: page of its results, from 1.
        asin: the product that is open; empty on search and results pages.
        options: chosen (name, value) pairs, in the order of the product's options.
        detail: which detail page is open.
    """

    kind: str = SEARCH
    query: str = ""
    number: int = 1
    asin: str = ""
    options: tuple[tuple[str, str], ...] = ()
    detail: str = ""


@dataclass(frozen=True)
class Rules:
    """Rules of what may be done on a page.

    Attributes:
        search: returns the article numbers that a query finds, best first.
        product: returns a product by article number; raises `KeyError` where there is none.
        search_anywhere: `True` accepts a search on every page, as the published text environment does; else only
            where the search bar is.
    """

    search: Callable[[str], list[str]]
    product: Callable[[str], Product]
    search_anywhere: bool = False

    def clickables(self, page: Page, *, options: bool = True) -> list[str]:
        """Return what `click[...]` accepts on a page, lower case, in the order of the page; without the values of
        options where `options` is false."""
        if page.kind == RESULTS:
            previous = [PREVIOUS] if page.number > 1 else []
            return [BACK, *previous, NEXT, *(asin.lower() for asin in self.results(page))]
        if page.kind == ITEM:
            product = self.product(page.asin)
            values = dict.fromkeys(value for values in product.options.values() for value in values)
            fixed = (BACK, PREVIOUS, *DETAILS, BUY)
            return [*fixed[:-1], *(value for value in values if options and value not in fixed), BUY]
        if page.kind == DETAIL:
            return [BACK, PREVIOUS]
        return []

    def accepts_search(self, page: Page) -> bool:
        """True if `search[...]` is accepted on a page."""
        return page.kind == SEARCH or (self.search_anywhere and page.kind != DONE)

    def results(self, page: Page) -> list[str]:
        """Return the article numbers on a page of results; there may be none."""
        return self.search(page.query)[(page.number - 1) * PAGE : page.number * PAGE]

    def after_search(self, query: str) -> Page:
        """Return the page that a search leads to; it forgets article and options."""
        return Page(RESULTS, query)

    def after_click(self, page: Page, name: str) -> Page:
        """Return the page that a click on one of `clickables` leads to. Buying leads to the done page."""
        if name == BACK:
            return Page()
        if name == PREVIOUS:
            if page.kind == DETAIL:
                return replace(page, kind=ITEM, detail="")
            if page.kind == ITEM:
                return Page(RESULTS, page.query, page.number)
            return replace(page, number=page.number - 1)
        if name == NEXT:
            return replace(page, number=page.number + 1)
        if page.kind == RESULTS:
            return replace(page, kind=ITEM, asin=name.upper(), options=())
        if name == BUY:
            return replace(page, kind=DONE)
        if name in DETAILS:
            return replace(page, kind=DETAIL, detail=name)
        return replace(page, options=self._choose(page, name))

    def _choose(self, page: Page, value: str) -> tuple[tuple[str, str], ...]:
        """Return the options with `value` chosen; under several names the last one has it, as on the published page."""
        product = self.product(page.asin)
        chosen = dict(page.options)
        chosen[[name for name, values in product.options.items() if value in values][-1]] = value
        return tuple((name, chosen[name]) for name in product.options if name in chosen)


def read_action(text: str) -> tuple[str, str] | None:
    """Return (`search` or `click`, argument in lower case, ASCII, with single blanks), or `None` for anything else."""
    match = _ACTION.fullmatch(text)
    if match is None:
        return None
    argument = fold_text(match.group(2)).lower()
    return (match.group(1).lower(), argument[:LONGEST_QUERY].strip()) if argument else None
