"""`vlgym report` and `vlgym compare`: the numbers of a run from its records, and two runs or more, paired."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..reports.compare import compare_runs, write_play_command
from ..reports.results import write_table
from ..reports.text import explain_sight, list_rows
from ..reports.words import NONE, write_interval, write_number, write_p
from ..reports.writing import PAGE, write_report
from ..terminal import print_rows
from .console import open_console, print_json
from .list_cmd import AsJson


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a `vlgym eval` run.")],
    as_json: AsJson = False,
) -> None:
    """Compute the report of a finished or unfinished run from its records; write report.json, .md and .html there."""
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
        console.print(f"{row['control']}: {explain_sight(row)}")
    console.print(f"written: {folder / PAGE}")


if TYPE_CHECKING:
    from rich.console import Console

LISTED = 5  # episodes named of each kind; all of them stand in the JSON


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders of `vlgym eval` runs.")],
    as_json: AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page with one table of all runs instead; one not played as registry.yaml says is refused.",
        ),
    ] = None,
) -> None:
    """Compare runs on the episodes that they share: differences with intervals, McNemar's test, and who won which."""
    if html is not None:
        for line in write_table(folders, html):
            open_console(stderr=True).print(f"refused: {line}")
        open_console().print(f"written: {html}")
        return
    found = compare_runs(folders)
    if as_json:
        print_json(found)
        return
    console = open_console()
    for number, pair in enumerate(found["pairs"]):
        if number:
            console.print()
        _print_pair(console, pair)


def _print_pair(console: Console, pair: Mapping[str, Any]) -> None:
    console.print(f"{pair['first']} against {pair['second']}", style="bold")
    headers = ["part", "pairs", "success", "difference", "p (McNemar)", "difference of return"]
    rows = [_cells(key, part) for key, part in pair["parts"].items()]
    overall = pair["overall"]
    if overall["parts"]:
        place = overall.get("normalized")
        note = f"{write_interval(place, 'difference', signed=True)} normalized" if place else ""
        rows.append(["over all", "", *_success(overall), note])
    print_rows(console, headers, rows)
    for key, part in pair["parts"].items():
        for side, name in (("first", pair["first"]), ("second", pair["second"])):
            if part[f"only_{side}"]:
                console.print(f"{key}: {part[f'only_{side}']} episode(s) in {name} only")
        if part.get("repeated"):
            console.print(f"{key}: McNemar's test counts each repeat of a seed as a separate pair")
    for side, name in (("first", pair["first"]), ("second", pair["second"])):
        if others := pair["only_parts"][side]:
            console.print(f"in {name} only: {', '.join(others)}")
    for side, winner, loser in (("first", pair["first"], pair["second"]), ("second", pair["second"], pair["first"])):
        _print_won(console, pair, side, f"won by {winner} and lost by {loser}")


def _cells(key: str, part: Mapping[str, Any]) -> list[str]:
    if not part["pairs"]:
        return [key, "0", NONE, NONE, NONE, NONE]
    return [key, str(part["pairs"]), *_success(part), write_interval(part["return"], "difference", signed=True)]


def _success(row: Mapping[str, Any]) -> list[str]:
    success = row["success"]
    return [
        f"{write_number(success['first'])} and {write_number(success['second'])}",
        write_interval(success, "difference", signed=True),
        write_p(row["mcnemar_p"]),
    ]


def _print_won(console: Console, pair: Mapping[str, Any], side: str, title: str) -> None:
    episodes = [episode for part in pair["parts"].values() for episode in part.get(f"won_by_{side}", [])]
    if episodes:
        console.print(f"\n{len(episodes)} {title}:")
    for episode in episodes[:LISTED]:
        console.print(f"  {write_play_command(episode)}", soft_wrap=True)
    if len(episodes) > LISTED:
        console.print(f"  ... all {len(episodes)}: --json")
