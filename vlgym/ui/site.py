"""The pages together, as one Starlette application."""

import secrets
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from ..env_groups.tcp import listen
from ..errors import UserError
from . import play, runs, watch
from .games import PageGames
from .guarding import STATIC, PageGuard, show_error
from .index import Index

LOOPBACK = "127.0.0.1"


class Server(uvicorn.Server):
    """Ends games before it waits for the answers to be sent."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        cast(Starlette, self.config.app).state.games.close_all()
        await super().shutdown(sockets)


def serve_page(paths: Iterable[Path], out: Path, port: int, say: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C."""
    listening = listen(LOOPBACK, port)  # uvicorn would exit without advice
    token = secrets.token_urlsafe(24)
    app = create_app(paths, out, token)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip

    # The link is printed once the index is there, which takes longest the first time.
    try:
        with listening:
            app.state.index.refresh()
            say(f"http://{LOOPBACK}:{listening.getsockname()[1]}/?token={token}")
            Server(config).run(sockets=[listening])
    finally:
        app.state.games.close_all()  # what began while the server ended, too


def create_app(paths: Iterable[Path], out: Path, token: str) -> Starlette:
    """Return the application; its `state` holds the index of records and the open games.

    Records below `paths` and those of games, in `out`, are shown. A request needs the token.
    """
    if not token:
        raise ValueError("the token is empty, so every request has it")
    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=STATIC)), *runs.RUN_ROUTES, *watch.WATCH_ROUTES, *play.PLAY_ROUTES,
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"]),
                    Middleware(PageGuard, token=token)],
        exception_handlers={HTTPException: show_error, UserError: show_error, 500: show_error},
    )  # fmt: skip
    app.state.index, app.state.games = Index((*paths, out)), PageGames(out)
    return app
