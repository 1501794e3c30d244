"""Files and folders that are whole, old or new, wherever the program or the machine stops.

They are written under a temporary name in the same folder, flushed to the disk, then renamed. Checksums in each JSON
record, and of the files of a folder, find accidental damage; a change on purpose can include the checksum.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from .errors import UserError

FIELD = "crc32"
"""The entry of a JSON object that holds the checksum of the others."""
CHECKSUMS = "checksums.json"
"""The list of a folder's files."""


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as JSON has it, with its checksum last. It is of the values, however they are written."""
    plain = json.loads(json.dumps(record, default=str))
    plain.pop(FIELD, None)
    return {**plain, FIELD: _crc(plain)}


def unseal(record: Any, *, required: bool = True) -> dict[str, Any]:
    """Return a record without its checksum.

    Args:
        record: from JSON.
        required: it must have one; else it is checked where there is one.

    Raises:
        ValueError: it is no object, its checksum is missing, or it is of other values.
    """
    if not isinstance(record, dict):
        raise ValueError("it is no JSON object")
    plain = {name: value for name, value in record.items() if name != FIELD}
    if FIELD not in record:
        if required:
            raise ValueError(f"its checksum ({FIELD}) is missing")
    elif record[FIELD] != _crc(plain):
        raise ValueError(f"its values are not those that its checksum ({FIELD}) was made of; it is damaged")
    return plain


def is_cut(line: bytes) -> bool:
    """True if a line of JSON is only the beginning of one, as a kill or a full disk leaves it at the end of a file."""
    if line.endswith(b"\n"):
        return False
    text = line.decode("utf-8", "replace")
    try:
        return json.JSONDecoder().raw_decode(text)[1] == len(text)  # more is a line break that was one
    except (ValueError, RecursionError):
        return True


def measure_file(path: Path) -> dict[str, Any]:
    """Return the size in bytes and the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"size": file.tell(), "sha256": digest}


def write_checksums(folder: Path, without: Collection[str] = ()) -> None:
    """List size and SHA-256 of every file of a folder in `checksums.json`, which is the last to be written.

    Args:
        folder: which has no other name yet, and is flushed when it gets one.
        without: names of files that may change later.
    """
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    found = {name: measure_file(folder / name) for name in sorted(names - {CHECKSUMS, *without})}
    (folder / CHECKSUMS).write_text(json.dumps(seal({"files": found}), indent=1) + "\n", encoding="utf-8")


def check_files(folder: Path) -> None:
    """Compare a folder's files with its `checksums.json`.

    Raises:
        ValueError: a file is missing, or another one than was written; the message begins with its name.
    """
    try:
        listed = sorted(unseal(json.loads((folder / CHECKSUMS).read_bytes()))["files"].items())
    except FileNotFoundError:
        raise ValueError(f"{CHECKSUMS} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{CHECKSUMS}: {error}") from None
    for name, expected in listed:
        if not (folder / name).is_file():
            raise ValueError(f"{name} is missing")
        if measure_file(folder / name) != expected:
            raise ValueError(f"{name} holds other bytes than were written")


def _crc(plain: Mapping[str, Any]) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"


_REFUSED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Error numbers of a file system that cannot flush; they are ignored."""


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
    """Rename a file that another program has written to its final name; an older one of that name is replaced."""
    sync(part)
    os.replace(part, path)
    sync(path.parent)


def place_folder(part: Path, folder: Path) -> None:
    """Rename a complete folder to its final name, once all in it is on the disk. An older one of that name is moved
    away first and deleted last, so that no half of either can be taken for a whole one.
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


@contextmanager
def written_whole(folder: Path, without: Collection[str] = ()) -> Iterator[Path]:
    """Make and yield a temporary folder next to `folder` to write to.

    At the end it gets its checksums (of all files but those `without`), is flushed to the disk and takes the place of
    `folder`, or of an older one there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    put_back(folder)
    part = folder.parent / f".{folder.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        yield part
        write_checksums(part, without)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)  # half of one fills a full disk
        raise
    place_folder(part, folder)


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
    """Return the name of an older folder while a new one takes its place."""
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


LOCK = ".lock"
"""The file of a folder that `lock_folder` locks."""


def lock_folder(folder: Path) -> IO[str]:
    """Keep other processes out of a folder until the returned file is closed or this process ends, however it ends.

    Raises:
        UserError: another process is at work in it, or its lock file is none.
    """
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"))  # Windows has none of them
    try:
        file = os.fdopen(os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | sum(flags), 0o666), "w")
    except OSError as error:
        raise UserError(f"{folder / LOCK} cannot be locked ({error.strerror}); remove it.") from None
    with suppress(ImportError):  # not on Windows
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise UserError(f"Another process is at work in {folder}; wait for it, or choose another folder.") from None
    return file


def find_cache(name: str) -> Path:
    """Return a folder of this user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vlgym" / name
