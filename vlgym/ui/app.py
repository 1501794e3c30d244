"""The pages together, as one Starlette application."""

from __future__ import annotations

import importlib

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from ..errors import UserError
from .guarding import Guard
from .pages import STATIC, list_pages, show_error
from .settings import Settings


def create_app(settings: Settings) -> Starlette:
    """Return the application; `app.state.settings` holds its settings, and a page keeps in `app.state` what it needs.

    Args:
        settings: what may be shown, and to whom.
    """
    routes: list[BaseRoute] = [Mount("/static", StaticFiles(directory=STATIC))]
    for name in [*(name for name, _, _ in list_pages()), "compare"]:
        routes += importlib.import_module(f".{name}", __package__).routes()
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, settings=settings)],
        exception_handlers={404: show_error, 405: show_error, UserError: show_error, 500: show_error},
    )
    app.state.settings = settings
    return app
