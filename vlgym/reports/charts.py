"""Positions of the marks in the pages' small drawings, in percent of their width and height; templates draw them.

No text is drawn: numbers stand next to the drawings, in letters of the page's own size on every screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEAST, MOST = -1.0, 2.0  # a normalized score beyond is drawn at the edge


@dataclass(frozen=True)
class Axis:
    """A range of values."""

    low: float = 0.0
    high: float = 1.0

    def place(self, value: float) -> float:
        """Return where a value stands, in percent; beyond the ends, at the edge."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


@dataclass(frozen=True)
class Bar:
    """A bar from zero to a value, its interval, and marks.

    Attributes:
        low: lower end of the interval; `None` without one.
        floor: where the floor's mark stands; `None` without one.
        ceiling: where the ceiling's mark stands.
    """

    start: float
    width: float
    low: float | None
    high: float | None
    floor: float | None
    ceiling: float | None


def make_axis(values: Iterable[Mapping[str, Any] | None]) -> Axis:
    """Return an axis that holds 0, 1 and all means and intervals, within `LEAST` and `MOST`."""
    found = [0.0, 1.0]
    for value in filter(None, values):
        found += [value[name] for name in ("mean", "low", "high") if value.get(name) is not None]
    return Axis(max(LEAST, min(found)), min(MOST, max(found)))


def make_bar(
    value: Mapping[str, Any] | None,
    name: str = "mean",
    *,
    axis: Axis | None = None,
    floor: float | None = None,
    ceiling: float | None = None,
) -> Bar | None:
    """Return the bar of `value[name]`, with `value["low"]` and `value["high"]` where these are; `None` for none."""
    if value is None:
        return None
    axis = axis or Axis()
    zero, end = axis.place(0.0), axis.place(value[name])
    low, high, left, right = (
        None if number is None else axis.place(number)
        for number in (value.get("low"), value.get("high"), floor, ceiling)
    )
    return Bar(min(zero, end), round(abs(end - zero), 2), low, high, left, right)


def draw_steps(shares: Sequence[float]) -> str:
    """Return the path of a line that rises to `shares[t - 1]` at turn `t`, in a box of 100 by 100."""
    path = ["M0 100"]
    for turn, share in enumerate(shares, 1):
        if turn == 1 or share != shares[turn - 2]:
            path.append(f"H{round(100 * turn / len(shares), 2)}V{round(100 * (1 - share), 2)}")
    return " ".join([*path, "H100"])
