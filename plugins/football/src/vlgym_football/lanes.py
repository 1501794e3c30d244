"""Passing lanes in metres: how open the way from the ball to a team-mate is. Used by the oracle, the scenario maker and
its tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .scenario import LENGTH_X, LENGTH_Y

METRES = np.array([LENGTH_X, LENGTH_Y])
SHORTEST, LONGEST = 6.0, 40.0
CLEAR_LANE, FREE_RECEIVER = 3.0, 3.0
BEHIND = 3.0
"""A pass that goes more than so many metres back gains nothing; such lanes are not counted."""


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


def open_lanes(
    ball: NDArray[np.float64], mates: NDArray[np.float64], opponents: NDArray[np.float64], behind: float = BEHIND
) -> list[int]:
    """Return the indices of `mates` that can be passed to: within reach, not behind the ball, lane and receiver
    free."""
    found = []
    for index, mate in enumerate(mates):
        way = (mate - ball) * METRES
        length = float(np.hypot(*way))
        if not SHORTEST <= length <= LONGEST or way[0] < -behind:
            continue
        marker = float(np.min(np.hypot(*((opponents - mate) * METRES).T))) if len(opponents) else float("inf")
        if lane_clearance(ball, mate, opponents) >= CLEAR_LANE and marker >= FREE_RECEIVER:
            found.append(index)
    return found
