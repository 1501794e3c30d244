"""`vlgym export`: recorded episodes as a data set of another library."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ..doors.minari import NAME, write_minari
from ..doors.parquet import Episode, write_chats, write_turns
from ..errors import TrajectoryError, UserError, check_choice, check_writable
from ..terminal import open_progress
from .console import open_console
from .replay_cmd import find_recordings, read_episodes

WRITERS = {"hf": write_turns, "sft": write_chats, "minari": write_minari}


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a `vlgym eval` run, a training run, or other records.")
    ],
    to: Annotated[str, typer.Option(help="hf, sft or minari.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder for the data set.")],
    success: Annotated[bool, typer.Option("--success", help="Only episodes that succeeded.")] = False,
) -> None:
    """Write recorded episodes as a data set: Parquet with pictures, chats to learn from, or Minari."""
    check_choice("--to", to, tuple(WRITERS))
    check_writable("--out", out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} is not empty; name a new folder.")
    places = find_recordings(folder, "DIR")
    part = out.with_name(out.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    console = open_console(stderr=True)
    count = Count()
    try:
        with open_progress(console) as progress:
            task = progress.add_task("episodes", total=None)

            def episodes() -> Iterator[Episode]:
                for place in reversed(places):
                    for episode in read_episodes(place):
                        count.seen += 1
                        if episode[-1].success or not success:
                            count.kept += 1
                            progress.advance(task)
                            yield place, episode

            rows = WRITERS[to](episodes(), part)
        if not rows:
            raise TrajectoryError(_say_why_nothing(folder, count, success))
        if out.exists():
            out.rmdir()
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    typer.echo(f"{rows} turns of {count.kept} episodes: {out}")
    typer.echo(_say_how_to_load(to, out))


class Count:
    """Numbers of episodes read and kept."""

    seen = kept = 0


def _say_why_nothing(folder: Path, count: Count, success: bool) -> str:
    if not count.seen:
        return f"{folder} holds no finished episode."
    if success and not count.kept:
        return f"None of the {count.seen} episodes in {folder} succeeded; leave --success out to export them."
    return f"No reply in the {count.kept} episodes of {folder} could be read as a legal action."


def _say_how_to_load(to: str, out: Path) -> str:
    if to == "minari":
        return f"load it: MINARI_DATASETS_PATH={out} python -c 'import minari; minari.load_dataset(\"{NAME}\")'"
    return f'load it: datasets.load_dataset("{out}", split="train")'
