"""Rollouts for the learners: play some steps, keep what was sampled, and compute step-level advantages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlgym.rollout import Runner
from vlgym.types import StepRecord

from . import losses
from .generate import Engine
from .policy import ModelPolicy, Sample, pad_rows
from .value import ValueHead


@dataclass
class Batch:
    """One rollout, flat: B = steps * environments, in time order.

    Attributes:
        samples: what was sampled, with the exact prompt of each step.
        ids: [B, R] int64; mask: [B, R] bool; old: [B, R] float32, log-probabilities when sampled.
        hidden: [B, H] float32, states of the last prompt tokens.
        advantages: [B] float32, one per environment step, normalised over the rollout; returns: [B] float32.
        ref: [B, R] float32 under the reference, or None without one.
    """

    samples: list[Sample]
    ids: Tensor
    mask: Tensor
    old: Tensor
    hidden: Tensor
    advantages: Tensor
    returns: Tensor
    ref: Tensor | None = None

    def score(self, engine: Engine, index: Tensor, *, flat: bool) -> Tensor:
        """Log-probabilities [len(index), R] of some of the replies under an engine's weights."""
        prompts = [self.samples[i].prompt for i in index.tolist()]
        return (engine.score_flat if flat else engine.score)(prompts, self.ids[index], self.mask[index])


class Collector:
    """Plays `steps` steps of every environment of a runner per call.

    Args:
        runner: the environments; it begins a new episode where one ends.
        policy: the model being trained.
        value: the value head.
        steps: steps of each environment per rollout.
        gamma, gae_lambda: of the step-level advantages.
    """

    def __init__(
        self, runner: Runner, policy: ModelPolicy, value: ValueHead, *, steps: int, gamma: float, gae_lambda: float
    ) -> None:
        self.runner, self.policy, self.value = runner, policy, value
        self.steps, self.gamma, self.gae_lambda = steps, gamma, gae_lambda
        self.open_returns = [0.0] * len(runner.slots)

    def collect(self) -> tuple[Batch, dict[str, float]]:
        """Play, and return the batch (without `ref`) and the rollout's figures."""
        rows = [self.runner.step(self.policy) for _ in range(self.steps)]
        records = [record for row in rows for record in row]
        samples: list[Sample] = [record.extra for record in records]
        ids, mask = pad_rows([sample.ids for sample in samples], self.policy.engine.family.pad_id)
        old, _ = pad_rows([sample.logp for sample in samples], 0.0)
        hidden = torch.stack([sample.hidden for sample in samples])
        advantages, returns, values = self._advantages(rows, hidden)
        batch = Batch(
            samples, ids, mask, old, hidden, losses.normalise_advantages(advantages.flatten()), returns.flatten()
        )
        stats = self._episodes(rows) | {
            "rollout/reward": float(np.mean([r.reward for r in records])),
            "rollout/invalid_rate": float(np.mean([r.invalid for r in records])),
            "rollout/reply_tokens": float(mask.sum(-1).float().mean()),
            "rollout/cut_rate": float(np.mean([sample.cut for sample in samples])),
            "rollout/token_logp": float(old.sum() / mask.sum()),
            "value/explained_variance": losses.explained_variance(values.flatten(), returns.flatten()),
        }
        return batch, stats

    @torch.no_grad()
    def _advantages(self, rows: Sequence[Sequence[StepRecord]], hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Step-level GAE, [T, N] each: advantages, returns, values.

        Truncated episodes bootstrap with V of their final observation.
        """
        family, shape = self.policy.engine.family, (len(rows), len(rows[0]))
        cut = [(t, n) for t, row in enumerate(rows) for n, r in enumerate(row) if r.truncated and not r.terminated]
        following = [family.encode(rows[t][n].final_messages or []) for t, n in cut]
        following += [family.encode(turn.messages) for turn in self.runner.turns()]
        values = self.value(hidden).view(shape)
        next_values = self.value(self.policy.engine.last_hidden(following))
        final_values = torch.zeros_like(values)
        for (t, n), v in zip(cut, next_values, strict=False):
            final_values[t, n] = v

        def grid(name: str) -> Tensor:
            return torch.tensor([[float(getattr(r, name)) for r in row] for row in rows], device=values.device)

        advantages, returns = losses.step_gae(
            grid("reward"), values, next_values[len(cut) :], grid("terminated") > 0, grid("truncated") > 0,
            final_values, gamma=self.gamma, lam=self.gae_lambda,
        )  # fmt: skip
        return advantages, returns, values

    def _episodes(self, rows: Sequence[Sequence[StepRecord]]) -> dict[str, Any]:
        ended: list[tuple[bool, float]] = []
        for row in rows:
            for n, record in enumerate(row):
                self.open_returns[n] += record.reward
                if record.terminated or record.truncated:
                    ended.append((record.success, self.open_returns[n]))
                    self.open_returns[n] = 0.0
        means = [float(np.mean(x)) for x in zip(*ended, strict=True)] if ended else [math.nan, math.nan]
        return {"episode/success": means[0], "episode/return": means[1], "episode/count": len(ended)}

    def get_state(self) -> dict[str, Any]:
        """JSON-able state of the environments and of the open episodes' returns."""
        return {"runner": self.runner.get_state(), "open_returns": self.open_returns}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        self.runner.set_state(state["runner"])
        self.open_returns = list(state["open_returns"])
