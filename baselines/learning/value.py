"""The value head: V(s) from the state of the last prompt token, behind a stop-gradient (VL-DAC eq. 4).

It reads what the model knew before it replied, so no word of the reply can leak into the baseline, and it never moves
the model.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ValueHead(nn.Module):
    """Two-layer MLP with a normalised input and an output of zero before training.

    Args:
        hidden_size: width of the language model.
        width: width of the hidden layer.
        seed: initialisation; no global generator is read or moved.
    """

    def __init__(self, hidden_size: int, width: int = 256, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.norm = nn.LayerNorm(hidden_size)
            self.inner = nn.Linear(hidden_size, width)
            self.outer = nn.Linear(width, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor, *, stop_gradient: bool = True) -> Tensor:
        """[B, H] states of the last prompt token -> [B] values, float32.

        The input is detached here, so no caller can forget it; only the ablation without a stop-gradient asks not to.
        """
        x = self.norm((hidden.detach() if stop_gradient else hidden).float())
        return self.outer(torch.nn.functional.silu(self.inner(x))).squeeze(-1)
