"""Rollouts for the learners: play, keep what was sampled, and lay it out as one batch.

`Collector` plays a fixed number of steps of every environment and computes step-level advantages with a critic;
`GroupCollector` plays whole episodes, several from each start, for learners that compare returns instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from vlgym.prompts import PromptBuilder
from vlgym.rollout import Runner
from vlgym.types import StepRecord

from ..engine.engine import Engine
from ..engine.policy import ModelPolicy, Sample, pad_rows
from ..models.family import Prompt
from ..runs import distributed
from ..runs.distributed import ALONE, World
from . import losses
from .rewards import RewardShaper
from .value import ValueHead

Rows = Sequence[Sequence[StepRecord]]


@dataclass
class Batch:
    """One rollout, flat: B environment steps.

    Attributes:
        samples: what was sampled, with the exact prompt of each step.
        spans: character range of the action in each reply, None where none was read.
        ids: [B, R] int64; mask: [B, R] bool; old: [B, R] float32, log-probabilities when sampled.
        hidden: [B, H] float32, states of the last prompt tokens.
        advantages: [B] float32, one per environment step, normalised over the rollout; returns: [B] float32.
        units: rows of the batch that belong together, in the order that minibatches count them: single steps, or the
            steps of one episode.
        ref: [B, R] float32 under the reference, or None without one.
    """

    samples: list[Sample]
    spans: list[tuple[int, int] | None]
    ids: Tensor
    mask: Tensor
    old: Tensor
    hidden: Tensor
    advantages: Tensor
    returns: Tensor
    units: list[list[int]]
    ref: Tensor | None = None

    def score(self, engine: Engine, index: Tensor, *, flat: bool, train_vision: bool = False) -> Tensor:
        """Log-probabilities [len(index), R] of some of the replies under an engine's weights."""
        return self.score_states(engine, index, flat=flat, train_vision=train_vision)[0]

    def score_states(
        self, engine: Engine, index: Tensor, *, flat: bool, train_vision: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The same, and the states of the last prompt tokens [len(index), H] under these weights."""
        prompts = [self.samples[i].prompt for i in index.tolist()]
        score = engine.score_flat_states if flat else engine.score_states
        return score(prompts, self.ids[index], self.mask[index], train_vision=train_vision)


def pack(records: Sequence[StepRecord], pad_id: int) -> Batch:
    """Lay out step records that a `ModelPolicy` answered; advantages and returns are zero."""
    samples: list[Sample] = [record.extra for record in records]
    ids, mask = pad_rows([sample.ids for sample in samples], pad_id)
    old, _ = pad_rows([sample.logp for sample in samples], 0.0)
    hidden = torch.stack([sample.hidden for sample in samples])
    zeros = torch.zeros(len(samples), device=old.device)
    units = [[i] for i in range(len(samples))]
    return Batch(samples, [r.span for r in records], ids, mask, old, hidden, zeros, zeros.clone(), units)


def figures(records: Sequence[StepRecord], batch: Batch) -> dict[str, float]:
    """What every rollout logs."""
    return {
        "rollout/reward": float(np.mean([r.reward for r in records])),
        "rollout/invalid_rate": float(np.mean([r.invalid for r in records])),
        "rollout/reply_tokens": float(batch.mask.sum(-1).float().mean()),
        "rollout/cut_rate": float(np.mean([sample.cut for sample in batch.samples])),
        "rollout/token_logp": float(batch.old.sum() / batch.mask.sum()),
    }


def episode_figures(ended: Sequence[tuple[bool, float]]) -> dict[str, float]:
    """Of the episodes that ended, given as (success, undiscounted return of the environment's own rewards)."""
    means = [float(np.mean(x)) for x in zip(*ended, strict=True)] if ended else [math.nan, math.nan]
    return {"episode/success": means[0], "episode/return": means[1], "episode/count": float(len(ended))}


class Collector:
    """Plays `steps` steps of every environment per call; environments go on where they stood.

    Args:
        runners: one, or two with as many environments each, which are then stepped alternately: one half acts while the
            model answers the other.
        policy: the model being trained.
        value: the value head.
        steps: steps of each environment per rollout.
        gamma, gae_lambda: of the step-level advantages.
        shaper: reward shaping.
        world: for the normalisation of advantages over processes.
    """

    def __init__(
        self,
        runners: Runner | Sequence[Runner],
        policy: ModelPolicy,
        value: ValueHead,
        *,
        steps: int,
        gamma: float,
        gae_lambda: float,
        shaper: RewardShaper | None = None,
        world: World = ALONE,
    ) -> None:
        self.runners = [runners] if isinstance(runners, Runner) else list(runners)
        self.policy, self.value, self.shaper, self.world = policy, value, shaper, world
        self.steps, self.gamma, self.gae_lambda = steps, gamma, gae_lambda
        self.env_seconds = 0.0  # of the last rollout
        self.open_returns = [0.0] * sum(len(runner.slots) for runner in self.runners)

    def collect(self) -> tuple[Batch, dict[str, float]]:
        """Play, and return the batch (without `ref`) and the rollout's figures."""
        rows = self.play()
        records = [record for row in rows for record in row]
        batch = pack(records, self.policy.engine.family.pad_id)
        advantages, returns, values = self._advantages(rows, batch.hidden)
        everywhere = distributed.gather(advantages.flatten(), self.world)
        normal = losses.normalise_advantages(everywhere)
        batch.advantages = normal.view(self.world.size, -1)[self.world.rank]
        batch.returns = returns.flatten()
        explained = losses.explained_variance(values.flatten(), batch.returns)
        return batch, self.figures(rows, batch) | {"value/explained_variance": explained}

    def play(self) -> list[list[StepRecord]]:
        """Step; one row of records per time step, environments in order."""
        before = sum(runner.seconds for runner in self.runners)
        if len(self.runners) == 1:
            rows = [self.runners[0].step(self.policy) for _ in range(self.steps)]
        else:
            rows = play_alternately(self.runners[0], self.runners[1], self.policy, self.steps)
        self.env_seconds = sum(runner.seconds for runner in self.runners) - before
        return rows

    def figures(self, rows: Rows, batch: Batch) -> dict[str, float]:
        """What is logged of the rollout that was played last."""
        records = [record for row in rows for record in row]
        return self.episodes(rows) | figures(records, batch) | {"seconds/env": self.env_seconds}

    def shaped(self, rows: Rows) -> list[list[float]]:
        """Rewards as training sees them, [T][N]."""
        if self.shaper is None:
            return [[record.reward for record in row] for row in rows]
        return [self.shaper.shape(row, [len(record.extra.ids) for record in row]) for row in rows]

    def following(self, rows: Rows) -> list[list[Prompt | None]]:
        """The prompt after each step, [T][N]: of the next turn, or of the final observation where an episode was
        truncated; None where it terminated."""
        encode = self.policy.engine.family.encode
        last = [encode(turn.messages) for runner in self.runners for turn in runner.turns()]
        after: list[list[Prompt | None]] = []
        for t, row in enumerate(rows):
            coming = last if t + 1 == len(rows) else [record.extra.prompt for record in rows[t + 1]]
            after.append(
                [
                    None if r.terminated else encode(r.final_messages or []) if r.truncated else coming[n]
                    for n, r in enumerate(row)
                ]
            )
        return after

    @torch.no_grad()
    def _advantages(self, rows: Rows, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Step-level GAE, [T, N] each: advantages, returns, values.

        Truncated episodes bootstrap with V of their final observation.
        """
        family, shape = self.policy.engine.family, (len(rows), len(rows[0]))
        cut = [(t, n) for t, row in enumerate(rows) for n, r in enumerate(row) if r.truncated and not r.terminated]
        following = [family.encode(rows[t][n].final_messages or []) for t, n in cut]
        following += [family.encode(turn.messages) for runner in self.runners for turn in runner.turns()]
        values = self.value(hidden).view(shape)
        next_values = self.value(self.policy.engine.last_hidden(following))
        final_values = torch.zeros_like(values)
        for (t, n), v in zip(cut, next_values, strict=False):
            final_values[t, n] = v

        def flags(name: str) -> Tensor:
            return torch.tensor([[bool(getattr(r, name)) for r in row] for row in rows], device=values.device)

        advantages, returns = losses.step_gae(
            torch.tensor(self.shaped(rows), device=values.device), values, next_values[len(cut) :], flags("terminated"),
            flags("truncated"), final_values, gamma=self.gamma, lam=self.gae_lambda,
        )  # fmt: skip
        return advantages, returns, values

    def episodes(self, rows: Rows) -> dict[str, float]:
        """Figures of the episodes that ended; `open_returns` are carried on."""
        ended: list[tuple[bool, float]] = []
        for row in rows:
            for n, record in enumerate(row):
                self.open_returns[n] += record.reward
                if record.terminated or record.truncated:
                    ended.append((record.success, self.open_returns[n]))
                    self.open_returns[n] = 0.0
        return episode_figures(ended)

    def failures(self) -> list[dict[str, Any]]:
        """Failures of environments since the last call."""
        found = [failure for runner in self.runners for failure in runner.failures]
        for runner in self.runners:
            runner.failures.clear()
        return found

    def get_state(self) -> dict[str, Any]:
        """JSON-able state of the environments, of the open episodes' returns and of the reward shaping."""
        return {
            "runners": [runner.get_state() for runner in self.runners],
            "open_returns": self.open_returns,
            "shaper": self.shaper.get_state() if self.shaper is not None else None,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        for runner, saved in zip(self.runners, state["runners"], strict=True):
            runner.set_state(saved)
        self.open_returns = list(state["open_returns"])
        if self.shaper is not None:
            self.shaper.set_state(state["shaper"])

    def close(self) -> None:
        """Close every environment."""
        for runner in self.runners:
            runner.close()


def play_alternately(a: Runner, b: Runner, policy: ModelPolicy, steps: int) -> list[list[StepRecord]]:
    """Step two runners while the model answers the other one; rows hold `a`'s records, then `b`'s.

    The model runs in the worker thread and the environments in this one, because graphics contexts belong to the thread
    that made them. Every reply is sampled by the current weights, in one order.
    """
    rows: list[list[StepRecord]] = []
    with ThreadPoolExecutor(1) as pool:
        turns_a = a.turns()
        answer_a = pool.submit(policy.reply, turns_a)
        for t in range(steps):
            turns_b = b.turns()
            replies_a = answer_a.result()
            answer_b = pool.submit(policy.reply, turns_b)
            row = a.advance(turns_a, replies_a, policy.name)
            turns_a = a.turns()
            replies_b = answer_b.result()
            if t + 1 < steps:
                answer_a = pool.submit(policy.reply, turns_a)
            rows.append(row + b.advance(turns_b, replies_b, policy.name))
    return rows


class GroupCollector:
    """Plays one whole episode in every environment per call, `group` environments from each start.

    Args:
        envs: environments; consecutive ones form groups.
        policy: the model being trained.
        group: attempts at each start (K).
        gamma: discount of the episodes' returns.
        advantage: [G, K] returns -> [G, K] advantages.
        shaper: reward shaping.
        builder: prompt layout; by default each environment's own.
        remake: makes environment `i` anew (see `Runner`).
        world: which of the groups' episodes are this process's.
    """

    def __init__(
        self,
        envs: Sequence[gymnasium.Env[Any, Any]],
        policy: ModelPolicy,
        *,
        group: int,
        gamma: float,
        advantage: Callable[[Tensor], Tensor],
        shaper: RewardShaper | None = None,
        builder: PromptBuilder | None = None,
        remake: Callable[[int], gymnasium.Env[Any, Any]] | None = None,
        world: World = ALONE,
    ) -> None:
        self.envs, self.policy, self.group, self.gamma = list(envs), policy, group, gamma
        self.advantage, self.shaper, self.builder, self.remake, self.world = advantage, shaper, builder, remake, world
        self.next = 0  # number of the first episode of the next rollout, over all processes
        self._failures: list[dict[str, Any]] = []

    def collect(self) -> tuple[Batch, dict[str, float]]:
        """Play, and return the batch (without `ref`; rows ordered by episode) and the rollout's figures.

        Every step of an episode has the episode's advantage and return.
        """
        n = len(self.envs)
        runner = Runner(
            self.envs, split="train", first_episode=self.next + self.world.rank * n, episodes=n, builder=self.builder,
            repeats=self.group, remake=self.remake,
        )  # fmt: skip
        self.next += n * self.world.size
        episodes: list[list[StepRecord]] = [[] for _ in range(n)]
        returns = [0.0] * n
        while not runner.done:
            active = [slot.index for slot in runner.slots if slot.active]
            row = runner.step(self.policy)
            for slot, record in zip(active, row, strict=True):
                reward = record.reward
                if self.shaper is not None:
                    (reward,) = self.shaper.shape([record], [len(record.extra.ids)], [slot])
                returns[slot] += self.gamma ** len(episodes[slot]) * reward
                episodes[slot].append(record)
        self.envs = [slot.env for slot in runner.slots]
        self._failures += runner.failures
        records = [record for episode in episodes for record in episode]
        batch = pack(records, self.policy.engine.family.pad_id)
        outcome = torch.tensor(returns, device=batch.old.device)
        advantages = self.advantage(outcome.view(-1, self.group)).flatten()
        lengths = torch.tensor([len(episode) for episode in episodes], device=batch.old.device)
        batch.advantages = advantages.repeat_interleave(lengths)
        batch.returns = outcome.repeat_interleave(lengths)
        ends = lengths.cumsum(0).tolist()
        batch.units = [list(range(end - len(e), end)) for end, e in zip(ends, episodes, strict=True)]
        ended = [(episode[-1].success, sum(r.reward for r in episode)) for episode in episodes]
        return batch, episode_figures(ended) | figures(records, batch) | {"seconds/env": runner.seconds}

    def failures(self) -> list[dict[str, Any]]:
        """Failures of environments since the last call."""
        found, self._failures = self._failures, []
        return found

    def get_state(self) -> dict[str, Any]:
        """JSON-able state; between rollouts no episode is open."""
        return {"next": self.next, "shaper": self.shaper.get_state() if self.shaper is not None else None}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        self.next = state["next"]
        if self.shaper is not None:
            self.shaper.set_state(state["shaper"])

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()
