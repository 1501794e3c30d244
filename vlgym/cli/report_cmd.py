"""`vlgym report`: compute a run's report again from its records, write its files and print its table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..reports.text import explain_sight, list_rows
from ..reports.writing import PAGE, write_report
from ..terminal import print_rows
from .console import open_console, print_json
from .list_cmd import AsJson


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `vlgym eval` wrote.")],
    as_json: AsJson = False,
) -> None:
    """Compute the report of a finished or unfinished run from its records; write report.json, .md and .html beside
    them."""
    if as_json:
        print_json(write_report(folder))
    else:
        print_report(folder)


def print_report(folder: Path) -> None:
    """Write the report of a run and print its table."""
    found = write_report(folder)
    console = open_console()
    console.print(f"{found['policy']['name']}, split {found['split']}", style="bold")
    print_rows(console, *list_rows(found))
    for row in found["sight"]:
        console.print(f"{row['control']}: {explain_sight(row)}", soft_wrap=True)
    console.print(f"written: {folder / PAGE}", soft_wrap=True)
