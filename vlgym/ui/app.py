"""The pages together, as one Starlette application."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from ..errors import UserError
from . import compare, gallery, play, watch
from .games import Games
from .guarding import Guard
from .index import Index
from .pages import STATIC, show_error


def create_app(paths: Iterable[Path], out: Path, token: str = "") -> Starlette:
    """Return the application; its `state` holds the index of records and the open games.

    Args:
        paths: records below these folders are shown; nothing else is.
        out: where games that a person plays are recorded.
        token: who asks must know it; empty lets everybody in, for tests.
    """
    app = Starlette(
        routes=[Mount("/static", StaticFiles(directory=STATIC)), *watch.ROUTES, *compare.ROUTES, *gallery.ROUTES,
                *play.ROUTES],
        middleware=[Middleware(Guard, token=token)],
        exception_handlers={404: show_error, 405: show_error, UserError: show_error, 500: show_error},
    )  # fmt: skip
    app.state.index, app.state.games = Index((*paths, out)), Games(out)
    return app
