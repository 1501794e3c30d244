"""Commands on recorded runs: `vlgym report`, `vlgym compare`, `vlgym verify` and `vlgym export`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import TrajectoryError, UserError, check_choice, check_writable
from ..files import list_folder, written_whole
from ..integrations.minari import DATA_SET, write_minari
from ..integrations.parquet import StoredEpisode, write_chats, write_turns
from ..play.trajectory import METADATA, read_trajectories
from ..reports import text
from ..reports.compare import compare_runs, write_play_command
from ..reports.verification import verify_run
from ..reports.writing import PAGE, write_report, write_table
from ..terminal import open_progress, print_rows
from .console import open_console

if TYPE_CHECKING:
    from rich.console import Console

WRITERS = {"hf": write_turns, "sft": write_chats, "minari": write_minari}
RECORDINGS = "episodes"  # of a training run: a folder for each recording, in the order of time
MOST_FOREIGN = 0.01  # share of replies that are not the model's, above which a comparison warns
LISTED_EPISODES = 5  # episodes named of each kind; all of them stand in the JSON


def report(folder: Annotated[Path, Argument(metavar="DIR", help="Folder of a `vlgym eval` run.")]) -> None:
    """Compute the report of a finished or unfinished run from its records; write report.json and .html there."""
    numbers = write_report(folder)
    console = open_console()
    console.print(f"{numbers['policy']['name']}, split {numbers['split']}", style="bold")
    print_rows(console, *text.list_brief(numbers))
    ended = [([key], part) for key, part in numbers["parts"].items() if part["episodes"]]
    print_rows(console, *text.list_readings(["part"], ended))
    for row in numbers["sight"]:
        console.print(f"{row['control']}: {text.explain_sight(row)}")
    if "foreign" in numbers:
        console.print(text.explain_foreign(numbers["foreign"]))
    console.print(f"written: {folder / PAGE}")


def compare(
    folders: Annotated[list[Path], Argument(metavar="DIR", help="Folders of `vlgym eval` runs.")],
    as_json: Annotated[bool, Option("--json", help="Write JSON on standard output.")] = False,
    html: Annotated[Path | None, Option(metavar="FILE",
        help="Write a page with one table of all runs instead.")] = None,
) -> None:  # fmt: skip
    """Compare runs on the episodes that they share: differences with intervals, McNemar's test, and who won which."""
    if html is not None:
        write_table(folders, html)
        open_console().print(f"written: {html}")
        return
    comparison = compare_runs(folders)
    if as_json:
        typer.echo(json.dumps(comparison, indent=2))
        return

    # Each pair of runs has its own table.
    console = open_console()
    for number, pair in enumerate(comparison["pairs"]):
        if number:
            console.print()
        _print_pair(console, pair)


def _print_pair(console: Console, pair: Mapping[str, Any]) -> None:
    console.print(f"{pair['first']} against {pair['second']}", style="bold")
    if sides := [side for side, done in pair["verified"].items() if done]:
        console.print(f"verified: {' and '.join(sides)}")
    for side, foreign in pair["foreign"].items():
        if sum(foreign["statuses"].values()) > MOST_FOREIGN * foreign["replies"]:
            console.print(f"warning: {pair[side]}: {text.explain_foreign(foreign)}", style="yellow")

    # One row for each part, then how replies were read.
    headers = ["part", "pairs", "success", "difference", "p (McNemar)", "difference of return"]
    rows = [_cells(key, part) for key, part in pair["parts"].items()]
    overall = pair["overall"]
    if overall["parts"]:
        place = overall.get("normalized")
        note = f"{text.write_interval(place, 'difference', signed=True)} normalized" if place else ""
        rows.append(["over all", "", *_success(overall), note])
    print_rows(console, headers, rows)
    sides = [(key, side, row) for key, part in pair["parts"].items() for side, row in part.get("replies", {}).items()]
    print_rows(console, *text.list_readings(["part", "run"], [([key, pair[side]], row) for key, side, row in sides]))

    # Notes: what a reader of the numbers has to know of them.
    for key in [key for key, part in pair["parts"].items() if part.get("repeated")]:
        console.print(f"{key}: McNemar's test counts each repeat of a seed as a separate pair")
    for side, other in (("first", "second"), ("second", "first")):
        for key, part in pair["parts"].items():
            if alone := part[f"only_{side}"]:
                console.print(f"{key}: {alone} episode(s) in {pair[side]} only")
        if others := pair["only_parts"][side]:
            console.print(f"in {pair[side]} only: {', '.join(others)}")
        wins = (part.get(f"won_by_{side}", []) for part in pair["parts"].values())
        won = [episode for episodes in wins for episode in episodes]
        if won:
            console.print(f"\n{len(won)} won by {pair[side]} and lost by {pair[other]}:")
        for episode in won[:LISTED_EPISODES]:
            console.print(f"  {write_play_command(episode)}", soft_wrap=True)
        if len(won) > LISTED_EPISODES:
            console.print(f"  ... all {len(won)}: --json")


