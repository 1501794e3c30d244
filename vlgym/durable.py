"""Files and folders that are whole, old or new, wherever the program or the machine stops: written beside their place,
flushed to the disk, then given their name.

What a file says, and whether it still says it, is the affair of `checksums.py`.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from .errors import UserError

_REFUSED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""How a file system says that it cannot flush: then nobody can, and it is no error."""


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file so that, wherever the program or the machine stops, the old one or the new one is there whole.

    Args:
        path: the file.
        data: its bytes, or a text: half of a surrogate pair, which JSON may hold and no file can, becomes a question
            mark.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data.encode("utf-8", "replace") if isinstance(data, str) else data)
            file.flush()
            _sync(file.fileno())
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)  # half of a file fills a full disk
        raise
    sync(path.parent)


def place_file(part: Path, path: Path) -> None:
    """Give a file that another program has written its name; an older one of that name is replaced."""
    sync(part)
    os.replace(part, path)
    sync(path.parent)


def place_folder(part: Path, folder: Path) -> None:
    """Give a folder that is written its name, once all in it is on the disk. An older one of that name is moved away
    first and deleted last, so that no half of either can be taken for a whole one.
    """
    for path in part.rglob("*"):
        sync(path)
    sync(part)
    old = old_of(folder)
    if replaces := folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(folder, old)
    try:
        os.replace(part, folder)
    except OSError:
        put_back(folder)
        raise
    sync(folder.parent)
    if replaces:
        shutil.rmtree(old, ignore_errors=True)


def put_back(folder: Path) -> None:
    """Undo what a kill left half done between the two steps of `place_folder`."""
    if old_of(folder).exists() and not folder.exists():
        os.replace(old_of(folder), folder)


def new_folder(parent: Path, name: str) -> Path:
    """Make and return the next free `NAME-001`, `NAME-002`, ... in a folder: nothing is written over.

    Raises:
        UserError: it cannot be made.
    """
    reason = "there are too many"
    for number in range(1, 100_000):
        folder = parent / f"{name}-{number:03d}"
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            continue
        except OSError as error:
            reason = error.strerror or str(error)
            break
    raise UserError(f"{folder} cannot be made ({reason}); choose another folder with --out.")


def old_of(folder: Path) -> Path:
    """What an older folder is called while a new one takes its place."""
    return folder.with_name(f".{folder.name}.old")


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        _sync(number)
    finally:
        os.close(number)


def _sync(number: int) -> None:
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
