"""`vlgym leaderboard`: a static page from many result folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..reports.leaderboard import INDEX, build_site
from .console import open_console


def leaderboard(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Holds the results' folders, at any depth.")],
    out: Annotated[Path, typer.Option("--out", metavar="SITE", help="Folder of the board; a new one, or a board's.")],
) -> None:
    """Make a board of results, a static site. One that was not played as registry.yaml says is refused by name."""
    board = build_site(folder, out)
    errors = open_console(stderr=True)
    for row in board["refused"]:
        errors.print(f"refused: {row['result']}: {row['reason']}", soft_wrap=True)
    for row in board["pages_left_out"]:
        errors.print(f"page left out: {row['result']}: {row['reason']}", soft_wrap=True)
    count = len(board["results"])
    open_console().print(f"{count} result(s), {len(board['refused'])} refused; written: {out / INDEX}", soft_wrap=True)
