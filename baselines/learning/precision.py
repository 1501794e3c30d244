"""Float32 master weights: what an optimizer trains where a model's own weights have 16 bits.

A bfloat16 number has 8 significant bits, so a step below 1/512 of a weight is rounded away, every time: at the learning
rates of reinforcement learning that is nearly every step. The optimizer therefore holds a float32 copy of each 16-bit
weight, in which steps add up, and the model holds their rounding (Micikevicius et al., 2018, arXiv 1710.03740,
section 3.1). Gradients are summed over forward passes in float32, too.

It costs 10 bytes per trained weight more than the 8 of 16-bit weights, gradients and moments: 4 for the master, 4 for
float32 moments, 2 for float32 gradients. Parameters that are float32 already (adapters, value heads) have no master
and cost nothing.

It does not make the model itself more precise: what is smaller than half a step of bfloat16 reaches the model when
enough of it has come together.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

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
