"""Gallery: every installed environment."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .pages import render


def routes() -> list[BaseRoute]:
    """Return the addresses of this page."""
    return [Route("/gallery", show_gallery)]


def show_gallery(request: Request) -> Response:
    """Answer with all environments."""
    return render(request, "gallery.html")
