"""Advantage estimators: functions of episodes that return a number for each turn, [G, K, T] float64.

They call the learners' own functions where a learner has them. K episodes share a start; R is an episode's return, G_t
the discounted sum of its rewards from turn t on, m a mean over the group. Numbers of turns that were not played do not
count. One that needs what a cell lacks (true values, a model's states) returns None.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from vlgym.errors import UserError

from ..learning.losses import group_relative, leave_one_out, twin_advantages
from ..vldac import step_gae
from .critics import fit_twins, fit_values
from .episodes import Episodes

Estimator = Callable[[Episodes], Tensor | None]


def reinforce(episodes: Episodes) -> Tensor:
    """G_t less its mean over the batch (Williams 1992, section 4, with a constant baseline)."""
    return episodes.to_go - episodes.to_go[episodes.mask].mean()


def grpo(episodes: Episodes) -> Tensor:
    """(R - m) / std on every turn (GRPO, arXiv 2402.03300, section 4.1.2)."""
    return spread(group_relative(episodes.returns), episodes)


def rloo(episodes: Episodes) -> Tensor:
    """R less the mean of the others on every turn (RLOO, arXiv 2402.14740; LOOP, 2502.01600; VL-DAC, eq. 2)."""
    return spread(leave_one_out(episodes.returns), episodes)


def turn_baseline(episodes: Episodes) -> Tensor:
    """G_t less the others' mean of it at the same turn, less 0 where there is none (Greensmith et al. 2004, eq. 4)."""
    to_go, others = episodes.to_go, episodes.mask.sum(1, keepdim=True) - 1
    return to_go - (to_go.sum(1, keepdim=True) - to_go) / others.clamp(min=1)


def turn_grpo(episodes: Episodes) -> Tensor:
    """Sum of the later rewards, each less the group's mean at its turn (GRPO, section 4.1.3; verl#7244; no std)."""
    mean = episodes.rewards.sum(1, keepdim=True) / episodes.mask.sum(1, keepdim=True).clamp(min=1)
    centred = torch.where(episodes.mask, episodes.rewards - mean, 0.0)
    return Episodes(centred, episodes.mask, episodes.keys, episodes.actions, episodes.gamma).to_go


def gigpo(episodes: Episodes) -> Tensor:
    """R - m, plus G_t less its mean over the group's turns with this picture (GiGPO, 2505.10978, eqs. 3, 5 to 8)."""
    mask, to_go, returns = episodes.mask, episodes.to_go, episodes.returns
    group = torch.arange(len(mask)).view(-1, 1, 1) * (int(episodes.keys.max()) + 1)
    anchors, place = torch.unique((group + episodes.keys)[mask], return_inverse=True)
    total, count = (torch.zeros(len(anchors)).double().index_add(0, place, x) for x in (to_go[mask], mask[mask].double()))
    step = torch.zeros_like(to_go)
    step[mask] = to_go[mask] - (total / count)[place]
    return spread(returns - returns.mean(1, keepdim=True), episodes) + step


def gae_exact(episodes: Episodes) -> Tensor | None:
    """Step GAE with the true values (arXiv 1506.02438, eq. 16): no critic can be better."""
    return None if episodes.values is None else step_advantages(episodes, episodes.values)


def gae_learnt(episodes: Episodes) -> Tensor | None:
    """Step GAE with VL-DAC's value head, fitted to earlier episodes (VL-DAC, arXiv 2508.04280, section 3)."""
    return None if episodes.states is None else step_advantages(episodes, fit_values(episodes))


def bi_level(episodes: Episodes) -> Tensor | None:
    """VAGEN's bi-level GAE: turns by V at each reply's last token, then that advantage less what its first token knew.

    The token level has discount and lambda 1, so it adds V(last token) - V(first token) (arXiv 2510.16907, section 3).
    """
    if episodes.states is None:
        return None
    last = fit_values(episodes, ACTIONS)
    return step_advantages(episodes, last) + last - fit_values(episodes)


def archer(episodes: Episodes) -> Tensor | None:
    """min(Q1, Q2) - min(V1, V2) of critics fitted to earlier episodes (ArCHer, arXiv 2402.19446, section 3)."""
    if episodes.states is None:
        return None
    q, v = fit_twins(episodes, ACTIONS)
    return twin_advantages(q.flatten(1), v.flatten(1)).view(episodes.mask.shape)


def own_reward(episodes: Episodes) -> Tensor:
    """r_t alone: what the turn itself was paid."""
    return episodes.rewards.clone()


ESTIMATORS: dict[str, Estimator] = {
    "REINFORCE": reinforce, "GRPO": grpo, "RLOO, LOOP": rloo, "turn baseline": turn_baseline, "turn GRPO": turn_grpo,
    "GiGPO": gigpo, "GAE, true V": gae_exact, "GAE, learnt V": gae_learnt, "bi-level GAE": bi_level, "ArCHer": archer,
    "own reward": own_reward,
}  # fmt: skip
WHOLE = ("GRPO", "RLOO, LOOP")
"""Those that give all turns of an episode one number."""
BASELINES = ("GRPO", "RLOO, LOOP", "turn baseline", "GiGPO")
"""Those whose baseline is made of the group."""
LAMBDA, ACTIONS = 0.95, 2
"""Of GAE; and actions that critics of replies tell apart, those of NumberLine."""


def spread(numbers: Tensor, episodes: Episodes) -> Tensor:
    """Give every turn its episode's number [G, K]."""
    return numbers.unsqueeze(-1).expand(episodes.mask.shape).clone()


def step_advantages(episodes: Episodes, values: Tensor, lam: float = LAMBDA) -> Tensor:
    """Return `step_gae` of all episodes, [G, K, T]; every end is an end."""
    parts = (episodes.rewards, values * episodes.mask, episodes.ended)
    rewards, values, ended = (x.flatten(0, 1).T for x in parts)  # [T, N], as the learner has them
    none, never = torch.zeros_like(values), torch.zeros_like(ended)
    advantages, _ = step_gae(rewards, values, none[0], ended, never, none, gamma=episodes.gamma, lam=lam)
    return advantages.T.reshape(episodes.mask.shape)


def load_estimator(place: str) -> tuple[dict[str, Estimator], str]:
    """Return an estimator of the user's own by its name, and the text of its file, which is run.

    Raises:
        UserError: `place` is not FILE.py:NAME, or the file has nothing that can be called by that name.
    """
    file, _, name = place.rpartition(":")
    if not file.endswith(".py") or not Path(file).is_file():
        raise UserError(f"--estimator {place} names no Python file; write it as FILE.py:NAME.")
    estimator = runpy.run_path(file).get(name)
    if not callable(estimator):
        raise UserError(f"{file} has nothing named {name!r} that takes episodes.")
    return {name: estimator}, Path(file).read_text(encoding="utf-8")
