"""Files and folders that are whole, old or new, wherever the program or the machine stops.

They are written under a temporary name in the same folder, flushed to the disk, then renamed.
Nothing is written through a link: a folder from elsewhere may hold one of any name. Checksums find
accidental damage; a change on purpose can include the checksum.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any

from .errors import UserError

FIELD = "crc32"  # entry of a JSON object that holds the checksum of the others
CHECKSUMS = "checksums.json"  # list of a folder's files
LOCK = ".lock"  # file of a folder that `lock_folder` locks
_JUNK = (  # left in folders by file managers, file systems and kills
    ".DS_Store", "._*", ".localized", ".directory", "Thumbs.db", "desktop.ini", ".nfs*", ".fuse_hidden*",
    ".*.????????.part",
)  # fmt: skip
_REFUSED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}  # no flush there
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # Windows has neither


def is_junk(path: Path) -> bool:
    """True if a file belongs to nobody's data, whatever it holds."""
    return any(fnmatch(path.name, pattern) for pattern in _JUNK)


def list_folder(folder: Path) -> list[Path]:
    """Return the entries of a folder without junk, by name; none where it is no folder."""
    return sorted(path for path in folder.iterdir() if not is_junk(path)) if folder.is_dir() else []


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as JSON has it, with the checksum of its values last."""
    plain = json.loads(json.dumps(record, default=str))
    plain.pop(FIELD, None)
    return {**plain, FIELD: _crc(plain)}


def unseal(record: Any, *, required: bool = True) -> dict[str, Any]:
    """Return a record without its checksum; `ValueError` where it is wrong or `required`."""
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
    """True if a line of JSON is a beginning alone, as after a kill or on a full disk."""
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
    """List size and SHA-256 of every file of a folder in `checksums.json`, the last to be written.

    The folder is flushed when it gets its final name. Files in `without` may change.
    """
    files = [path for path in folder.rglob("*") if path.is_file() and not is_junk(path)]
    names = {path.relative_to(folder).as_posix() for path in files}
    sums = {name: measure_file(folder / name) for name in sorted(names - {CHECKSUMS, *without})}
    write_whole(folder / CHECKSUMS, json.dumps(seal({"files": sums}), indent=1) + "\n")


def check_files(folder: Path) -> None:
    """Raise `ValueError` where a file of a folder's `checksums.json` is missing or changed."""
    try:
        listed = sorted(unseal(json.loads((folder / CHECKSUMS).read_bytes()))["files"].items())
    except FileNotFoundError:
        raise ValueError(f"{CHECKSUMS} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{CHECKSUMS}: {error}") from None

    # Files may come later: only listed ones count.
    for name, expected in listed:
        if not (folder / name).is_file():
            raise ValueError(f"{name} is missing")
        if measure_file(folder / name) != expected:
            raise ValueError(f"{name} holds other bytes than were written")


def _crc(plain: Mapping[str, Any]) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"


def write_whole(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Write a file: wherever the program or the machine stops, the old or the new one is whole.

    Args:
        data: half of a surrogate pair in a text, which no file can hold, becomes a question mark.
        durable: flush it; else the machine, not the program, may lose it.

    Raises:
        UserError: it is a link.
    """
    with _placing(path, durable) as (_, number), open(number, "wb", closefd=False) as file:
        file.write(data.encode("utf-8", "replace") if isinstance(data, str) else data)


@contextmanager
def written_file(path: Path) -> Iterator[Path]:
    """Make and yield an empty file for another library, then name it `path`, which is no link."""
    with _placing(path, durable=True) as (part, _):
        yield part


@contextmanager
def _placing(path: Path, durable: bool) -> Iterator[tuple[Path, int]]:
    """Make a file of a random name next to `path`; yield it with its descriptor, then rename it."""
    _refuse_link(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o666)
    try:
        try:
            yield part, number
            if durable:
                _sync(number)
        finally:
            os.close(number)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)  # half of a file fills a full disk
        raise
    # The folder holds the name.
    if durable:
        sync(path.parent)


def open_end(path: Path) -> IO[bytes]:
    """Open a file for writing at its end, unbuffered; make it if missing.

    Raises:
        UserError: it is a link, or no file.
        OSError: it cannot be opened.
    """
    _refuse_link(path)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NOFOLLOW, 0o666)
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(number)
        raise UserError(f"{path} has another name too, or is no file; nothing was written to it. Remove it.")
    return os.fdopen(number, "ab", buffering=0)


def append_whole(path: Path, data: str) -> None:
    """Add lines to the end of a file (see `open_end`): all of them or, on an error, none."""
    with open_end(path) as file:
        end, rest = file.tell(), data.encode("utf-8", "replace")
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            file.truncate(end)  # half of a line would be taken for damage when more come after it
            raise


def make_folder(folder: Path) -> None:
    """Make a folder, unless it is there; `UserError` where it is a link."""
    _refuse_link(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise UserError(f"{path} is a link; nothing was written through it. Remove it, or name another place.")


def place_folder(part: Path, folder: Path) -> None:
    """Rename a complete folder to its final name, once all in it is on the disk.

    An older one of that name is moved away first and deleted last: no half counts as whole.
    """
    for path in part.rglob("*"):
        sync(path)
    sync(part)
    _refuse_link(folder)

    # From here on a stop leaves the old folder under one of two names, which `put_back` knows.
    old = old_of(folder)
    if replaces := folder.exists():
        discard(old)
        os.replace(folder, old)
    try:
        os.replace(part, folder)
    except OSError:
        put_back(folder)
        raise
    sync(folder.parent)
    if replaces:
        discard(old)


def discard(path: Path) -> None:
    """Delete a file, a link or a folder, if it is there; where a link leads stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def put_back(folder: Path) -> None:
    """Undo what a kill left half done between the two steps of `place_folder`."""
    if old_of(folder).exists() and not old_of(folder).is_symlink() and not folder.exists():
        os.replace(old_of(folder), folder)


@contextmanager
def written_whole(folder: Path, without: Collection[str] | None = ()) -> Iterator[Path]:
    """Make and yield a temporary folder, which then takes the place of `folder`, flushed.

    At the end it gets checksums of all files but those `without`; none where that is `None`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    put_back(folder)
    part = folder.parent / f".{folder.name}.part"
    discard(part)
    part.mkdir()

    # Half of a folder is deleted: it fills a full disk.
    try:
        yield part
        if without is not None:
            write_checksums(part, without)
    except BaseException:
        discard(part)
        raise
    place_folder(part, folder)


def new_folder(parent: Path, name: str) -> Path:
    """Make and return the next free `NAME-001`, `NAME-002`, ..., or raise `UserError`."""
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


def lock_folder(folder: Path) -> IO[bytes]:
    """Keep other processes out of a folder until the returned file is closed or this process ends.

    Deletes the temporary files that a kill left in it.

    Raises:
        UserError: another process is at work in it, or its lock file is none.
    """
    try:
        file = open_end(folder / LOCK)
    except OSError as error:
        raise UserError(f"{folder / LOCK} cannot be locked ({error.strerror}); remove it.") from None
    with suppress(ImportError):  # not on Windows
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise UserError(f"Another process is at work in {folder}; wait for it, or choose another folder.") from None

    # Nobody else writes to these any more.
    for part in folder.glob(".*.part"):
        discard(part)
    return file


def find_cache(name: str) -> Path:
    """Return a folder of this user's cache: `$VLGYM_CACHE/NAME`, or in the usual place."""
    if chosen := os.environ.get("VLGYM_CACHE"):
        return Path(chosen) / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vlgym" / name
