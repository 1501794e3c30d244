"""Reading files of a folder that somebody else may have filled: plain files inside it, and nothing they point at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..trajectory import HEADER, METADATA

LOG = "log.jsonl"
DEEPEST = 6  # folders below one that was named
MOST_FOLDERS = 20_000
_PASSED = {"images", "tensorboard", "checkpoints", "model", "best", "adapter", "__pycache__"}
"""Folders that hold no records, and many files."""


@dataclass(frozen=True)
class Place:
    """A folder with records.

    Attributes:
        folder: the folder itself.
        run: the folder of the run that it belongs to: a training run's recordings have one, else it is the folder.
        name: of the run, for people: its path from the folder that was named.
    """

    folder: Path
    run: Path
    name: str


def open_inside(root: Path, name: str) -> BinaryIO:
    """Open a plain file of a folder for reading.

    Args:
        root: the folder.
        name: of the file, relative to it, as a record says.

    Raises:
        OSError: it is not there, not inside, a link, or no plain file.
    """
    if "\0" in name:
        raise OSError("a file name with a zero byte")
    path = root / name
    if root.resolve() not in path.resolve().parents:
        raise OSError(f"{name!r} is outside of its folder")
    # A link in the last place is refused by the system, and a pipe is not waited for.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{name!r} is no plain file")
    return os.fdopen(number, "rb")


def find_places(roots: tuple[Path, ...]) -> Iterator[Place]:
    """Yield the folders with records in and below some folders, and those of runs that only have a log so far."""
    seen: set[Path] = set()
    for root in roots:
        logs: dict[Path, bool] = {}
        for at, folders, files in os.walk(root):
            here = Path(at)
            depth = len(here.relative_to(root).parts)
            hidden = {name for name in folders if name.startswith(".")}
            folders[:] = [] if depth >= DEEPEST else sorted(set(folders) - hidden - _PASSED)
            logs[here] = LOG in files or logs.get(here.parent, False)
            if METADATA not in files and not (LOG in files and HEADER in files):
                continue
            if here in seen:
                continue
            seen.add(here)
            run = _find_run(here, root)
            yield Place(here, run, _name(run, root, roots))
            if len(seen) >= MOST_FOLDERS:
                return


def _find_run(folder: Path, root: Path) -> Path:
    """The folder itself, or the training run whose recording it is."""
    for place in (folder, *folder.parents):
        if (place / LOG).is_file():
            return place
        if place == root:
            break
    return folder


def _name(run: Path, root: Path, roots: tuple[Path, ...]) -> str:
    inside = run.relative_to(root).as_posix()
    if inside == ".":
        return root.name
    return inside if len(roots) == 1 else f"{root.name}/{inside}"
