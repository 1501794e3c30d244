"""Reading files of a folder that somebody else may have filled: plain files inside it, and nothing they point at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..trajectory import HEADER, METADATA

LOG = "log.jsonl"
_PASSED = {"images", "tensorboard", "checkpoints", "model", "best", "adapter", "__pycache__"}
"""Folders that hold no records, and many files."""


def open_inside(root: Path, name: str) -> BinaryIO:
    """Open a plain file of a folder for reading.

    Raises:
        OSError: it is not there, not inside, a link, or no plain file.
    """
    if "\0" in name:
        raise OSError("a file name with a zero byte")
    path = root / name
    if root.resolve() not in path.resolve().parents:
        raise OSError(f"{name!r} is outside of its folder")
    # A link in the last place is refused by the system, and a pipe is not waited for.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{name!r} is no plain file")
    return os.fdopen(number, "rb")


def find_records(roots: tuple[Path, ...]) -> Iterator[tuple[Path, Path, str]]:
    """Yield the folders with records in and below some folders, and those of runs that only have a log so far: the
    folder, that of the run which it belongs to (itself, or the training run that recorded it), and the run's name.
    """
    for root in roots:
        for at, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _PASSED and not name.startswith("."))
            if METADATA in files or (LOG in files and HEADER in files):
                run = _find_run(Path(at), root)
                inside = run.relative_to(root).as_posix()
                name = inside if len(roots) == 1 else f"{root.name}/{inside}"
                yield Path(at), run, root.name if inside == "." else name


def _find_run(folder: Path, root: Path) -> Path:
    for place in (folder, *folder.parents):
        if (place / LOG).is_file():
            return place
        if place == root:
            break
    return folder
