"""Advantage estimators: functions of episodes that return a number per turn, [G, K, T] float64.

They call the learners' own functions. R is an episode's return, G_t the discounted sum of its
rewards from turn t on, m a mean over the group. One that needs what a cell lacks returns None.
"""

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from vlgym.errors import UserError

from ..archer import Critics, follow
from ..learning.losses import group_relative, leave_one_out, td_targets, twin_advantages, twin_loss
from ..vldac import ValueHead, step_gae, value_loss
from .episodes import EpisodeBatch

Estimator = Callable[[EpisodeBatch], Tensor | None]
STEPS, SAMPLE_SIZE, WIDTH, RATE = 200, 128, 64, 3e-3  # gradient steps of a critic, turns in each
ACTIONS, LAMBDA = 2, 0.95  # actions that critics distinguish; lambda of GAE


def give_turns(numbers: Tensor, episodes: EpisodeBatch) -> Tensor:
    """Give every turn its episode's number [G, K]."""
    return numbers.unsqueeze(-1).expand(episodes.mask.shape).clone()


def step_advantages(episodes: EpisodeBatch, values: Tensor, lam: float = LAMBDA) -> Tensor:
    """Return the learner's `step_gae` of all episodes, [G, K, T]; every end is an end."""
    parts = (episodes.rewards, values * episodes.mask, episodes.ended)
    rewards, v, ended = (x.flatten(0, 1).T for x in parts)  # [T, N]
    none, never = torch.zeros_like(v), torch.zeros_like(ended)
    advantages, _ = step_gae(rewards, v, none[0], ended, never, none, gamma=episodes.gamma, lam=lam)
    return advantages.T.reshape(episodes.mask.shape)


def turn_baseline(episodes: EpisodeBatch) -> Tensor:
    """G_t less the others' mean of it at the same turn (Greensmith et al. 2004)."""
    to_go, others = episodes.to_go, episodes.mask.sum(1, keepdim=True) - 1
    return to_go - (to_go.sum(1, keepdim=True) - to_go) / others.clamp(min=1)


def turn_grpo(episodes: EpisodeBatch) -> Tensor:
    """Sum of the later rewards, each less the group's mean at its turn (GRPO, section 4.1.3)."""
    mean = episodes.rewards.sum(1, keepdim=True) / episodes.mask.sum(1, keepdim=True).clamp(min=1)
    return replace(episodes, rewards=torch.where(episodes.mask, episodes.rewards - mean, 0.0)).to_go


def gigpo(episodes: EpisodeBatch) -> Tensor:
    """R - m, plus G_t less its mean over the group's turns with this picture (arXiv 2505.10978)."""
    mask, to_go, returns = episodes.mask, episodes.to_go, episodes.returns
    group = torch.arange(len(mask)).view(-1, 1, 1) * (int(episodes.keys.max()) + 1)
    anchors, place = torch.unique((group + episodes.keys)[mask], return_inverse=True)
    zeros = torch.zeros(len(anchors)).double()
    total, count = (zeros.index_add(0, place, x[mask].double()) for x in (to_go, mask))
    step = torch.zeros_like(to_go).masked_scatter(mask, to_go[mask] - (total / count)[place])
    return give_turns(returns - returns.mean(1, keepdim=True), episodes) + step


def bi_level(episodes: EpisodeBatch) -> Tensor | None:
    """VAGEN's bi-level GAE (arXiv 2510.16907), at a reply's first token; tokens are not discounted."""
    if episodes.states is None:
        return None
    last = fit_values(episodes, ACTIONS)
    return step_advantages(episodes, last) + last - fit_values(episodes)


ESTIMATORS: dict[str, Estimator] = {
    # G_t less its mean over the batch (Williams 1992, section 4, with a constant baseline).
    "REINFORCE": lambda e: e.to_go - e.to_go[e.mask].mean(),
    # (R - m) / std on every turn (arXiv 2402.03300, section 4.1.2).
    "GRPO": lambda e: give_turns(group_relative(e.returns), e),
    # R less the mean of the others (arXiv 2402.14740; LOOP, 2502.01600; VL-DAC, eq. 2).
    "RLOO, LOOP": lambda e: give_turns(leave_one_out(e.returns), e),
    "turn baseline": turn_baseline,
    "turn GRPO": turn_grpo,
    "GiGPO": gigpo,
    # Step GAE (arXiv 1506.02438, eq. 16) with the true values: no critic can be better.
    "GAE, true V": lambda e: None if e.values is None else step_advantages(e, e.values),
    # Step GAE with VL-DAC's value head, fitted to earlier episodes (arXiv 2508.04280, section 3).
    "GAE, learnt V": lambda e: None if e.states is None else step_advantages(e, fit_values(e)),
    "bi-level GAE": bi_level,
    # min(Q1, Q2) - min(V1, V2) of critics of earlier episodes (arXiv 2402.19446, section 3).
    "ArCHer": lambda e: None if e.states is None else twin_advantages(*fit_twins(e, ACTIONS)),
    # What the turn itself was paid.
    "own reward": lambda e: e.rewards,
}


