"""`vlgym serve`, environments for programs elsewhere, and `vlgym ui`, the local web page."""

import os
import secrets
from contextlib import closing
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..env_groups.tcp import TOKEN, WorkerServer, is_loopback, listen
from ..errors import UserError, check_number, check_writable
from ..registry import get_registry
from ..registry.installing import import_extra
from .console import open_console, split_names

SHORTEST = 16
MOST_SESSIONS = 9999
RUNS = Path("runs")
Port = Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")]


def serve(
    env: Annotated[str | None, Argument(metavar="[ID[,ID...]]",
        help="Environments for OpenEnv's clients, each at /ID.")] = None,
    workers: Annotated[int | None, Option(min=1, max=MOST_SESSIONS, metavar="N",
        help="Instead of ids: N workers, for --envs tcp://HOST:PORT.")] = None,
    host: Annotated[str, Option(help="Name or address of the interface.")] = "127.0.0.1",
    port: Port = 8431,
    sessions: Annotated[int, Option(min=1, max=MOST_SESSIONS,
        help="OpenEnv: most sessions at once.")] = 16,
    idle: Annotated[float, Option(
        help="OpenEnv: seconds after which an idle session is closed.")] = 1800.0,
) -> None:  # fmt: skip
    """Serve environments to programs on this machine or others.

    Clients must have the token in VLGYM_TOKEN; without one, except for ids on loopback, one is drawn and printed.
    OpenEnv's clients send it as `Authorization: Bearer TOKEN`; learners take it from VLGYM_TOKEN, too.
    """
    check_number("--idle", idle, 1, 1e7)
    if (env is None) == (workers is None):
        raise UserError("Give either ids (vlgym serve vlgym/NumberLine-v1) or --workers N.")
    known = os.environ.get(TOKEN)
    if known is not None and len(known) < SHORTEST:
        raise UserError(f"{TOKEN}: the token has fewer than {SHORTEST} characters.")
    drawn = known is None and (workers is not None or not is_loopback(host))
    if drawn:
        known = secrets.token_urlsafe(24)
    console = open_console()

    def say(lines: list[str]) -> None:
        for line in [f"export {TOKEN}={known}"] * drawn + lines:
            console.print(line, soft_wrap=True)

    if workers is not None:
        with closing(WorkerServer(host, port, workers, known or "")) as server:
            say([f"--envs tcp://{host}:{server.port}  ({workers} workers; Ctrl-C ends it)"])
            server.serve()
        return

    # OpenEnv's clients have an address for each environment.
    ids = split_names(env)
    if not ids:
        raise UserError("No environment is named; write vlgym serve vlgym/NumberLine-v1.")
    for env_id in ids:
        get_registry().get(env_id)
    import_extra("openenv", "openenv", "OpenEnv's protocol")
    from ..integrations import openenv

    listening = listen(host, port)
    address = f"http://{host}:{listening.getsockname()[1]}"
    lines = [f"{address}/{env_id}" for env_id in ids]
    lines[-1] += f"  ({sessions} sessions; Ctrl-C ends it)"
    openenv.serve_environments(ids, listening, lambda: say(lines), token=known, sessions=sessions, idle=idle)


def ui(
    paths: Annotated[list[Path] | None, Argument(metavar="[FOLDER]...",
        help="Folders of records, at any depth; default ./runs where it exists.")] = None,
    port: Port = 8421,
    out: Annotated[Path, Option(help="Folder for the games that you play.")] = Path("runs/human"),
) -> None:  # fmt: skip
    """Watch recorded episodes, look at the environments and play them, in a web browser."""
    check_writable("--out", out)
    folders = paths or ([RUNS] if RUNS.is_dir() else [])
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder. Name one that `vlgym eval` or a training run wrote.")
    for module in ("starlette", "uvicorn"):
        import_extra(module, "ui", "The web page")
    from ..ui import site

    def say(address: str) -> None:
        open_console().print(f"{address}  (Ctrl-C ends it)", soft_wrap=True)

    site.serve_page([path.resolve() for path in folders], out, port, say)
