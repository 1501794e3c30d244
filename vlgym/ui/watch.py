"""Watch: the list of recorded episodes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .pages import render


def routes() -> list[BaseRoute]:
    """Return the addresses of this page."""
    return [Route("/", show_list)]


def show_list(request: Request) -> Response:
    """Answer with the list."""
    return render(request, "list.html")
