"""Addresses of pages: from a `Page` to a path and back. Everything that a page shows stands in its address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from ..session import DETAIL, DETAILS, DONE, ITEM, RESULTS, SEARCH, Page


def write_address(shop: str, goal: int, page: Page) -> str:
    """Return the path and query string of a page, beginning with `/`."""
    base = f"/{quote(shop)}/{goal}"
    if page.kind == SEARCH:
        return f"{base}/"
    if page.kind == RESULTS:
        return f"{base}/results/{page.number}?{urlencode({'q': page.query})}"
    path = f"{base}/{DONE if page.kind == DONE else ITEM}/{quote(page.asin)}"
    if page.kind == DETAIL:
        path += f"/{page.detail}"
    chosen = {"o": json.dumps(page.options)} if page.options else {}
    return f"{path}?{urlencode({'q': page.query, 'p': page.number, **chosen})}"


def read_page(kind: str, parameters: Mapping[str, str], number: int = 1, asin: str = "", detail: str = "") -> Page:
    """Return the page of an address, from the parts of its path and its query parameters.

    Raises:
        ValueError: a parameter is malformed.
    """
    query = " ".join(parameters.get("q", "").lower().split())
    if kind == SEARCH:
        return Page()
    if kind == RESULTS:
        return Page(RESULTS, query, max(1, number))
    if detail and detail not in DETAILS:
        raise ValueError(f"no detail page {detail!r}")
    options = json.loads(parameters.get("o", "[]"))
    if not (isinstance(options, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in options)):
        raise ValueError("malformed options")
    chosen = tuple((str(name), str(value)) for name, value in options)
    return Page(kind, query, max(1, int(parameters.get("p", "1"))), asin, chosen, detail)
