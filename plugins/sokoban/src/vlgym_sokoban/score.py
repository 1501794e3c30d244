"""MageBench's score of a Sokoban episode, in exact tenths: rewards are multiples of 0.1, so a replayed solution
scores 100 exactly."""

from __future__ import annotations

from .board import BOX_REWARD, FINISH_REWARD, STEP_PENALTY
from .level import Level

FULL = 100.0
POINTS_PER_REWARD = 5


def to_tenths(reward: float) -> int:
    return round(10 * reward)


def upper_tenths(level: Level) -> int:
    """Return `U` in tenths: `10 + n - 0.1 L` for `n` boxes off target at the start and a solution of `L` steps."""
    missing = len(set(level.boxes) - set(level.targets))
    return to_tenths(FINISH_REWARD + BOX_REWARD * missing) - to_tenths(STEP_PENALTY) * len(level.solution)


def score_of(best_tenths: int, upper: int) -> float:
    """Return the score for a historically best reward and an upper bound, both in tenths. It is not clipped."""
    return FULL + POINTS_PER_REWARD * (best_tenths - upper) / 10
