"""Confidence intervals: Wilson's for shares, Student's t for means."""

from __future__ import annotations

import math


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


def student_t(degrees: int, level: float = 0.95) -> float:
    """Return the `t` for which a Student t variable lies within `[-t, t]` with probability `level`; scipy's.

    The interval of a mean of `n` values is `mean ± student_t(n - 1) * sd / sqrt(n)`.

    >>> round(student_t(4), 3)
    2.776
    """
    from scipy.stats import t

    return float(t.ppf((1 + level) / 2, degrees))
