"""The true advantage of a turn by Monte Carlo: branches from its saved state, in two independent halves.

A branch restores the state, takes fresh luck (`VLEnv.reseed`; `set_state` alone would repeat the episode's) and plays
on. Q and V branches of one number share their luck (common random numbers), halves share nothing, and the episode that
is judged is in none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .episodes import Policy, Turn, act, draw, hash_numbers


class Truth(NamedTuple):
    """True advantages: two independent estimates [2, G, K, T] and their standard errors; NaN on turns not measured.

    Exact ones are equal, with the error 0.
    """

    halves: Tensor
    errors: Tensor


def branch(env: Any, state: dict[str, Any], action: str | None, policy: Policy, seed: int, gamma: float) -> float:
    """Return the discounted return of one branch from a state: of V, or of Q where a first action is given."""
    env.set_state(state)
    env.reseed(seed)
    rng, total, factor, over = np.random.default_rng(seed), 0.0, 1.0, False
    while not over:
        drawn = draw(policy, env, rng)  # a given action takes the place of a draw, so that Q and V share the later ones
        _, reward, over = act(env, action or drawn)
        total, factor, action = total + factor * reward, factor * gamma, None
    return total


def sample_truth(
    env: Any, groups: Sequence[Sequence[Sequence[Turn]]], policy: Policy, *, gamma: float, branches: int, turns: int,
    seed: int = 1,
) -> Truth:  # fmt: skip
    """Measure the advantage of at most `turns` turns of each episode, by `branches` of Q and as many of V a half."""
    shape = (2, len(groups), len(groups[0]), max(len(episode) for group in groups for episode in group))
    truth = Truth(torch.full(shape, torch.nan).double(), torch.full(shape, torch.nan).double())
    for g, k in np.ndindex(*shape[1:3]):
        episode = groups[g][k]
        for t in np.random.default_rng([seed, g, k]).permutation(len(episode))[:turns].tolist():
            for half in range(2):
                gains = []
                for number in range(branches):
                    luck = hash_numbers(seed, half, g, k, t, number)
                    q, v = (branch(env, episode[t].state, a, policy, luck, gamma) for a in (episode[t].action, None))
                    gains.append(q - v)
                truth.halves[half, g, k, t] = float(np.mean(gains))
                truth.errors[half, g, k, t] = float(np.std(gains, ddof=1)) / branches**0.5
    return truth
