"""Addresses of pages: from a `Page` to a path and back. Everything that a page shows stands in its address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from ..session import Page


def write_address(shop: str, goal: int, page: Page) -> str:
    """Return the path and query string of a page, beginning with `/`."""
    fields = {
        "q": page.query,
        "p": page.number if page.number > 1 else "",
        "asin": page.asin,
        "detail": page.detail,
        "o": json.dumps(page.options) if page.options else "",
    }
    query = urlencode({name: value for name, value in fields.items() if value})
    return f"/{quote(shop)}/{goal}/{page.kind}{'?' if query else ''}{query}"


def read_page(kind: str, parameters: Mapping[str, str]) -> Page:
    """Return the page of a kind and of its address's query parameters.

    Raises:
        ValueError, TypeError: a parameter is malformed.
    """
    query, number = " ".join(parameters.get("q", "").lower().split()), max(1, int(parameters.get("p", "1")))
    options = tuple((str(name), str(value)) for name, value in json.loads(parameters.get("o", "[]")))
    return Page(kind, query, number, parameters.get("asin", ""), options, parameters.get("detail", ""))
