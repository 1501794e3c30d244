"""Lines of files that may come from anywhere, or be cut off in the middle; one that cannot be read is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

LONGEST_LINE = 32_000_000  # bytes; a longer one is not read


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
