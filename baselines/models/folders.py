"""Folders of models and of adapters: written whole, and never over something else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vlgym.errors import UserError, check_writable
from vlgym.files import CHECKSUMS, check_files, place_folder, put_back, write_checksums

from .limits import EVALUATION


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `folder` to write to.

    At the end it gets its checksums, is flushed to the disk and takes the place of `folder`, or of an older one there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    put_back(folder)
    part = folder.parent / f".{folder.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        yield part
        write_checksums(part, without=(EVALUATION,))
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)  # half of a model fills a full disk
        raise
    place_folder(part, folder)


def check_whole(folder: Path) -> None:
    """Check the files of a folder that was written here; of one without checksums nothing is known.

    Raises:
        UserError: one is damaged or missing.
    """
    if (folder / CHECKSUMS).is_file():
        try:
            check_files(folder)
        except ValueError as error:
            raise UserError(
                f"--model {folder} is damaged: {error}. Save the model again; if you changed that file yourself, "
                f"delete {CHECKSUMS} there."
            ) from None


def write_notes(folder: Path, notes: Mapping[str, Any]) -> None:
    """Write JSON data into a folder: the name of each file -> its data."""
    for name, data in notes.items():
        (folder / name).write_text(json.dumps(data, indent=2, default=str))


def check_replaceable(folder: Path, name: str, files: Sequence[str], config: str, what: str) -> None:
    """Check, before any work, that a folder can be written to: new, empty, or an older one of its kind.

    Args:
        folder: where; name: the option that says so.
        files: patterns of the names that such a folder may hold; config: the one that it must hold.
        what: what the folder is for, in words: "model", "adapter".

    Raises:
        UserError: it holds something else, or cannot be written to.
    """
    check_writable(name, folder)
    held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    strange = [file for file in held if not any(fnmatch(file, part) for part in files)]
    if strange or (held and config not in held) or folder.is_file():
        raise UserError(
            f"{name} {folder} holds {', '.join(strange[:3]) or 'files'}, which is no {what}'s; choose a new or empty "
            f"folder for the {what}."
        )
