"""Estimators on a chain whose groups are all enumerated, and planted errors in the bench's
table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from credit_rules import enumerate_chain
from torch import Tensor

from baselines.credit.episodes import EpisodeBatch
from baselines.credit.estimators import ESTIMATORS, load_estimator, step_advantages
from baselines.credit.lines import draw_starts, noisy, play_lines
from baselines.credit.measures import measure
from vlgym.errors import UserError

CHAIN = {
    "true": (0.150, -0.150, 0.500, -0.500, 1, 1, 1),
    "RLOO, LOOP": (0.150, -0.150, 0.650, -0.350, 0.646, 0.711, 1),
    "GRPO": (0.104, -0.104, 1.057, -0.848, 0.599, 0.711, 0.948),
    "turn baseline": (0.150, -0.150, 0.5625, -0.4375, 0.598, 0.654, 1),
    "turn GRPO": (-0.075, 0.075, 0.266, -0.266, 0.383, 0.383, 0.494),
    "GiGPO": (0.225, -0.225, 0.753, -0.528, 0.591, 0.711, 0.997),
    "GAE, true V": (0.150, -0.150, 0.500, -0.500, 0.736, 0.833, 1),
}
"""Mean estimates of s0 a, s0 b, s1 a, s1 b; correlation, sign agreement, cosine of the mean
gradient; gamma 1."""


def compare(estimate: Tensor, episodes: EpisodeBatch, share: Tensor, truth: Tensor) -> list[float]:
    """The seven figures of `CHAIN`."""
    weight = share.view(-1, 1, 1) * episodes.mask
    means = []
    for turn, action in ((0, 0), (0, 1), (1, 0), (1, 1)):
        own = weight[..., turn] * (episodes.actions[..., turn] == action)
        means.append((own * estimate[..., turn]).sum() / own.sum())

    def mean(x: Tensor) -> Tensor:
        return (weight * x).sum() / weight.sum()

    covariance = mean(estimate * truth) - mean(estimate) * mean(truth)
    spread = [(mean(x * x) - mean(x) ** 2).sqrt() for x in (estimate, truth)]
    agree = torch.where(estimate.abs() < 1e-9, 0.5, (estimate.sign() == truth.sign()).double())
    score = torch.where(episodes.actions == 0, 0.5, -0.5)
    gradients = [(weight * x * score).sum((0, 1)) for x in (estimate, truth)]
    cosine = torch.nn.functional.cosine_similarity(*gradients, dim=0)
    return [float(x) for x in (*means, covariance / spread[0] / spread[1], mean(agree), cosine)]


@pytest.mark.parametrize("name", CHAIN)
def test_on_the_chain_every_estimator_has_its_exact_expectation(name: str) -> None:
    episodes, share, truth = enumerate_chain(gamma=1.0)
    estimate = {
        "true": lambda e: truth, "GAE, true V": lambda e: step_advantages(e, e.values, lam=1.0),
    }.get(name, ESTIMATORS.get(name))(episodes)  # fmt: skip
    assert compare(estimate, episodes, share, truth) == pytest.approx(CHAIN[name], abs=6e-4)


def test_with_a_discount_whole_returns_weigh_later_turns_less_and_turn_baselines_do_not() -> None:
    episodes, share, truth = enumerate_chain(gamma=0.9)
    names = ("RLOO, LOOP", "turn baseline")
    whole, turns = (compare(ESTIMATORS[name](episodes), episodes, share, truth) for name in names)
    assert whole[2] - whole[3] == pytest.approx(0.9)
    assert whole[-1] == pytest.approx(0.9991, abs=1e-4)
    assert turns[-1] == pytest.approx(1)


PLANTED: dict[str, Callable[[EpisodeBatch], Tensor]] = {
    "sign": lambda e: -ESTIMATORS["GAE, true V"](e),
    "off by one turn": lambda e: torch.roll(ESTIMATORS["GAE, true V"](e), 1, dims=2),
    "discount twice": lambda e: ESTIMATORS["GAE, true V"](e) * e.gamma ** torch.arange(e.mask.shape[2]),
}


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_seen_in_the_table(error: str) -> None:
    played = play_lines(draw_starts(2, 0, 256), noisy(0.5), size=4, seed=0, gamma=0.9)
    right, wrong = (
        measure(estimate(played.episodes), played.truth, played.episodes)
        for estimate in (ESTIMATORS["GAE, true V"], PLANTED[error])
    )
    gap = 3 * (right["correlation_sd"] + wrong["correlation_sd"])
    assert wrong["correlation"] < right["correlation"] - gap
    assert wrong["bias"] > 2 * right["bias"]


def test_a_place_without_an_estimator_of_ones_own_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "my.py"
    file.write_text("def Mine(episodes):\n    return episodes.rewards * 2\n")
    for wrong in (f"{file}:Other", f"{tmp_path / 'none.py'}:Mine", "my:Mine", "Mine"):
        with pytest.raises(UserError):
            load_estimator(wrong)
