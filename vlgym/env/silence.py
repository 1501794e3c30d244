"""The rule for a reply without an action: the move that stands for it, and what that move pays (docs/games.md).

`VLEnv` and `vlgym.games.table.Table` call it; every other path, from PettingZoo to the learners' records, reads theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def draw_move(legal: Sequence[str], *seed: int) -> str:
    """Return the legal action that stands for a reply; the draw depends on `seed` alone."""
    return legal[int(np.random.default_rng(seed).integers(len(legal)))]


def pay_stand_in(earned: float, step_cost: float = 0.0) -> float:
    """Return the pay of a move that stands for a reply: its losses, at least the cost of a step, and no gain."""
    return min(earned, 0.0 - step_cost)
