"""ArCHer's critics: two Q and two V on features of a frozen model, and target copies that follow them slowly."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .standardise import Standardise


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
