"""Lines of records, and the values in them. Nothing that a line holds is believed.

A file of records may come from anywhere, or be cut off in the middle: whatever is of another type than it should be
becomes its plain value, and a line that cannot be read at all is counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, BinaryIO

LONGEST_LINE = 32_000_000  # bytes; a longer one is not read
LONGEST_NAME = 200


def split_lines(file: BinaryIO, start: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield first byte, size and text of each whole line from a place on; `None` for the text of one that is too long.

    The beginning of a line, which somebody is writing just now, is left for another time.
    """
    file.seek(start)
    while line := file.readline(LONGEST_LINE):
        size, text = len(line), line if line.endswith(b"\n") else None
        while not line.endswith(b"\n"):
            if not (line := file.readline(LONGEST_LINE)):
                return
            size += len(line)
        yield start, size, text
        start += size


def read_row(text: bytes) -> dict[str, Any]:
    """Return what a line says.

    Raises:
        ValueError: it is no JSON object.
    """
    try:
        row = json.loads(text.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError("it is no JSON object")
    return row


def as_text(value: Any) -> str:
    """Return a text; anything else becomes none."""
    return value if isinstance(value, str) else ""


def as_name(value: Any) -> str:
    """Return a text that names something: short and in one line."""
    return " ".join(as_text(value)[:LONGEST_NAME].split())


def as_count(value: Any) -> int:
    """Return a whole number; anything else becomes 0."""
    return value if type(value) is int and abs(value) < 2**63 else 0


def as_number(value: Any) -> float | None:
    """Return a finite number; anything else becomes `None`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
