"""Positions of a curve's points and ticks, in percent of its box; `marks.html` draws them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .text import write_short

CURVE_POINTS = 300  # of a curve
FEW = 10  # values below which none counts as a spike
Ticks = list[tuple[float, str]]  # place and label of each tick of an axis


@dataclass(frozen=True)
class Curve:
    """A line and its axes.

    Attributes:
        points: of an SVG polyline in a box of 100 by 100.
        unit: what the axis across counts.
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
    title: str, points: Sequence[tuple[float, float]], unit: str, ends: tuple[float, float] | None = None
) -> Curve:
    """Return the curve through points `(x, y)`, in the order of `x`.

    `ends` of the axis upwards hold by default all values but single spikes.
    """
    at, values = np.array(points, float).T
    low, high = ends or _find_ends(np.sort(values))
    indices = np.unique(np.linspace(0, len(at) - 1, min(len(at), CURVE_POINTS)).astype(int))
    places = zip(_place(at[indices], at[0], at[-1]), _place(values[indices], low, high), strict=True)
    beyond = [write_short(each) for each in (values.min(), values.max()) if not low <= each <= high]
    line = " ".join(f"{x:.2f},{100 - y:.2f}" for x, y in places)
    cut = f"cut off: {' and '.join(beyond)}" if beyond else ""
    across, up = _tick(at[0], at[-1], 1.0), _tick(low, high)
    return Curve(title, line, across, up, unit, values[0], values[-1], cut)


def _place(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the places of values in percent: within the box, and in the middle of no range."""
    if high <= low:
        return np.full(len(values), 50.0)
    return np.clip(100 * (values - low) / (high - low), 0, 100)


def _find_ends(values: np.ndarray) -> tuple[float, float]:
    """Return the ends of an axis for sorted values."""
    low, high = values[0], values[-1]
    aside = max(1, len(values) // 50)
    if len(values) >= FEW and (width := values[-1 - aside] - values[aside]) > 0:
        high = values[-1 - aside] + width / 4 if high - values[-1 - aside] > 2 * width else high
        low = values[aside] - width / 4 if values[aside] - low > 2 * width else low
    return low, high


def _tick(low: float, high: float, least: float = 0.0) -> Ticks:
    """Return up to five ticks at round numbers, `least` or more apart; one on a point's axis."""
    width = high - low
    if width <= 1e-12 * max(abs(low), abs(high)):
        return [(50.0, write_short(low))]
    size = 10.0 ** math.floor(math.log10(width / 4))
    step = max(least, size * next(factor for factor in (1, 2, 5, 10, 20) if width / (factor * size) < 5))
    numbers = step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    places = _place(numbers, low, high).round(2).tolist()
    return [(place, write_short(number)) for place, number in zip(places, numbers, strict=True)]
