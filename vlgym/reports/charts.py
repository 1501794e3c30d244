"""Positions of the marks in the pages' drawings, in percent of their width and height; templates draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .words import write_short

LEAST, MOST = -1.0, 2.0  # a normalized score beyond is drawn at the edge
POINTS = 300  # of a curve
FEW = 10  # values below which none counts as a spike
Ticks = list[tuple[float, str]]
"""Place and label of each tick of an axis."""


@dataclass(frozen=True)
class Axis:
    """A range of values."""

    low: float = 0.0
    high: float = 1.0

    def place(self, value: float) -> float:
        """Return where a value stands, in percent; beyond the ends, at the edge, and in the middle of no range."""
        width = self.high - self.low
        share = (value - self.low) / width if width > 0 else 0.5
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


@dataclass(frozen=True)
class Curve:
    """A line and its axes.

    Attributes:
        points: of an SVG polyline in a box of 100 by 100.
        across, up: ticks of the axes.
        unit: what the axis across counts.
        first, last: values at the ends.
        cut: the values that lie beyond the axis, in words.
    """

    title: str
    points: str
    across: Ticks
    up: Ticks
    unit: str
    first: float
    last: float
    cut: str


def draw_curve(
    title: str, seen: Sequence[tuple[float, float]], unit: str, ends: tuple[float, float] | None = None
) -> Curve:
    """Return the curve through points `(x, y)`, in the order of `x`.

    `ends` are those of the axis upwards. By default it holds all values, but for single spikes that would flatten the
    others.
    """
    values = sorted(value for _, value in seen)
    level = Axis(*(ends or _find_ends(values)))
    way = Axis(seen[0][0], seen[-1][0])
    kept = seen[:: max(1, -(-len(seen) // POINTS))]
    kept = [*kept, seen[-1]] if kept[-1] != seen[-1] else kept
    points = " ".join(f"{way.place(at):.2f},{100 - level.place(value):.2f}" for at, value in kept)
    beyond = [value for value in (values[0], values[-1]) if not level.low <= value <= level.high]
    cut = f"cut off: {' and '.join(map(write_short, beyond))}" if beyond else ""
    return Curve(title, points, _tick(way, 1.0), _tick(level), unit, seen[0][1], seen[-1][1], cut)


def list_steps(shares: Sequence[float]) -> list[tuple[float, float]]:
    """Return the corners of a line from 0 that rises to `shares[t - 1]` at turn `t`."""
    corners = [(0.0, 0.0)]
    for turn, share in enumerate(shares, 1):
        if share != corners[-1][1]:
            corners += [(float(turn), corners[-1][1]), (float(turn), share)]
    return [*corners, (float(len(shares)), corners[-1][1])]


def _find_ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis for sorted values."""
    low, high = values[0], values[-1]
    aside = max(1, len(values) // 50)
    if len(values) >= FEW:
        inner_low, inner_high = values[aside], values[-1 - aside]
        width = inner_high - inner_low
        if width > 0 and high - inner_high > 2 * width:
            high = inner_high + width / 4
        if width > 0 and inner_low - low > 2 * width:
            low = inner_low - width / 4
    return low, high


def _tick(axis: Axis, least: float = 0.0) -> Ticks:
    """Return up to five ticks at round numbers, `least` or more from each other; one where the axis is a point."""
    width = axis.high - axis.low
    if width <= 1e-12 * max(abs(axis.low), abs(axis.high)):
        return [(50.0, write_short(axis.low))]
    size = 10.0 ** math.floor(math.log10(width / 4))
    step = max(least, next(factor * size for factor in (1, 2, 5, 10, 20) if width / (factor * size) < 5))
    numbers = range(math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9) + 1)
    return [(axis.place(number * step), write_short(number * step)) for number in numbers]
