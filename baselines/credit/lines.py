"""NumberLine in tensors: its episodes, and the exact values of any policy, for many starts at once.

The horizon grows with the number of targets, and nothing else changes. Tests compare rules and values with the
environment and with Monte Carlo. A policy is a table [6, 6] of the probability of `+` by target and current number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from vlgym.env.seeding import episode_seed
from vlgym.registry.making import unwrap

from .episodes import Episodes, Truth

NUMBERS, TURNS = 6, 10
"""Numbers on the line, and turns for each target."""
MOVES = np.array([-1, 1])


class Starts(NamedTuple):
    """Current numbers [S] and targets [S, n] of S starts."""

    current: np.ndarray
    targets: np.ndarray


class Played(NamedTuple):
    """Episodes, their exact advantages, and the gain [G, K, T] of `+` over `-` in each state."""

    episodes: Episodes
    truth: Truth
    gain: Tensor


def draw_starts(targets: int, first: int, count: int) -> Starts:
    """Return the starts of `count` train episodes of NumberLine, from number `first` on."""
    import vlgym

    env = unwrap(vlgym.make("vlgym/NumberLine-v0", targets=targets, modality="none"))
    found = []
    for index in range(first, first + count):
        env.reset(seed=episode_seed("vlgym/NumberLine-v0", "train", index))
        found.append((env.current, [env.target, *env.later]))
    return Starts(*map(np.array, zip(*found, strict=True)))


def noisy(error: float) -> np.ndarray:
    """Return the table of the oracle with a uniformly random move in a share `error` of the turns."""
    target, current = np.indices((NUMBERS, NUMBERS))
    return error / 2 + (1 - error) * (target > current)


def move(target: np.ndarray, current: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the next number, the reward, and whether the target was reached."""
    after = np.clip(current + MOVES[action], 0, NUMBERS - 1)
    reached = after == target
    return after, np.where(reached, 1.0, -1.0 * (np.abs(target - after) >= np.abs(target - current))), reached


def solve(starts: Starts, plus: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return V [turns left, target's number, S, current] and Q [..., action] by backward induction.

    V of no turns, and V after the last target, are 0.
    """
    count, n = starts.targets.shape
    target = starts.targets.T[:, :, None]  # [n, S, 1]
    current = np.arange(NUMBERS).reshape(1, 1, -1)
    share = plus[target, current]  # [n, S, current]
    v = np.zeros((TURNS * n + 1, n + 1, count, NUMBERS))
    q = np.zeros((TURNS * n + 1, n, count, NUMBERS, 2))
    outcomes = [move(target, current, np.array(action)) for action in range(2)]
    for left in range(1, TURNS * n + 1):
        for action, (after, reward, reached) in enumerate(outcomes):
            at = np.broadcast_to(after, reached.shape)
            same, following = (np.take_along_axis(v[left - 1][part], at, -1) for part in (slice(n), slice(1, n + 1)))
            q[left, ..., action] = reward + gamma * np.where(reached, following, same)
        v[left, :n] = (1 - share) * q[left, ..., 0] + share * q[left, ..., 1]
    return v, q


def play_lines(starts: Starts, plus: np.ndarray, *, size: int, seed: int, gamma: float = 1.0) -> Played:
    """Play `size` episodes from each start, with their exact values and advantages."""
    v, q = solve(starts, plus, gamma)
    count, n = starts.targets.shape
    rng, shape = np.random.default_rng(seed), (count, size)
    row = np.broadcast_to(np.arange(count)[:, None], shape)
    current, number = np.broadcast_to(starts.current[:, None], shape).copy(), np.zeros(shape, int)
    alive, columns = np.ones(shape, bool), []
    for left in range(TURNS * n, 0, -1):
        target = starts.targets[row, np.minimum(number, n - 1)]
        action = (rng.random(shape) < plus[target, current]).astype(int)
        after, reward, reached = move(target, current, action)
        at = (left, np.minimum(number, n - 1), row, current)
        columns.append((reward * alive, alive, target * NUMBERS + current, action, v[at], q[at]))
        current, number = np.where(alive, after, current), number + (reached & alive)
        alive = alive & (number < n)
        if not alive.any():
            break
    rewards, mask, keys, actions, values, qs = (
        torch.from_numpy(np.stack(column, axis=2)) for column in zip(*columns, strict=True)
    )
    advantages = qs.gather(-1, actions.unsqueeze(-1)).squeeze(-1) - values
    episodes = Episodes(rewards, mask, keys, actions, gamma, values)
    return Played(episodes, Truth(advantages.expand(2, *mask.shape), torch.zeros(2, *mask.shape)), qs[..., 1] - qs[..., 0])


def sum_by_key(terms: Tensor, episodes: Episodes) -> Tensor:
    """Sum the terms of the turns that were played by key, [36]."""
    mask = episodes.mask
    return torch.zeros(NUMBERS**2).double().index_add(0, episodes.keys[mask], terms[mask].double())


def sum_gradient(advantages: Tensor, episodes: Episodes, plus: np.ndarray) -> Tensor:
    """Return the policy gradient sum_t A_t grad log pi(a_t|s_t) as coefficients of the log-odds of each key, [36]."""
    return sum_by_key(advantages * (episodes.actions - torch.from_numpy(plus).flatten()[episodes.keys]), episodes)


def true_gradient(played: Played, plus: np.ndarray) -> Tensor:
    """Return the policy gradient with the true advantages of both actions in the states of these episodes, [36]."""
    share = torch.from_numpy(plus).flatten()[played.episodes.keys]
    return sum_by_key(share * (1 - share) * played.gain, played.episodes)
