"""Episodes in groups of one start, how policies play them, and true advantages by branches.

A policy gives the probabilities of the legal actions, so that its true values can be computed. The
turn limit is part of the state: all ends count as ends, and nothing is paid after them.
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

Policy = Callable[[Any], tuple[Sequence[str], Sequence[float]]]  # legal actions, probabilities


@dataclass
class EpisodeBatch:
    """G groups of K episodes of one start, of at most T turns.

    Attributes:
        rewards: [G, K, T] float64, 0 after the end; mask: [G, K, T] bool, True on turns.
        keys: [G, K, T] int64, equal for equal pictures; actions: [G, K, T] int64, their numbers.
        gamma: discount.
        values: [G, K, T] float64, the true values of the states, where they are known.
        states: [keys, H] float32, a model's states of the prompts.
        earlier: episodes of the same policy, to which critics are fitted; fitted: their values.
    """

    rewards: Tensor
    mask: Tensor
    keys: Tensor
    actions: Tensor
    gamma: float = 1.0
    values: Tensor | None = None
    states: Tensor | None = None
    earlier: EpisodeBatch | None = None
    fitted: dict[int, Tensor] = field(default_factory=dict)

    @property
    def ended(self) -> Tensor:
        """True on the last turn of each episode, [G, K, T]."""
        return self.mask & ~torch.nn.functional.pad(self.mask[..., 1:], (0, 1))

    @property
    def to_go(self) -> Tensor:
        """Discounted sum of the rewards from each turn on, [G, K, T]."""
        out = self.rewards.clone()
        for t in reversed(range(out.shape[-1] - 1)):
            out[..., t] += self.gamma * out[..., t + 1]
        return out

    @property
    def returns(self) -> Tensor:
        """Discounted returns of the episodes, [G, K]."""
        return self.to_go[..., 0]

    def choose(self, groups: slice) -> EpisodeBatch:
        """Return some groups."""
        names = ("rewards", "mask", "keys", "actions", "values")
        parts = {name: x[groups] for name in names if (x := getattr(self, name)) is not None}
        return replace(self, **parts, fitted={})


class Truth(NamedTuple):
    """True advantages, two independent estimates [2, G, K, T], NaN if unknown; standard errors."""

    halves: Tensor
    errors: Tensor


Turns = dict[tuple[int, ...], tuple[dict[str, Any], str]]  # group, episode, turn -> state, action


def noisy_oracle(error: float) -> Policy:
    """Return the oracle with a uniformly random legal action in a share `error` of the turns."""

    def policy(env: Any) -> tuple[Sequence[str], Sequence[float]]:
        legal, best = env.legal_actions(), env.oracle() if error < 1 else None
        share = (1.0 if best is None else error) / len(legal)
        return legal, [share + (1 - error) * (name == best) for name in legal]

    return policy


def draw_action(policy: Policy, env: Any, rng: np.random.Generator) -> str:
    """Draw an action of a policy."""
    names, shares = policy(env)
    return names[min(int((np.cumsum(shares) <= rng.random()).sum()), len(names) - 1)]


def act(env: Any, action: str) -> tuple[dict[str, Any], float, bool]:
    """Take a legal action; return observation, reward, and whether the episode ended."""
    reply = write_reply(env.parser, [action], "", env.legal_actions())
    observation, reward, terminated, truncated, _ = env.step(reply)
    return observation, float(reward), terminated or truncated


def hash_numbers(*numbers: int) -> int:
    """Return a seed that depends on all of these numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def play(
    env: Any, eyes: Any, policy: Policy, *, groups: int, size: int, seed: int, gamma: float = 1.0
) -> tuple[EpisodeBatch, Turns]:
    """Play `size` episodes of different luck from each of `groups` starts. `env` may be without
    pictures, which is faster; `eyes`, with pictures, repeats its steps."""
    zeros = torch.zeros(groups, size, env.max_turns, dtype=torch.int64)
    episodes = EpisodeBatch(zeros.double(), zeros.bool(), zeros, zeros.clone(), gamma)
    turns, keys, actions = Turns(), dict[str, int](), dict[str, int]()
    for start, number in np.ndindex(groups, size):
        # Episodes of a group have one start, and differ in their luck.
        rng, over = np.random.default_rng([seed, start, number]), False
        for each in (env, eyes):
            observation, _ = each.reset(seed=episode_seed(env.vlgym_spec.id, "train", start))
            each.reseed(hash_numbers(seed, start, number))

        while not over:
            place, action = (start, number, env.turn), draw_action(policy, env, rng)
            turns[place], episodes.mask[place] = (env.get_state(), action), True
            key = hashlib.sha256(observation["image"].tobytes()).hexdigest()
            episodes.keys[place] = keys.setdefault(key, len(keys))
            episodes.actions[place] = actions.setdefault(action, len(actions))
            observation, (_, episodes.rewards[place], over) = act(eyes, action)[0], act(env, action)
    return episodes, turns


def branch(env: Any, state: dict[str, Any], action: str | None, policy: Policy, seed: int, gamma: float) -> float:
    """Return a branch's discounted return, with fresh luck: of V, or of Q where an action is given."""
    env.set_state(state)
    env.reseed(seed)
    rng, total, factor, over = np.random.default_rng(seed), 0.0, 1.0, False
    while not over:
        drawn = draw_action(policy, env, rng)  # also where Q has its action: later draws are shared
        _, reward, over = act(env, action or drawn)
        total, factor, action = total + factor * reward, factor * gamma, None
    return total


def sample_truth(
    env: Any, episodes: EpisodeBatch, turns: Turns, policy: Policy, *, branches: int, most: int, seed: int = 1
) -> Truth:
    """Measure the advantage of at most `most` turns an episode, by `branches` of Q and of V a half.
    Q and V share their luck in pairs (common random numbers); halves and the episode share nothing."""
    lengths, shape = episodes.mask.sum(-1), (2, *episodes.mask.shape)
    truth = Truth(*torch.full((2, *shape), torch.nan).double())
    for half, g, k in np.ndindex(2, *lengths.shape):
        measured = np.random.default_rng([seed, g, k]).permutation(int(lengths[g, k]))[:most]
        for t in measured.tolist():
            state, taken = turns[g, k, t]
            lucks = [hash_numbers(seed, half, g, k, t, number) for number in range(branches)]
            gains = np.zeros(branches)
            for number, luck in enumerate(lucks):
                q, v = (branch(env, state, x, policy, luck, episodes.gamma) for x in (taken, None))
                gains[number] = q - v
            truth.halves[half, g, k, t] = gains.mean()
            truth.errors[half, g, k, t] = gains.std(ddof=1) / branches**0.5
    return truth
