"""Confidence intervals: Wilson's for shares, Student's t for means, Fieller's for a mean between two others.

The only place that knows their quantiles.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

_HALVINGS = 60
_MOST_DEGREES = 1000  # beyond, Student's t is the normal distribution to three digits


@dataclass(frozen=True)
class Mean:
    """A measured mean.

    Attributes:
        value: the mean.
        se: its standard error.
        count: of how many values.
    """

    value: float
    se: float
    count: int


def wilson_interval(successes: float, trials: float, z: float = 1.959964) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion (Wilson 1927); `(0, 1)` without trials.

    `trials` is no whole number where trials depend on each other: it is then the number of independent ones that would
    say as much.

    >>> low, high = wilson_interval(9, 10)
    >>> print(f"{low:.3f} to {high:.3f}")
    0.596 to 0.982
    """
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


@functools.cache
def student_t(degrees: int, level: float = 0.95) -> float:
    """Return the `t` for which a Student t variable lies within `[-t, t]` with probability `level`.

    The interval of a mean of `n` values is `mean ± student_t(n - 1) * sd / sqrt(n)`.

    Args:
        degrees: degrees of freedom, `>= 1`.
        level: between 0 and 1.

    >>> round(student_t(4), 3)
    2.776
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _share_within(angle, degrees) < level else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def place_interval(mean: Mean, floor: Mean, ceiling: Mean, level: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of `(mean - floor) / (ceiling - floor)`, all three measured independently (Fieller 1954).

    It holds each place `p` at which `mean - (1 - p) floor - p ceiling` differs from 0 by at most `t` of its standard
    errors. `t` is Student's, with the degrees of freedom of Welch and Satterthwaite at the measured place.

    Args:
        mean: for example a policy's mean return.
        floor: where the place is 0.
        ceiling: where it is 1.
        level: between 0 and 1.

    Returns:
        Lowest and highest place; `None` where there is none: floor and ceiling cannot be told apart, or one of the
        three was measured once.

    >>> low, high = place_interval(Mean(0.5, 0.05, 100), floor=Mean(0.2, 0.01, 100), ceiling=Mean(1.0, 0.0, 100))
    >>> print(f"{low:.2f} to {high:.2f}")
    0.25 to 0.50
    """
    span, height = ceiling.value - floor.value, mean.value - floor.value
    if span == 0 or min(mean.count, floor.count, ceiling.count) < 2:
        return None
    place = height / span
    weighted = ((mean, 1.0), (floor, 1 - place), (ceiling, place))
    parts = [((weight * each.se) ** 2, each.count - 1) for each, weight in weighted]
    spread = sum(part * part / degrees for part, degrees in parts)
    degrees = sum(part for part, _ in parts) ** 2 / spread if spread else _MOST_DEGREES
    t2 = student_t(max(1, min(_MOST_DEGREES, int(degrees))), level) ** 2
    # (height - p span)^2 <= t2 (mean.se^2 + (1 - p)^2 floor.se^2 + p^2 ceiling.se^2), a quadratic inequality in p.
    a = span**2 - t2 * (floor.se**2 + ceiling.se**2)
    b = span * height - t2 * floor.se**2
    c = height**2 - t2 * (mean.se**2 + floor.se**2)
    if a <= 0:
        return None
    root = math.sqrt(max(0.0, b * b - a * c))
    return (b - root) / a, (b + root) / a


def _share_within(angle: float, degrees: int) -> float:
    """Return the probability of `[-t, t]` for `t = sqrt(degrees) tan(angle)` (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    odd, total = degrees % 2, 0.0
    term = math.cos(angle) if odd else 1.0
    for k in range(odd, degrees - 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (k + 1) / (k + 2)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
