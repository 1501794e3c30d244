"""Checksums, by which a damaged file is noticed when it is read: one in each JSON record, and a list of the files of a
folder.

They find damage by accident. Whoever changes a file on purpose can change its checksum, too.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

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
    """Whether a line of JSON is what a kill or a full disk leaves at the end of a file: the beginning of one."""
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
