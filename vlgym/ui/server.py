"""uvicorn on an address of this machine."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import replace

import uvicorn

from ..errors import UserError
from .app import create_app
from .settings import Settings


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C.

    Args:
        settings: port 0 takes a free one.
        say: is given the address, when it answers.

    Raises:
        UserError: the address is not this machine's, or the port is taken.
    """
    listening = _listen(settings)
    port = listening.getsockname()[1]
    app = create_app(replace(settings, port=port))
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none")
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"http://{name}:{port}/" + (f"?token={settings.token}" if settings.token else ""))
    try:
        with listening:
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        if hasattr(app.state, "games"):
            app.state.games.close_all()


def _listen(settings: Settings) -> socket.socket:
    """Bind here, not in uvicorn: its own way to fail is an exit without advice."""
    host, port = settings.host, settings.port
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        family = socket.AF_INET
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(128)
    except OSError as error:
        found.close()
        raise UserError(
            f"--host {host} --port {port}: {error.strerror or error}. Another program may use that port: try another "
            "one, or --port 0 for any that is free. An address must be one of this machine's, for example 127.0.0.1."
        ) from None
    return found
