"""Estimators on a chain that is enumerated, and measures on numbers whose truth is known."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from baselines.credit.episodes import EpisodeBatch, Truth
from baselines.credit.estimators import ESTIMATORS, load_estimator, step_advantages
from baselines.credit.measures import correlate, decompose, measure, turn_moments
from vlgym.errors import UserError


def enumerate_chain(gamma: float, size: int = 4) -> tuple[EpisodeBatch, Tensor, Tensor]:
    """Return all 3^4 groups of episodes of a chain of two states, their probabilities and the true advantages.
    In s0 `a` pays 0 and leads to s1, `b` pays 0.2 and ends; in s1 `a` pays 1, `b` 0, and both end. Both actions have
    probability 0.5."""
    kinds = [((1,), (0.2,), 0.5), ((0, 0), (0.0, 1.0), 0.25), ((0, 1), (0.0, 0.0), 0.25)]
    groups = list(itertools.product(kinds, repeat=size))
    shape = (len(groups), size, 2)
    rewards, mask, actions = torch.zeros(shape).double(), torch.zeros(shape).bool(), torch.zeros(shape).long()
    for g, group in enumerate(groups):
        for k, (taken, paid, _) in enumerate(group):
            actions[g, k, : len(taken)], mask[g, k, : len(taken)] = torch.tensor(taken), True
            rewards[g, k, : len(paid)] = torch.tensor(paid).double()
    share = torch.tensor([np.prod([kind[2] for kind in group]) for group in groups])
    gain = torch.tensor([0.5 * gamma - 0.2, 1.0]).double() / 2
    values = torch.tensor([0.2 + gain[0], 0.5]).double().expand(shape)
    keys = torch.arange(2).expand(shape).clone()
    return EpisodeBatch(rewards, mask, keys, actions, gamma, values), share, torch.where(actions == 0, gain, -gain)


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
def test_on_the_chain_every_estimator_has_its_exact_expectation(name):
    episodes, share, truth = enumerate_chain(gamma=1.0)
    estimate = {
        "true": lambda e: truth, "GAE, true V": lambda e: step_advantages(e, e.values, lam=1.0),
    }.get(name, ESTIMATORS.get(name))(episodes)  # fmt: skip
    assert compare(estimate, episodes, share, truth) == pytest.approx(CHAIN[name], abs=6e-4)


def test_with_a_discount_whole_returns_weigh_later_turns_less_and_turn_baselines_do_not():
    episodes, share, truth = enumerate_chain(gamma=0.9)
    names = ("RLOO, LOOP", "turn baseline")
    whole, turns = (compare(ESTIMATORS[name](episodes), episodes, share, truth) for name in names)
    assert whole[2] - whole[3] == pytest.approx(0.9)
    assert whole[-1] == pytest.approx(0.9991, abs=1e-4)
    assert turns[-1] == pytest.approx(1)


def test_a_place_without_an_estimator_of_ones_own_is_refused(tmp_path):
    file = tmp_path / "my.py"
    file.write_text("def Mine(episodes):\n    return episodes.rewards * 2\n")
    for wrong in (f"{file}:Other", f"{tmp_path / 'none.py'}:Mine", "my:Mine", "Mine"):
        with pytest.raises(UserError):
            load_estimator(wrong)


TURNS = 40_000
"""With 2,000 turns and four branches the corrected correlation has a deviation of 0.037: more than
the bound, 0.03."""


def simulate(branches: int, rng: Any, shared: bool = False) -> tuple[np.ndarray, ...]:
    """An estimate that correlates by 0.468 with advantages of deviation 0.2, and two halves of
    their truth, each of its own Q and V branches of deviation 0.5; with `shared`, of one V."""
    truth = rng.normal(0, 0.2, TURNS)
    estimate = 0.468 * truth / 0.2 + np.sqrt(1 - 0.468**2) * rng.normal(size=TURNS)
    noise = [rng.normal(0, 0.5 / branches**0.5, TURNS) for _ in range(4)]
    return estimate, truth + noise[0] - noise[1], truth + noise[2] - noise[1 if shared else 3]


@pytest.mark.parametrize(("branches", "raw"), [(4, 0.287), (16, 0.401), (64, 0.443)])
def test_a_correlation_is_corrected_for_the_noise_of_the_truth(branches, raw: float):
    x, a, b = simulate(branches, np.random.default_rng(branches))
    assert np.corrcoef(x, (a + b) / 2)[0, 1] == pytest.approx(raw, abs=0.015)
    corrected = correlate(turn_moments(x, a, b).sum(1))
    assert corrected == pytest.approx(0.468, abs=0.03)
    assert correlate(turn_moments(x + 1, a - 2, b - 2).sum(1)) == pytest.approx(corrected)
    shared = correlate(turn_moments(*simulate(branches, np.random.default_rng(1), shared=True)).sum(1))
    assert branches == 64 or shared < 0.41  # halves of one V are no halves


def lay(x: np.ndarray, a: np.ndarray, b: np.ndarray, error: float) -> tuple[Any, Truth, EpisodeBatch]:
    """Turns as 100 groups of one episode, with five pictures."""
    shape = (100, 1, len(x) // 100)
    keys, zeros = np.random.default_rng(9).integers(5, size=shape), torch.zeros(shape)
    episodes = EpisodeBatch(zeros, zeros == 0, torch.from_numpy(keys), zeros.long())
    halves = torch.from_numpy(np.stack([a, b])).view(2, *shape)
    return torch.from_numpy(x).view(shape), Truth(halves, torch.full((2, *shape), error)), episodes


def test_bias_and_variance_are_those_that_were_put_in_whatever_the_noise_of_the_truth():
    rng = np.random.default_rng(0)
    alike, group = rng.integers(20, size=TURNS), np.arange(TURNS) % 100
    truth = rng.normal(size=20)[alike]
    bias = np.where(np.arange(20) % 2, 0.3, -0.3)[alike]
    a, b, x = (truth + rng.normal(0, s, TURNS) for s in (0.5, 0.5, 0.7))
    parts = decompose(x + bias, a, b, group, alike)
    assert parts == (pytest.approx(0.3, abs=0.02), pytest.approx(0.49, abs=0.03))
    assert not decompose(x + rng.normal(0, 1, 100)[group], a, b, group, alike)[0] > 0.15
    assert np.isnan(decompose(x, a, b, group, np.arange(TURNS))[0])


def test_ties_count_half_zeros_are_counted_and_signs_that_nobody_knows_are_left_out():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(1000) < 0.5, 1.0, -1.0)
    truth[:200] = 0.01
    x = truth.copy()
    x[200:600] = 0
    x[600:700] *= -1
    figures = measure(*lay(x, truth, truth, 0.1))
    assert figures["sign"] == pytest.approx((0.5 * 400 + 300) / 800)
    assert (figures["zero"], figures["sure"], figures["turns"]) == (0.4, 0.8, 1000)


def test_turns_of_one_group_are_one_observation():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 100))
    x, truth = values.sum(0), values[0]
    once, often = (measure(*lay(*(np.repeat(v, times) for v in (x, truth, truth)), 0.0)) for times in (1, 50))
    assert often["correlation"] == pytest.approx(once["correlation"])
    assert often["correlation_sd"] == pytest.approx(once["correlation_sd"], rel=0.01)
    assert 0.02 < once["correlation_sd"] < 0.08
