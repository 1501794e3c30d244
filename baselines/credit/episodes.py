"""Episodes in groups of one start, as estimators see them, how policies play them, and the true advantages by branches.

A policy here gives the probabilities of the legal actions, so that its true values can be computed. All ends count as
ends: the turn limit is part of the state, and nothing is paid after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vlgym.env.seeding import episode_seed
from vlgym.parsers import write_reply

Policy = Callable[[Any], tuple[Sequence[str], Sequence[float]]]
"""Takes an environment; returns the legal actions and their probabilities."""


@dataclass
class Episodes:
    """G groups of K episodes of one start, of at most T turns.

    Attributes:
        rewards: [G, K, T] float64, 0 after the end; mask: [G, K, T] bool, True on turns that were played.
        keys: [G, K, T] int64, equal for equal pictures; actions: [G, K, T] int64, numbers of the actions.
        gamma: discount.
        values: [G, K, T] float64, the true values of the states; None where they are not known.
        states: [keys, H] float32, a model's states of the prompts; None without a model.
        earlier: other episodes of the same policy, to which critics are fitted; fitted: values of such critics.
    """

    rewards: Tensor
    mask: Tensor
    keys: Tensor
    actions: Tensor
    gamma: float = 1.0
    values: Tensor | None = None
    states: Tensor | None = None
    earlier: Episodes | None = None
    fitted: dict[int, Tensor] = field(default_factory=dict)

    @property
    def ended(self) -> Tensor:
        """True on the last turn of each episode, [G, K, T]."""
        return self.mask & ~torch.nn.functional.pad(self.mask[..., 1:], (0, 1))

    @property
    def to_go(self) -> Tensor:
        """Discounted sum of the rewards from each turn on, [G, K, T]."""
        out, following = torch.zeros_like(self.rewards), torch.zeros_like(self.rewards[..., 0])
        for t in reversed(range(self.rewards.shape[-1])):
            out[..., t] = following = self.rewards[..., t] + self.gamma * following
        return out

    @property
    def returns(self) -> Tensor:
        """Discounted returns of the episodes, [G, K]."""
        return self.to_go[..., 0]

    def choose(self, groups: slice) -> Episodes:
        """Return some groups."""
        parts = {name: getattr(self, name)[groups] for name in ("rewards", "mask", "keys", "actions")}
        return replace(self, **parts, values=None if self.values is None else self.values[groups], fitted={})


class Turn(NamedTuple):
    """One turn: the picture's key, the state before the action, the action and its reward."""

    key: str
    state: dict[str, Any]
    action: str
    reward: float


def lay_out(groups: Sequence[Sequence[Sequence[Turn]]], gamma: float) -> Episodes:
    """Return episodes as padded tensors."""
    shape = (len(groups), len(groups[0]), max(len(episode) for group in groups for episode in group))
    rewards, mask = np.zeros(shape), np.zeros(shape, bool)
    keys, actions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    numbers: tuple[dict[str, int], dict[str, int]] = {}, {}
    for g, k in np.ndindex(*shape[:2]):
        for t, turn in enumerate(groups[g][k]):
            rewards[g, k, t], mask[g, k, t] = turn.reward, True
            keys[g, k, t] = numbers[0].setdefault(turn.key, len(numbers[0]))
            actions[g, k, t] = numbers[1].setdefault(turn.action, len(numbers[1]))
    return Episodes(*map(torch.from_numpy, (rewards, mask, keys, actions)), gamma=gamma)


def noisy_oracle(error: float) -> Policy:
    """Return the oracle with a uniformly random legal action in a share `error` of the turns; 1 is random play."""

    def policy(env: Any) -> tuple[Sequence[str], Sequence[float]]:
        legal, best = env.legal_actions(), env.oracle() if error < 1 else None
        share = (1.0 if best is None else error) / len(legal)
        return legal, [share + (1 - error) * (name == best) for name in legal]

    return policy


def draw(policy: Policy, env: Any, rng: np.random.Generator) -> str:
    """Draw an action of a policy."""
    names, shares = policy(env)
    return names[min(int(np.searchsorted(np.cumsum(shares), rng.random(), side="right")), len(names) - 1)]


def act(env: Any, action: str) -> tuple[dict[str, Any], float, bool]:
    """Take a legal action; return observation, reward, and whether the episode ended."""
    reply = write_reply(env.parser, [action], "", env.legal_actions())
    observation, reward, terminated, truncated, _ = env.step(reply)
    return observation, float(reward), terminated or truncated


def hash_numbers(*numbers: int) -> int:
    """Return a seed that depends on all of these numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def play(env: Any, eyes: Any, policy: Policy, *, groups: int, size: int, seed: int) -> list[list[list[Turn]]]:
    """Play `size` episodes from each of `groups` starts; chance differs within a group, unlike in the learners' groups.

    `env` may be one without pictures, which is faster; `eyes`, with pictures, repeats its steps.
    """
    played: list[list[list[Turn]]] = [[[] for _ in range(size)] for _ in range(groups)]
    for start, number in np.ndindex(groups, size):
        rng, luck, over = np.random.default_rng([seed, start, number]), hash_numbers(seed, start, number), False
        for each in (env, eyes):
            observation, _ = each.reset(seed=episode_seed(env.vlgym_spec.id, "train", start))
            each.reseed(luck)
        while not over:
            key = hashlib.sha256(observation["image"].tobytes()).hexdigest()
            state, action = env.get_state(), draw(policy, env, rng)
            observation, _, _ = act(eyes, action)
            _, reward, over = act(env, action)
            played[start][number].append(Turn(key, state, action, reward))
    return played


class Truth(NamedTuple):
    """True advantages: two independent estimates [2, G, K, T] and their standard errors; NaN on turns not measured.

    Exact ones are equal, with the error 0.
    """

    halves: Tensor
    errors: Tensor


def branch(env: Any, state: dict[str, Any], action: str | None, policy: Policy, seed: int, gamma: float) -> float:
    """Return the discounted return of one branch from a state: of V, or of Q where a first action is given.

    It takes fresh luck (`VLEnv.reseed`; `set_state` alone would repeat the episode's).
    """
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
    """Measure the advantage of at most `turns` turns of each episode, by `branches` of Q and as many of V a half.

    Q and V branches of one number share their luck (common random numbers), halves share nothing, and the episode that
    is judged is in none.
    """
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
