"""Confidence intervals: Wilson's for shares, Student's t for means. The only place that knows their quantiles."""

from __future__ import annotations

import functools
import math

_HALVINGS = 60


def wilson_interval(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion (Wilson 1927); `(0, 1)` without trials."""
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
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _share_within(angle, degrees) < level else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def _share_within(angle: float, degrees: int) -> float:
    """Return the probability of `[-t, t]` for `t = sqrt(degrees) tan(angle)` (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    odd, total = degrees % 2, 0.0
    term = math.cos(angle) if odd else 1.0
    for k in range(odd, degrees - 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (k + 1) / (k + 2)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
