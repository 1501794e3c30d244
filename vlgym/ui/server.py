"""uvicorn on the loopback address of this machine."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import uvicorn

from ..errors import UserError
from .app import create_app

LOOPBACK = "127.0.0.1"


def serve(paths: Iterable[Path], out: Path, port: int, say: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C."""
    try:  # here, not in uvicorn: its own way to fail is an exit without advice
        listening = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise UserError(
            f"--port {port}: {error.strerror or error}. Try another one, or --port 0 for any free one."
        ) from None
    token = secrets.token_urlsafe(24)
    app = create_app(paths, out, token)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none")
    try:
        with listening:
            app.state.index.refresh()  # the first time takes longest
            say(f"http://{LOOPBACK}:{listening.getsockname()[1]}/?token={token}")
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        app.state.games.close_all()