def _cells(key: str, part: Mapping[str, Any]) -> list[str]:
    if not part["pairs"]:
        return [key, "0", text.NONE, text.NONE, text.NONE, text.NONE]
    difference = text.write_interval(part["return"], "difference", signed=True)
    return [key, str(part["pairs"]), *_success(part), difference]


def _success(row: Mapping[str, Any]) -> list[str]:
    success = row["success"]
    return [
        f"{text.write_number(success['first'])} and {text.write_number(success['second'])}",
        text.write_interval(success, "difference", signed=True), text.write_p(row["mcnemar_p"]),
    ]  # fmt: skip


def verify(folder: Annotated[Path, Argument(metavar="DIR", help="Folder of a `vlgym eval` run.")]) -> None:
    """Replay a run's seeds and replies in the installed environments; exit status 1 at the first turn that differs."""
    with open_progress(open_console(stderr=True)) as progress:
        task = progress.add_task("episodes", total=None)
        line = verify_run(folder, lambda: progress.advance(task))
    typer.echo(line)


def export(
    folder: Annotated[Path, Argument(metavar="DIR",
        help="Folder of a `vlgym eval` run, a training run, or other records.")],
    to: Annotated[str, Option(help="hf, sft or minari.")],
    out: Annotated[Path, Option(metavar="FOLDER", help="New folder for the data set.")],
    success: Annotated[bool, Option("--success", help="Only episodes that succeeded.")] = False,
) -> None:  # fmt: skip
    """Write recorded episodes as a data set: Parquet with pictures, chats to learn from, or Minari."""
    check_choice("--to", to, tuple(WRITERS))
    check_writable("--out", out)
    if out.exists() and (not out.is_dir() or list_folder(out)):
        raise UserError(f"--out {out} is not empty; name a new folder.")
    places = find_recordings(folder)
    count = 0
    with written_whole(out, without=None) as part:
        with open_progress(open_console(stderr=True)) as progress:
            task = progress.add_task("episodes", total=None)

            def episodes() -> Iterator[StoredEpisode]:
                nonlocal count
                for place in places:
                    for episode in read_trajectories(place, images=False, unfinished=False):
                        if episode[-1].success or not success:
                            count += 1
                            progress.advance(task)
                            yield place, episode

            rows = WRITERS[to](episodes(), part)
        if not rows:
            why = "no reply that could be read as a legal action" if count else "no finished episode"
            raise TrajectoryError(f"{folder} holds {why}{' that succeeded' if success else ''}.")
    typer.echo(f"{rows} turns of {count} episodes: {out}")
    load = f'datasets.load_dataset("{out}", split="train")'
    if to == "minari":
        load = f"MINARI_DATASETS_PATH={out} python -c 'import minari; minari.load_dataset(\"{DATA_SET}\")'"
    typer.echo(f"load it: {load}")


def find_recordings(folder: Path) -> list[Path]:
    """Return the trajectory folders in a folder, the oldest first."""
    if (folder / METADATA).is_file():
        return [folder]
    base = folder / RECORDINGS if (folder / RECORDINGS).is_dir() else folder
    folders = sorted(path.parent for path in base.glob(f"[!.]*/{METADATA}"))
    if not folders:
        raise UserError(
            f"DIR {folder} holds no recorded episode. Name the folder of a training run (`--record-every` says how "
            "often it records), or one that `vlgym eval` wrote."
        )
    return folders
