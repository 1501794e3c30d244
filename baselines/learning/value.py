"""The value head: V(s) from the state of the last prompt token, behind a stop-gradient (VL-DAC eq. 4).

It reads what the model knew before it replied, so no word of the reply can leak into the baseline, and it never moves
the model. States of different observations differ by about 1 % of their norm, and training moves all of them together
by ten times as much between two rollouts; so the head reads them standardised by the statistics of their own rollout.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Standardise(nn.Module):
    """Subtract the mean and divide by the deviation that `fit` saw, then scale each row to unit deviation.

    Features of different states differ little beside what they have in common; the last step bounds what comes later.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("deviation", torch.ones(size))

    def fit(self, x: Tensor) -> None:
        """Take mean and deviation of features [B, size]; dimensions that hardly vary are not blown up."""
        deviation = x.std(0, correction=0)
        self.mean.copy_(x.mean(0))
        self.deviation.copy_(deviation + 0.1 * deviation.mean() + 1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Shape of `x`."""
        return nn.functional.layer_norm((x - self.mean) / self.deviation, x.shape[-1:])


class ValueHead(nn.Module):
    """Two-layer MLP on standardised states, with an output of zero before training.

    Args:
        hidden_size: width of the language model.
        width: width of the hidden layer.
        seed: initialisation; no global generator is read or moved.
    """

    def __init__(self, hidden_size: int, width: int = 256, seed: int = 0) -> None:
        super().__init__()
        self.norm = Standardise(hidden_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.inner = nn.Linear(hidden_size, width)
            self.outer = nn.Linear(width, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def fit(self, hidden: Tensor) -> None:
        """Take the statistics of a rollout's states [B, H], before any of them is valued."""
        self.norm.fit(hidden.float())

    def forward(self, hidden: Tensor, *, stop_gradient: bool = True) -> Tensor:
        """[B, H] states of the last prompt token -> [B] values, float32.

        The input is detached here, so no caller can forget it; only the ablation without a stop-gradient asks not to.
        """
        x = self.norm((hidden.detach() if stop_gradient else hidden).float())
        return self.outer(torch.nn.functional.silu(self.inner(x))).squeeze(-1)
