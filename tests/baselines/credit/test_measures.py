"""Measures on numbers whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from baselines.credit.episodes import EpisodeBatch, Truth
from baselines.credit.measures import correlate, decompose, measure, moments

TURNS = 40_000
"""With 2,000 turns and four branches the corrected correlation has a deviation of 0.037: more than
the bound, 0.03."""


def simulate(branches: int, rng: np.random.Generator, shared: bool = False) -> tuple[np.ndarray, ...]:
    """An estimate that correlates by 0.468 with advantages of deviation 0.2, and two halves of
    their truth, each of its own Q and V branches of deviation 0.5; with `shared`, of one V."""
    truth = rng.normal(0, 0.2, TURNS)
    estimate = 0.468 * truth / 0.2 + np.sqrt(1 - 0.468**2) * rng.normal(size=TURNS)
    noise = [rng.normal(0, 0.5 / branches**0.5, TURNS) for _ in range(4)]
    return estimate, truth + noise[0] - noise[1], truth + noise[2] - noise[1 if shared else 3]


@pytest.mark.parametrize(("branches", "raw"), [(4, 0.287), (16, 0.401), (64, 0.443)])
def test_a_correlation_is_corrected_for_the_noise_of_the_truth(branches: int, raw: float) -> None:
    x, a, b = simulate(branches, np.random.default_rng(branches))
    assert np.corrcoef(x, (a + b) / 2)[0, 1] == pytest.approx(raw, abs=0.015)
    corrected = correlate(moments(x, a, b).sum(1))
    assert corrected == pytest.approx(0.468, abs=0.03)
    assert correlate(moments(x + 1, a - 2, b - 2).sum(1)) == pytest.approx(corrected)
    shared = correlate(moments(*simulate(branches, np.random.default_rng(1), shared=True)).sum(1))
    assert branches == 64 or shared < 0.41  # halves of one V are no halves


def test_it_is_the_correction_by_spearman_brown_and_is_never_clipped() -> None:
    _, a, b = simulate(4, np.random.default_rng(0))
    half = np.corrcoef(a, b)[0, 1]
    x = (a + b) / 2
    expected = 1 / np.sqrt(2 * half / (1 + half))
    assert correlate(moments(x, a, b).sum(1)) == pytest.approx(expected, abs=0.01)
    assert expected > 1.5


def lay(x: np.ndarray, a: np.ndarray, b: np.ndarray, error: float, keys: int) -> tuple[Any, Truth, EpisodeBatch]:
    """Turns as 100 groups of one episode."""
    shape = (100, 1, len(x) // 100)
    rng, zeros = np.random.default_rng(9), torch.zeros(shape)
    episodes = EpisodeBatch(zeros, zeros == 0, torch.from_numpy(rng.integers(keys, size=shape)), zeros.long())
    halves = torch.from_numpy(np.stack([a, b])).view(2, *shape)
    return torch.from_numpy(x).view(shape), Truth(halves, torch.full((2, *shape), error)), episodes


def test_bias_and_variance_are_those_that_were_put_in_whatever_the_noise_of_the_truth() -> None:
    rng = np.random.default_rng(0)
    alike, group = rng.integers(20, size=TURNS), np.arange(TURNS) % 100
    truth = rng.normal(size=20)[alike]
    bias = np.where(np.arange(20) % 2, 0.3, -0.3)[alike]
    a, b, x = (truth + rng.normal(0, s, TURNS) for s in (0.5, 0.5, 0.7))
    found = decompose(x + bias, a, b, group, alike)
    assert found == (pytest.approx(0.3, abs=0.02), pytest.approx(0.49, abs=0.03))
    same = rng.normal(0, 1, 100)[group]  # errors that a group shares are no bias
    assert not decompose(x + same, a, b, group, alike)[0] > 0.15
    assert np.isnan(decompose(x, a, b, group, np.arange(TURNS))[0])


def test_ties_count_half_zeros_are_counted_and_signs_that_nobody_knows_are_left_out() -> None:
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(1000) < 0.5, 1.0, -1.0)
    truth[:200] = 0.01
    x = truth.copy()
    x[200:600] = 0
    x[600:700] *= -1
    found = measure(*lay(x, truth, truth, 0.1, 5))
    assert found["sign"] == pytest.approx((0.5 * 400 + 300) / 800)
    assert (found["zero"], found["sure"], found["turns"]) == (0.4, 0.8, 1000)


def test_turns_of_one_group_are_one_observation() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 100))
    x, truth = values.sum(0), values[0]
    once, often = (measure(*lay(*(np.repeat(v, times) for v in (x, truth, truth)), 0.0, 5)) for times in (1, 50))
    assert often["correlation"] == pytest.approx(once["correlation"])
    assert often["correlation_sd"] == pytest.approx(once["correlation_sd"], rel=0.01)
    assert 0.02 < once["correlation_sd"] < 0.08
