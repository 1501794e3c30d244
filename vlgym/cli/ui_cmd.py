"""`vlgym ui`: the local web page; what it shows is made in `vlgym.ui`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError, check_number, check_writable
from ..registry.installing import import_extra
from .console import open_console

NEEDED = ("starlette", "uvicorn")
DEFAULT = Path("runs")


def ui(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="Folders of records, at any depth; default ./runs where it exists."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, help="Port; 0 takes a free one.")] = 8421,
    out: Annotated[Path, typer.Option(help="Folder for the games that you play.")] = Path("runs/human"),
) -> None:
    """Watch recorded episodes, look at the environments and play them, in a web browser."""
    check_number("--port", port, 0, 65535)
    check_writable("--out", out)
    folders = paths or ([DEFAULT] if DEFAULT.is_dir() else [])
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder. Name one that `vlgym eval` or a training run wrote.")
    for module in NEEDED:
        import_extra(module, "ui", "The web page")
    from ..ui.site import serve

    def say(address: str) -> None:
        open_console().print(f"{address}  (Ctrl-C ends it)", soft_wrap=True)

    serve([path.resolve() for path in folders], out, port, say)
