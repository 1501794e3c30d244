"""The rules of the shop: five kinds of page, their clickable elements, and where these lead.

A `Page` is a value: the browser's picture is a function of the goal and the page, so an episode can be
saved, restored and replayed without a browser.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .catalogue.records import Product, fold_text
from .search import PAGE

SEARCH, RESULTS, ITEM, DETAIL, DONE = "search", "results", "item", "detail", "done"
DETAILS = ("description", "features", "reviews")
BACK, PREVIOUS, NEXT, BUY = "back to search", "< prev", "next >", "buy now"
LONGEST_QUERY = 300  # characters of a query that are read; the rest is cut off
_ACTION = re.compile(r"\s*(search|click)\s*\[(.+)\]\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """Position of the shopper; `options` are (name, value) pairs in the order of the product's options."""

    kind: str = SEARCH
    query: str = ""
    number: int = 1
    asin: str = ""
    options: tuple[tuple[str, str], ...] = ()
    detail: str = ""


@dataclass(frozen=True)
class Rules:
    """Legal actions on a page, and the page after each."""

    search: Callable[[str], list[str]]  # query -> the article numbers that it finds, best first
    product: Callable[[str], Product]  # by article number; a `KeyError` where there is none
    search_anywhere: bool = False  # on every page, as in the published text environment

    def clickables(self, page: Page, *, options: bool = True) -> list[str]:
        """Return the names that `click[...]` accepts, in lower case, in the order of the page."""
        if page.kind == RESULTS:
            previous = [PREVIOUS] if page.number > 1 else []
            return [BACK, *previous, NEXT, *(asin.lower() for asin in self.results(page))]
        if page.kind == ITEM:
            fixed = dict.fromkeys((BACK, PREVIOUS, *DETAILS))
            axes = self.product(page.asin).options.values() if options else ()
            values = {value: None for values in axes for value in values if value != BUY}
            return [*(fixed | values), BUY]
        if page.kind == DETAIL:
            return [BACK, PREVIOUS]
        return []

    def accepts_search(self, page: Page) -> bool:
        """True if `search[...]` is accepted on a page."""
        return page.kind == SEARCH or (self.search_anywhere and page.kind != DONE)

    def results(self, page: Page) -> list[str]:
        """Return the article numbers on a page of results; there may be none."""
        return self.search(page.query)[(page.number - 1) * PAGE : page.number * PAGE]

    def after_click(self, page: Page, name: str) -> Page:
        """Return the page that a click on one of `clickables` leads to."""
        if name == BACK:
            return Page()
        if name == PREVIOUS and page.kind == DETAIL:
            return replace(page, kind=ITEM, detail="")
        if name == PREVIOUS and page.kind == ITEM:
            return Page(RESULTS, page.query, page.number)
        if name in (PREVIOUS, NEXT):
            return replace(page, number=page.number + (1 if name == NEXT else -1))
        if page.kind == RESULTS:
            return replace(page, kind=ITEM, asin=name.upper(), options=())

        # The rest is clicked on a product's page.
        if name == BUY:
            return replace(page, kind=DONE)
        if name in DETAILS:
            return replace(page, kind=DETAIL, detail=name)
        return replace(page, options=self._choose(page, name))

    def _choose(self, page: Page, value: str) -> tuple[tuple[str, str], ...]:
        """Return the options with `value` chosen, under the last name that has it, as published."""
        options = self.product(page.asin).options
        chosen = dict(page.options)
        chosen[[name for name, values in options.items() if value in values][-1]] = value
        return tuple((name, chosen[name]) for name in options if name in chosen)


def read_action(text: str) -> tuple[str, str] | None:
    """Return `search` or `click` and the argument, lower-case ASCII; `None` for anything else."""
    match = _ACTION.fullmatch(text)
    argument = fold_text(match[2]).lower() if match else ""
    return (match[1].lower(), argument[:LONGEST_QUERY].strip()) if match and argument else None
