"""AdamW whose moments take 8 bits each instead of 32, by bitsandbytes (Dettmers et al., 2022, arXiv 2110.02861).

Imported only where `--optimizer adamw8bit` asks for it. Moments of tensors with fewer than 4,096 numbers stay 32-bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from bitsandbytes import optim
from torch import nn


class AdamW8bit(optim.AdamW8bit):
    """The library's, as checkpoints and engines of this package need it."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(parameters, lr=lr, betas=(0.9, 0.95), weight_decay=0.0)
        self.register_step_post_hook(_count_up)

    def state_dict(self) -> dict[str, Any]:
        """Flat per parameter, as torch's own: the library's hides its moments in a dictionary within."""
        return torch.optim.Optimizer.state_dict(self)

    def load_state_dict(self, state_dict: dict[str, Any], move_to_device: bool = True) -> None:
        """Load; step counts, which a checkpoint holds as tensors, become numbers again: the kernels take no other."""
        state = {
            key: {name: int(value) if name == "step" else value for name, value in entry.items()}
            for key, entry in state_dict["state"].items()
        }
        super().load_state_dict({**state_dict, "state": state}, move_to_device)


def _count_up(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Count up the versions of the weights, which the library's kernels do not: by them engines notice a step."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                torch.autograd.graph.increment_version(parameter)
