"""The learning curves of a run, from its log.jsonl."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from ..env.arguments import fits
from ..reports.charts import Curve, draw_curve
from .guarding import LOG, open_inside
from .index import read_row, split_lines

MOST = 1e300  # sums of larger numbers are infinite
MOST_CURVES = 80
MAIN = {
    "episode/success": "success",
    "episode/return": "return",
    "rollout/invalid_rate": "replies without an action",
    "loss/kl": "distance from the reference (KL)",
}
"""Curves that are shown first, and what they are called."""
_RATES = ("episode/success", "rollout/invalid_rate")
_ACROSS = "env_steps"


def draw_curves(folder: Path) -> tuple[list[Curve], list[Curve]]:
    """Return the main curves of a run's log, and the others; none where it has none."""
    try:
        return _draw_all(folder, (folder / LOG).lstat().st_size)
    except OSError:
        return [], []


@lru_cache(64)
def _draw_all(folder: Path, size: int) -> tuple[list[Curve], list[Curve]]:
    rows = []
    with open_inside(folder, LOG) as file:
        for _, _, text in split_lines(file, 0):
            try:
                row = read_row(text)
            except ValueError:
                continue
            rows.append({
                name: float(value)
                for name, value in row.items()
                if re.fullmatch(r"[\w/.-]{1,200}", name) and fits(value, float) and abs(value) <= MOST
            })  # fmt: skip
    across = _ACROSS if all(_ACROSS in row for row in rows) else "update"
    unit = "environment steps" if across == _ACROSS else "updates"
    drawn: tuple[list[Curve], list[Curve]] = ([], [])
    others = sorted({name for row in rows for name in row} - {*MAIN, _ACROSS, "update"})
    for name in [*MAIN, *others][:MOST_CURVES]:
        seen = [(row[across], row[name]) for row in rows if name in row and across in row]
        if seen:
            rate = name in _RATES and all(0 <= value <= 1 for _, value in seen)
            drawn[name not in MAIN].append(draw_curve(MAIN.get(name, name), seen, unit, (0.0, 1.0) if rate else None))
    return drawn
