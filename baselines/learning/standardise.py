"""Standardised features: what the critics read instead of the states themselves."""

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
