"""What a run says of itself in its run.json, in lines for people. Nothing in it is believed to be what it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..trajectory import HEADER
from .files import open_inside
from .lines import LONGEST_NAME, read_row

LARGEST = 16_000_000  # bytes
_SHOWN = ("title", "policy", "split", "seed", "episodes", "versions", "machine", "config")


def read_facts(folder: Path) -> list[tuple[str, str]]:
    """Return name and value of what a run says of itself; nothing where its run.json cannot be read."""
    try:
        with open_inside(folder, HEADER) as file:
            said = read_row(file.read(LARGEST))
    except (OSError, ValueError):
        return []
    facts = [(name, _write(said[name])) for name in _SHOWN if name in said]
    for kind in ("environments", "parts"):
        if isinstance(said.get(kind), Mapping):
            facts.insert(1, (kind, ", ".join(str(name)[:LONGEST_NAME] for name in said[kind])))
    return [(name, value) for name, value in facts if value]


def _write(value: Any) -> str:
    """A value as text: what a mapping holds, a `name value` each."""
    if isinstance(value, Mapping):
        return ", ".join(_pairs(value))
    return value[:10_000] if isinstance(value, str) else json.dumps(value)[:10_000]


def _pairs(value: Mapping[str, Any]) -> Iterator[str]:
    for name, item in value.items():
        if item not in (None, "", [], {}):
            yield f"{name[:LONGEST_NAME]} {item if isinstance(item, str) else json.dumps(item)}"[:1000]
