"""Passing lanes in metres: how open the way from the ball to a team-mate is. Used by the oracles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .scenario import LENGTH_X, LENGTH_Y

METRES = np.array([LENGTH_X, LENGTH_Y])


def lane_clearance(start: NDArray[np.float64], end: NDArray[np.float64], opponents: NDArray[np.float64]) -> float:
    """Return the distance in metres of the nearest opponent to the segment `start`-`end` (all in pitch coordinates;
    opponents `[n, 2]`).

    The first metre is left out: an opponent at the passer's back does not close a lane.
    """
    a, b, p = start * METRES, end * METRES, opponents * METRES
    if len(p) == 0:
        return float("inf")
    way = b - a
    length = float(np.hypot(*way))
    if length < 1e-6:
        return float(np.min(np.hypot(*(p - a).T)))
    along = np.clip((p - a) @ way / length, min(1.0, length), length)
    nearest = a + along[:, None] * (way / length)
    return float(np.min(np.hypot(*(p - nearest).T)))
