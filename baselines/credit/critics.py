"""Critics of the bench: the learners' own, fitted to earlier episodes of the same policy.

They read a model's state of each prompt; a reply is told by the number of its action.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..archer import Critics, follow
from ..learning.losses import td_targets, twin_loss
from ..vldac import ValueHead, value_loss
from .episodes import Episodes

STEPS, SIZE, WIDTH = 200, 128, 64
"""Gradient steps of a critic, turns in each, and the hidden layers' width."""


def read(episodes: Episodes, count: int = 0) -> Tensor:
    """Return the states of all turns [G, K, T, H], with `count` actions each action's one-hot row after them."""
    assert episodes.states is not None
    states = episodes.states[episodes.keys]
    return torch.cat([states, nn.functional.one_hot(episodes.actions, count).float()], dim=-1) if count else states


def fit_values(episodes: Episodes, count: int = 0) -> Tensor:
    """Return VL-DAC's value head on all turns [G, K, T], fitted to the earlier episodes' returns (VL-DAC, eq. 4).

    With `count` actions it reads a turn's reply too: V at the reply's last token.
    """
    assert episodes.earlier is not None
    if count not in episodes.fitted:
        mask, generator = episodes.earlier.mask, torch.Generator().manual_seed(0)
        x, y = read(episodes.earlier, count)[mask], episodes.earlier.to_go[mask].float()
        head = ValueHead(x.shape[-1], WIDTH)
        head.fit(x)
        optimizer = torch.optim.AdamW(head.parameters(), lr=3e-3, weight_decay=0.0, foreach=True)
        for _ in range(STEPS):
            rows = torch.randint(len(x), (SIZE,), generator=generator)
            optimizer.zero_grad()
            value_loss(head(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            episodes.fitted[count] = head(read(episodes, count).flatten(0, 2)).view(episodes.mask.shape).double()
    return episodes.fitted[count]


def fit_twins(episodes: Episodes, count: int) -> tuple[Tensor, Tensor]:
    """Return ArCHer's Q and V of all turns, [2, G, K, T] each, fitted to the earlier episodes (arXiv 2402.19446).

    Q's target is r + gamma V_target(s'), V's is Q_target(s, a) of the replies that the policy gave.
    """
    assert episodes.earlier is not None and episodes.states is not None
    earlier, generator, size = episodes.earlier, torch.Generator().manual_seed(0), episodes.states.shape[-1]
    critics, targets = (Critics(size, count, WIDTH) for _ in range(2))
    x, following = (part[earlier.mask] for part in (read(earlier, count), torch.roll(read(earlier), -1, dims=2)))
    rewards, ended = earlier.rewards[earlier.mask].float(), earlier.ended[earlier.mask]
    for each in (critics, targets):
        each.state.fit(x[:, :size])
        each.action.fit(x[:, size:])
    optimizer = torch.optim.AdamW(critics.parameters(), lr=3e-3, weight_decay=0.0, foreach=True)
    for _ in range(STEPS):
        rows = torch.randint(len(x), (SIZE,), generator=generator)
        s, a = x[rows].split([size, count], dim=-1)
        with torch.no_grad():
            after = td_targets(rewards[rows], targets.v(following[rows]), ended[rows], gamma=earlier.gamma)
            expected = targets.q(s, a)
        optimizer.zero_grad()
        (twin_loss(critics.q(s, a), after) + twin_loss(critics.v(s), expected)).backward()
        optimizer.step()
        follow(targets, critics, 0.1)
    with torch.no_grad():
        s, a = read(episodes, count).flatten(0, 2).split([size, count], dim=-1)
        return tuple(each.view(2, *episodes.mask.shape).double() for each in (critics.q(s, a), critics.v(s)))
