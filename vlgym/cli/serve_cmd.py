"""`vlgym serve`: environments for programs elsewhere; the servers are `vlgym.env_groups.tcp_server` and others."""

from __future__ import annotations

import os
import secrets
from typing import Annotated

import typer

from ..env_groups.tcp import TOKEN
from ..env_groups.tcp_server import WorkerServer
from ..errors import UserError, check_number
from .console import open_console

SHORTEST = 16
MOST_WORKERS = 9999


def serve(
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Serve N worker processes for --envs tcp://HOST:PORT.")
    ] = None,
    host: Annotated[str, typer.Option(help="Name or address of the interface.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8431,
    token: Annotated[
        str | None,
        typer.Option(help=f"What clients must know [default: the variable {TOKEN}, or one that is drawn and printed]."),
    ] = None,
) -> None:
    """Serve environments to programs on this machine or others."""
    check_number("--port", port, 0, 65535)
    if workers is None:
        raise UserError("Give --workers N.")
    check_number("--workers", workers, 1, MOST_WORKERS)
    known, drawn = _choose_token(token)
    server = WorkerServer(host, port, workers, known)
    console = open_console()
    if drawn:
        console.print(f"export {TOKEN}={known}", soft_wrap=True)
    console.print(f"--envs tcp://{host}:{server.port}  ({workers} workers; Ctrl-C ends it)", soft_wrap=True)
    try:
        server.serve()
    finally:
        server.close()


def _choose_token(given: str | None) -> tuple[str, bool]:
    """Return the token, and whether it was drawn here."""
    known = os.environ.get(TOKEN) if given is None else given
    if known is None:
        return secrets.token_urlsafe(24), True
    if len(known) < SHORTEST:
        raise UserError(f"--token: the token has fewer than {SHORTEST} characters.")
    return known, False