def read(episodes: EpisodeBatch, count: int = 0) -> Tensor:
    """Return a model's states of all turns [G, K, T, H], and one-hot rows of `count` actions."""
    states = episodes.states[episodes.keys]  # type: ignore[index]
    own = nn.functional.one_hot(episodes.actions, count).float() if count else states[..., :0]
    return torch.cat([states, own], dim=-1)


def fit_values(episodes: EpisodeBatch, count: int = 0) -> Tensor:
    """Return VL-DAC's value head on all turns [G, K, T], fitted to the earlier returns (eq. 4);
    with `count` actions it reads the turn's reply too: V at the reply's last token."""
    if count not in episodes.fitted:
        earlier, generator = episodes.earlier or episodes, torch.Generator().manual_seed(0)
        x, y = read(earlier, count)[earlier.mask], earlier.to_go[earlier.mask].float()
        head = ValueHead(x.shape[-1], WIDTH)
        head.norm.fit(x)

        optimizer = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=0.0, foreach=True)
        for _ in range(STEPS):
            rows = torch.randint(len(x), (SAMPLE_SIZE,), generator=generator)
            optimizer.zero_grad()
            value_loss(head(x[rows]), y[rows]).backward()
            optimizer.step()

        # It values other episodes than those it was fitted to.
        with torch.no_grad():
            episodes.fitted[count] = head(read(episodes, count)).double()
    return episodes.fitted[count]


def fit_twins(episodes: EpisodeBatch, count: int) -> tuple[Tensor, Tensor]:
    """Return ArCHer's Q and V of all turns, [2, G, K, T] each (arXiv 2402.19446, section 3).
    Q's target is r + gamma V_target(s'), V's is Q_target(s, a) of the policy's replies."""
    earlier, generator = episodes.earlier or episodes, torch.Generator().manual_seed(0)
    sizes = [read(earlier).shape[-1], count]
    critics, targets = (Critics(sizes[0], count, WIDTH) for _ in range(2))
    x, following = read(earlier, count)[earlier.mask], read(earlier).roll(-1, dims=2)[earlier.mask]
    rewards, ended = earlier.rewards[earlier.mask].float(), earlier.ended[earlier.mask]
    for each in (critics, targets):
        each.state.fit(x[:, : sizes[0]])
        each.action.fit(x[:, sizes[0] :])

    # Targets follow the critics slowly.
    optimizer = torch.optim.AdamW(critics.parameters(), lr=RATE, weight_decay=0.0, foreach=True)
    for _ in range(STEPS):
        rows = torch.randint(len(x), (SAMPLE_SIZE,), generator=generator)
        s, a = x[rows].split(sizes, dim=-1)
        with torch.no_grad():
            v = targets.v(following[rows])
            after = td_targets(rewards[rows], v, ended[rows], gamma=earlier.gamma)
            expected = targets.q(s, a)
        optimizer.zero_grad()
        (twin_loss(critics.q(s, a), after) + twin_loss(critics.v(s), expected)).backward()
        optimizer.step()
        follow(targets, critics, 0.1)

    with torch.no_grad():
        s, a = read(episodes, count).split(sizes, dim=-1)
        return critics.q(s, a).double(), critics.v(s).double()


def load_estimator(place: str) -> tuple[dict[str, Estimator], str]:
    """Run a user's file; return its estimator by name, and the file's text."""
    file, _, name = place.rpartition(":")
    if not file.endswith(".py") or not Path(file).is_file():
        raise UserError(f"--estimator {place} names no Python file; write it as FILE.py:NAME.")
    if not callable(estimator := runpy.run_path(file).get(name)):
        raise UserError(f"{file} has nothing named {name!r} that takes episodes.")
    return {name: estimator}, Path(file).read_text(encoding="utf-8")
