"""The learning curves of a run, from its log.jsonl, as points of small drawings.

The page writes the numbers as text next to them, so that they can be read without the drawing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..env.arguments import fits
from .guarding import LOG, open_inside
from .index import read_row, split_lines

LARGEST = 64_000_000  # bytes of a log that are read
POINTS = 300  # of a curve
MOST = sys.float_info.max
MOST_CURVES = 80
MAIN = {
    "episode/success": "success",
    "episode/return": "return",
    "rollout/invalid_rate": "replies without an action",
    "loss/kl": "distance from the reference (KL)",
}
"""Curves that are shown first, and what they are called."""
_RATES = {"episode/success", "rollout/invalid_rate"}
_ACROSS = "env_steps"


@dataclass(frozen=True)
class Curve:
    """One curve: the points of an SVG polyline in a box of 100 x 100, values, and where it begins and ends."""

    title: str
    points: str
    first: float
    last: float
    low: float
    high: float
    start: float
    end: float
    across: str


def draw_curves(folder: Path, *, every: bool = False) -> list[Curve]:
    """Return the curves of a run's log; none where it has none."""
    rows = list(_read_log(folder))
    names = [name for name in MAIN if any(name in row for row in rows)]
    if every:
        others = {name for row in rows for name in row} - {*names, _ACROSS, "update"}
        names += sorted(others)
    curves = (_draw(rows, name) for name in names[:MOST_CURVES])
    return [curve for curve in curves if curve is not None]


def _draw(rows: Sequence[Mapping[str, float]], name: str) -> Curve | None:
    across = _ACROSS if all(_ACROSS in row for row in rows) else "update"
    seen = [(row[across], row[name]) for row in rows if name in row and across in row]
    if not seen:
        return None
    low, high = min(value for _, value in seen), max(value for _, value in seen)
    bottom, top = (0.0, 1.0) if name in _RATES and low >= 0 and high <= 1 else (low, high)
    start, end = seen[0][0], seen[-1][0]
    step = max(1, -(-len(seen) // POINTS))
    kept = [*seen[::step], seen[-1]]
    places = [(_share(at, start, end), 100 - _share(value, bottom, top)) for at, value in kept]
    points = " ".join(f"{x:.2f},{y:.2f}" for x, y in places)
    words = "environment steps" if across == _ACROSS else "updates"
    return Curve(MAIN.get(name, name), points, seen[0][1], seen[-1][1], bottom, top, start, end, words)


def _share(value: float, low: float, high: float) -> float:
    """Return the position of a value between two, in percent; 50 where these are one."""
    width = high / 2 - low / 2  # half of it, which is finite whatever a log says
    return min(100.0, max(0.0, 100 * (value / 2 - low / 2) / width)) if width > 0 else 50.0


def _read_log(folder: Path) -> Iterator[dict[str, float]]:
    """The numbers of each line; lines that cannot be read are left out."""
    try:
        file = open_inside(folder, LOG)
    except OSError:
        return
    with file:
        for start, _, text in split_lines(file, 0):
            if start > LARGEST:
                return
            try:
                row = read_row(text or b"")
            except ValueError:
                continue
            named = {name: value for name, value in row.items() if re.fullmatch(r"[\w/.-]{1,200}", name)}
            yield {name: float(value) for name, value in named.items() if fits(value, float) and abs(value) <= MOST}
