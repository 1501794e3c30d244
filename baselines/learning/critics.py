"""ArCHer's critics: two Q and two V on features of a frozen model, and target copies that follow them slowly."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Critics(nn.Module):
    """Two Q and two V: MLPs with two hidden layers and an output of zero before training.

    Args:
        state_size, action_size: lengths of the features.
        width: of the hidden layers.
        seed: initialisation; no global generator is read or moved.
    """

    def __init__(self, state_size: int, action_size: int, width: int = 256, seed: int = 0) -> None:
        super().__init__()
        self.state, self.action = Standardise(state_size), Standardise(action_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.qs = nn.ModuleList(_mlp(state_size + action_size, width) for _ in range(2))
            self.vs = nn.ModuleList(_mlp(state_size, width) for _ in range(2))

    def q(self, states: Tensor, actions: Tensor) -> Tensor:
        """[B, H] and [B, A] features -> [2, B]."""
        x = torch.cat([self.state(states), self.action(actions)], dim=-1)
        return torch.stack([q(x).squeeze(-1) for q in self.qs])

    def v(self, states: Tensor) -> Tensor:
        """[B, H] features -> [2, B]."""
        x = self.state(states)
        return torch.stack([v(x).squeeze(-1) for v in self.vs])


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


def _mlp(inputs: int, width: int) -> nn.Sequential:
    last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last)


@torch.no_grad()
def follow(target: nn.Module, module: nn.Module, tau: float) -> None:
    """Polyak averaging: move every parameter of `target` by the share `tau` towards `module`'s."""
    for slow, fast in zip(target.parameters(), module.parameters(), strict=True):
        slow.lerp_(fast, tau)
