"""Episodes in groups of one start, as estimators see them, and how policies play them.

A policy here gives the probabilities of the legal actions, so that its true values can be computed. All ends count as
ends: the turn limit is part of the state, and nothing is paid after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
        rewards: [G, K, T] float64, 0 after the end.
        mask: [G, K, T] bool, True on turns that were played.
        keys: [G, K, T] int64; equal pictures have equal keys.
        actions: [G, K, T] int64, numbers of the actions.
        gamma: discount.
        values: [G, K, T] float64, the true values of the states; None where they are not known.
        states: [number of keys, H] float32, the tiny model's states of the prompts by key; None without a model.
        earlier: other episodes of the same policy, from which critics are fitted.
    """

    rewards: Tensor
    mask: Tensor
    keys: Tensor
    actions: Tensor
    gamma: float = 1.0
    values: Tensor | None = None
    states: Tensor | None = None
    earlier: Episodes | None = None

    @property
    def ended(self) -> Tensor:
        """True on the last turn of each episode, [G, K, T]."""
        after = torch.zeros_like(self.mask)
        after[..., :-1] = self.mask[..., 1:]
        return self.mask & ~after

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

    def choose(self, groups: Tensor | slice) -> Episodes:
        """Return some groups."""
        parts = {name: getattr(self, name)[groups] for name in ("rewards", "mask", "keys", "actions")}
        return replace(self, **parts, values=None if self.values is None else self.values[groups])


@dataclass
class Turn:
    """One turn of one episode: `state` is what `remember` returned before the action."""

    key: str
    action: str
    reward: float
    state: Any = None


@dataclass
class Book:
    """Numbers of keys and actions, and the first prompt of each key, over all episodes of a cell."""

    keys: dict[str, int] = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)
    prompts: list[tuple[str, str, Any]] = field(default_factory=list)

    def lay_out(self, groups: Sequence[Sequence[Sequence[Turn]]], gamma: float) -> Episodes:
        """Return the episodes as padded tensors."""
        longest = max(len(episode) for group in groups for episode in group)
        shape = (len(groups), len(groups[0]), longest)
        rewards, mask = np.zeros(shape), np.zeros(shape, bool)
        keys, actions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for g, group in enumerate(groups):
            for k, episode in enumerate(group):
                for t, turn in enumerate(episode):
                    rewards[g, k, t], mask[g, k, t], keys[g, k, t] = turn.reward, True, self.keys[turn.key]
                    actions[g, k, t] = self.actions.setdefault(turn.action, len(self.actions))
        return Episodes(*map(torch.from_numpy, (rewards, mask, keys, actions)), gamma=gamma)

    def note(self, observation: dict[str, Any], info: dict[str, Any]) -> str:
        """Return the key of an observation's picture."""
        key = hashlib.sha256(observation["image"].tobytes()).hexdigest()[:16]
        if key not in self.keys:
            self.keys[key] = len(self.keys)
            told = info["vlgym"]
            self.prompts.append((told["instructions"], told["turn_text"], observation["image"].copy()))
        return key


def noisy_oracle(error: float) -> Policy:
    """Return the oracle with a uniformly random legal action in a share `error` of the turns; 1 is random play."""

    def policy(env: Any) -> tuple[Sequence[str], Sequence[float]]:
        legal = env.legal_actions()
        best = env.oracle() if error < 1 else None
        share = (1.0 if best is None else error) / len(legal)
        return legal, [share + (1 - error) * (name == best) for name in legal]

    return policy


def draw(policy: Policy, env: Any, rng: np.random.Generator) -> str:
    """Draw an action of a policy."""
    names, shares = policy(env)
    return names[min(int(np.searchsorted(np.cumsum(shares), rng.random(), side="right")), len(names) - 1)]


def act(env: Any, action: str) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:
    """Take a legal action; return observation, reward, whether the episode ended, and info."""
    reply = write_reply(env.parser, [action], "", env.legal_actions())
    observation, reward, terminated, truncated, info = env.step(reply)
    return observation, float(reward), terminated or truncated, info


def play(
    env: Any, policy: Policy, book: Book, *, groups: Sequence[int], size: int, seed: int, eyes: Any = None,
    remember: Callable[[Any], Any] = lambda env: None,
) -> list[list[list[Turn]]]:  # fmt: skip
    """Play `size` episodes from each start; chance differs within a group, unlike in the learners' groups.

    Args:
        env: an environment; it may be one without pictures, which is faster.
        policy: who plays.
        book: numbers the pictures.
        groups: numbers of the starts.
        size: episodes of a group (K).
        seed: of policy and chance.
        eyes: an environment with pictures that repeats the steps of one without; None where `env` has them.
        remember: takes the environment before a turn; what it returns is the turn's `state`.
    """
    played = []
    for start in groups:
        group = []
        for number in range(size):
            rng, luck = np.random.default_rng([seed, start, number]), hash_numbers(seed, start, number)
            for each in (env, eyes or env):
                observation, info = each.reset(seed=episode_seed(env.vlgym_spec.id, "train", start))
                each.reseed(luck)
            episode: list[Turn] = []
            over = False
            while not over:
                turn = Turn(book.note(observation, info), draw(policy, env, rng), 0.0, remember(env))
                observation, turn.reward, over, info = act(env, turn.action)
                if eyes is not None:
                    observation, _, over, info = act(eyes, turn.action)
                episode.append(turn)
            group.append(episode)
        played.append(group)
    return played


def hash_numbers(*numbers: int) -> int:
    """Return a seed that depends on all of these numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
