"""Critics of the bench: the learners' own heads, fitted to earlier episodes of the same policy.

They read the tiny model's state of each prompt; a reply is told by the number of its action.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..archer import Critics, follow
from ..learning.losses import td_targets, twin_loss
from ..vldac import ValueHead, value_loss
from .episodes import Episodes

STEPS, SIZE = 300, 256
"""Gradient steps of a critic, and turns in each."""


def features(episodes: Episodes, count: int | None = None) -> Tensor:
    """Return the states of all turns [G, K, T, H]; with `count` actions, each action's one-hot row after them."""
    if episodes.states is None:
        raise ValueError("a critic needs the states of a model")
    found = episodes.states[episodes.keys]
    if count is None:
        return found
    return torch.cat([found, nn.functional.one_hot(episodes.actions.clamp(max=count - 1), count).float()], dim=-1)


def fit_values(episodes: Episodes, count: int | None = None) -> Tensor:
    """Return VL-DAC's value head on all turns [G, K, T], fitted to the earlier episodes' returns (VL-DAC, eq. 4).

    With `count` actions it values a turn's reply too: V at the reply's last token.
    """
    assert episodes.earlier is not None
    mask, generator = episodes.earlier.mask, torch.Generator().manual_seed(0)
    x, y = features(episodes.earlier, count)[mask], episodes.earlier.to_go[mask].float()
    head = ValueHead(x.shape[-1])
    head.fit(x)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3, weight_decay=0.0)
    for _ in range(STEPS):
        rows = torch.randint(len(x), (min(SIZE, len(x)),), generator=generator)
        optimizer.zero_grad()
        value_loss(head(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        return head(features(episodes, count).flatten(0, 2)).view(episodes.mask.shape).double()


def fit_twins(episodes: Episodes, count: int) -> tuple[Tensor, Tensor]:
    """Return ArCHer's Q and V of all turns, [2, G, K, T] each, fitted to the earlier episodes (arXiv 2402.19446).

    Q's target is r + gamma V_target(s'), V's is Q_target(s, a) of the replies that the policy gave.
    """
    earlier = episodes.earlier
    assert earlier is not None and episodes.states is not None
    mask, generator = earlier.mask, torch.Generator().manual_seed(0)
    onehot = nn.functional.one_hot(earlier.actions, count).float()
    following = torch.roll(features(earlier), -1, dims=2)[mask]
    x, a, rewards, ended = features(earlier)[mask], onehot[mask], earlier.rewards[mask].float(), earlier.ended[mask]
    critics, targets = (Critics(x.shape[-1], count) for _ in range(2))
    for each in (critics, targets):
        each.state.fit(x)
        each.action.fit(a)
    optimizer = torch.optim.AdamW(critics.parameters(), lr=1e-3, weight_decay=0.0, foreach=True)
    for _ in range(STEPS):
        rows = torch.randint(len(x), (min(SIZE, len(x)),), generator=generator)
        with torch.no_grad():
            after = td_targets(rewards[rows], targets.v(following[rows]), ended[rows], gamma=earlier.gamma)
            expected = targets.q(x[rows], a[rows])
        optimizer.zero_grad()
        (twin_loss(critics.q(x[rows], a[rows]), after) + twin_loss(critics.v(x[rows]), expected)).backward()
        optimizer.step()
        follow(targets, critics, 0.1)
    flat = features(episodes).flatten(0, 2)
    taken = nn.functional.one_hot(episodes.actions.clamp(max=count - 1), count).float().flatten(0, 2)
    with torch.no_grad():
        return tuple(each.view(2, *episodes.mask.shape).double() for each in (critics.q(flat, taken), critics.v(flat)))
