"""Gradient steps that survive a bad batch, the learning rate's schedule, and the metrics of an update."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vlgym.errors import FailedError

from ..runs import distributed
from ..runs.checkpoint import load_optimizer, optimizer_tensors
from ..runs.distributed import ALONE, World
from .losses import PolicyLoss

HALF = (torch.bfloat16, torch.float16)


class MasterWeights:
    """The masters of some parameters, and the way of gradients to them and of weights back.

    After every backward pass a gradient is added to its master's in float32 and taken off the parameter. After every
    step of the optimizer that was given to `attach`, the parameters become the rounded masters, in place, so that
    engines notice.

    Args:
        parameters: what is to be trained.

    Attributes:
        parameters: what the optimizer gets, in the same order: a master, float32, for each 16-bit parameter that
            requires a gradient, and every other parameter itself.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters: list[nn.Parameter] = []
        self._pairs: list[tuple[nn.Parameter, nn.Parameter]] = []  # (of the model, its master)
        self._hooks = []
        for parameter in parameters:
            if parameter.dtype not in HALF or not parameter.requires_grad:
                self.parameters.append(parameter)
                continue
            master = nn.Parameter(parameter.detach().float())
            self.parameters.append(master)
            self._pairs.append((parameter, master))
            self._hooks.append(parameter.register_post_accumulate_grad_hook(partial(_hand_over, master)))

    def attach(self, optimizer: Optimizer) -> None:
        """Write the masters back after every step of an optimizer, which was made with `parameters`."""
        if self._pairs:
            optimizer.register_step_post_hook(lambda *_: self.write())
            _OF[optimizer] = self

    @torch.no_grad()
    def write(self) -> None:
        """Round the masters into the model's weights, in place."""
        for parameter, master in self._pairs:
            parameter.copy_(master)

    @torch.no_grad()
    def read(self) -> None:
        """Make the masters what the model's weights are."""
        for parameter, master in self._pairs:
            master.copy_(parameter)

    def release(self) -> None:
        """Leave the parameters' gradients alone from now on."""
        for hook in self._hooks:
            hook.remove()

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def tensors(self, prefix: str) -> dict[str, Tensor]:
        """The masters under `prefix.`, by number."""
        return {f"{prefix}.{i}": master.detach() for i, (_, master) in enumerate(self._pairs)}

    @torch.no_grad()
    def load(self, prefix: str, tensors: dict[str, Tensor]) -> None:
        """Restore `tensors`, in place; from a checkpoint without masters they are the model's weights as restored."""
        self.read()
        for i, (_, master) in enumerate(self._pairs):
            if (saved := tensors.get(f"{prefix}.{i}")) is not None:
                master.copy_(saved)


_OF: WeakKeyDictionary[Optimizer, MasterWeights] = WeakKeyDictionary()


def masters_of(optimizer: Optimizer) -> MasterWeights | None:
    """The master weights that an optimizer steps; None where the model's own weights are float32."""
    return _OF.get(optimizer)


def _hand_over(master: nn.Parameter, parameter: Tensor) -> None:
    """Move a parameter's new gradient to its master."""
    gradient, parameter.grad = parameter.grad, None
    if gradient is None:
        return
    if master.grad is None:
        master.grad = gradient.float()
    else:
        master.grad.add_(gradient)


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
    """AdamW as every learner uses it for the policy; it trains float32 masters of 16-bit weights."""
    masters = MasterWeights(parameters)
    # Not fused: that does not count up the version of a tensor, by which engines notice new weights.
    optimizer = torch.optim.AdamW(masters.parameters, lr=lr, betas=(0.9, 0.95), weight_decay=0.0, foreach=True)
    masters.attach(optimizer)
    return optimizer


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
            self.skips_in_a_row = 0
        optimizer.zero_grad(set_to_none=True)
        if self.skips_in_a_row >= MAX_SKIPS:
            raise FailedError(
                f"{MAX_SKIPS} gradient steps in a row had a non-finite {name} loss or gradient; "
                "the newest checkpoint is intact. Resume from it with a smaller --lr, or with --dtype float32."
            )

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Moments, step counts and master weights of every optimizer."""
        parts = [optimizer_tensors(f"optimizer.{name}", optimizer) for name, optimizer in self.named.items()]
        masters = {f"master.{name}": masters_of(optimizer) for name, optimizer in self.named.items()}
        parts += [master.tensors(prefix) for prefix, master in masters.items() if master is not None]
        return {name: tensor for part in parts for name, tensor in part.items()}

    def state(self) -> dict[str, int]:
        """JSON-able counts."""
        return {"skips": self.skips, "skips_in_a_row": self.skips_in_a_row}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, int]) -> None:
        """Restore `tensors` and `state`, the model's weights having been restored before."""
        for name, optimizer in self.named.items():
            load_optimizer(f"optimizer.{name}", optimizer, tensors)
            if (masters := masters_of(optimizer)) is not None:
                masters.load(f"master.{name}", tensors)
        self.skips, self.skips_in_a_row = state["skips"], state["skips_in_a_row"]
