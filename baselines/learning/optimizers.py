"""Gradient steps that survive a bad batch, the learning rate's schedule, and the metrics of an update."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vlgym.errors import FailedError

from ..runs import distributed
from ..runs.checkpoint import load_optimizer, optimizer_tensors
from ..runs.distributed import ALONE, World
from .losses import PolicyLoss

MAX_SKIPS = 3  # non-finite gradient steps in a row before giving up
POLICY_METRICS = (
    "loss/policy", "loss/kl", "loss/clip_fraction", "loss/approx_kl", "loss/ratio_max", "policy/grad_norm",
    "policy/clipped_steps",
)  # fmt: skip


class Metrics:
    """Values of one update by name; `means` is what is logged."""

    def __init__(self) -> None:
        self.values: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, name: str, value: float) -> None:
        """Note one value."""
        self.values[name].append(value)

    def add_policy(self, policy: PolicyLoss, kl: Tensor | None, weights: Tensor) -> None:
        """Note the losses of one forward pass, [b] `weights` of its rows taken out again."""
        share = float(weights.sum())
        if kl is not None:
            self.add("loss/kl", float(kl.detach()) / share)
        self.add("loss/policy", float(policy.loss.detach()) / share)
        for name in ("clip_fraction", "approx_kl", "ratio_max"):
            self.add(f"loss/{name}", getattr(policy, name).item())

    def means(self) -> dict[str, float]:
        """Mean of each, and the number of the policy's gradient steps; a policy that did not learn in this update has
        zeros."""
        steps = len(self.values.get("policy/grad_norm", ()))
        for name in POLICY_METRICS:
            self.values.setdefault(name, [0.0])
        means = {name: float(np.mean(values)) for name, values in self.values.items()}
        return means | {"policy/gradient_steps": float(steps)}


def policy_optimizer(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """AdamW as every learner uses it for the policy."""
    return torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True)


@dataclass(frozen=True)
class Schedule:
    """Learning rate of the policy: 0 in the first updates, then a cosine.

    Attributes:
        first, last: its ends; last is a share of the first.
        updates: length of the run in updates; env_steps: in environment steps, where that is not None.
        rests: updates in which the policy does not learn.
    """

    first: float
    last: float
    updates: int
    env_steps: int | None = None
    rests: int = 0

    def rate(self, update: int, env_steps: int) -> float:
        """Return the rate of an update, counted from 1, after `env_steps` environment steps."""
        if update <= self.rests:
            return 0.0
        if self.env_steps is None:
            share = (update - self.rests - 1) / max(1, self.updates - self.rests - 1)
        else:
            share = env_steps / self.env_steps
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
        return self.first * (self.last + (1 - self.last) * cosine)


class Optimizers:
    """The optimizers of a learner, stepped with clipped gradients that are summed over processes.

    Args:
        named: optimizers by name; the name is part of metrics and checkpoints.
        max_grad_norm: limit of each one's gradient norm.
        world: the processes.

    Attributes:
        skips: gradient steps left out because a loss or gradient was not finite; skips_in_a_row: the newest of them.
    """

    def __init__(self, named: dict[str, torch.optim.Optimizer], max_grad_norm: float, world: World = ALONE) -> None:
        self.named, self.max_grad_norm, self.world = named, max_grad_norm, world
        self.skips = self.skips_in_a_row = 0

    def set_rate(self, name: str, rate: float) -> float:
        """Give an optimizer its learning rate, and return it."""
        for group in self.named[name].param_groups:
            group["lr"] = rate
        return rate

    def step(self, name: str, loss: float, metrics: Metrics) -> None:
        """Clip and step one optimizer, then clear its gradients. A non-finite loss or gradient is skipped and counted.

        Raises:
            FailedError: `MAX_SKIPS` in a row were skipped.
        """
        optimizer = self.named[name]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        distributed.sum_gradients(parameters, self.world)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm))
        metrics.add(f"{name}/grad_norm", norm)
        metrics.add(f"{name}/clipped_steps", float(norm > self.max_grad_norm))
        if distributed.any_of(not (math.isfinite(loss) and math.isfinite(norm)), self.world):
            self.skips += 1
            self.skips_in_a_row += 1
        else:
            optimizer.step()
            # A fused optimizer does not count up the version of a tensor, by which engines notice new weights.
            torch.autograd.graph.increment_version(parameters)
            self.skips_in_a_row = 0
        optimizer.zero_grad(set_to_none=True)
        if self.skips_in_a_row >= MAX_SKIPS:
            raise FailedError(
                f"{MAX_SKIPS} gradient steps in a row had a non-finite {name} loss or gradient; "
                "the newest checkpoint is intact. Resume from it with a smaller --lr, or with --dtype float32."
            )

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Moments and step counts of every optimizer."""
        parts = [optimizer_tensors(f"optimizer.{name}", optimizer) for name, optimizer in self.named.items()]
        return {name: tensor for part in parts for name, tensor in part.items()}

    def state(self) -> dict[str, int]:
        """JSON-able counts."""
        return {"skips": self.skips, "skips_in_a_row": self.skips_in_a_row}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, int]) -> None:
        """Restore `tensors` and `state`."""
        for name, optimizer in self.named.items():
            load_optimizer(f"optimizer.{name}", optimizer, tensors)
        self.skips, self.skips_in_a_row = state["skips"], state["skips_in_a_row"]
