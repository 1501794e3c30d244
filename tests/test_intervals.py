"""Intervals and exact tests against numbers by hand, by brute force, or of a printed table."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from vlgym.intervals import (
    binomial_interval,
    binomial_p,
    holm,
    permutation_p,
    student_p,
    student_t,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # z = 1.96 gives z^2 = 3.8416; for 5 of 10: centre (0.5 + 0.19208) / 1.38416 = 0.5,
        # half 1.96 * sqrt(0.025 + 0.009604) / 1.38416 = 0.26341.
        (5, 10, 0.2366, 0.7634),
        # 0 of 10: from 0 to z^2 / (n + z^2) = 3.8416 / 13.8416.
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        # 190 of 200: centre (0.95 + 0.009604) / 1.019208 = 0.94152,
        # half 1.96 * sqrt(0.0002375 + 0.00002401) / 1.019208 = 0.03110.
        (190, 200, 0.9104, 0.9726),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_wilson_interval_is_the_one_worked_out_by_hand(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


def test_the_exact_interval_holds_the_share_and_leaves_out_what_is_as_unlikely_as_it_says() -> None:
    assert binomial_interval(0, 0) == (0.0, 1.0)
    assert binomial_interval(0, 10)[0] == 0
    assert binomial_interval(10, 10)[1] == 1
    low, high = binomial_interval(3, 20, 0.9)
    assert low < 3 / 20 < high
    assert math.isclose(binomial_p(3, 20, low), 0.05, rel_tol=1e-6)
    assert math.isclose(1 - binomial_p(4, 20, high), 0.05, rel_tol=1e-6)


def test_permutations_are_counted_as_by_trying_all_of_them() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        count, kinds = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        choices, right = rng.integers(kinds, size=count).tolist(), rng.integers(kinds, size=count).tolist()
        matches = sum(a == b for a, b in zip(choices, right, strict=True))
        tried = [sum(a == b for a, b in zip(choices, each, strict=True)) for each in permutations(right)]
        assert permutation_p(choices, right) == pytest.approx(sum(k >= matches for k in tried) / len(tried))


def test_p_of_answers_by_hand() -> None:
    right = ["left", "right"] * 6
    assert permutation_p(right, right) == pytest.approx(1 / 924)
    assert permutation_p(["left"] * 12, ["left"] * 10 + ["right"] * 2) == 1.0
    assert permutation_p([None, None], ["a", "b"]) == 1.0  # unread answers are never right
    assert permutation_p(["a", None], ["a", "b"]) == pytest.approx(1 / 2)
    assert [student_t(degrees) for degrees in (3, 30)] == pytest.approx([3.182, 2.042], abs=5e-4)  # printed tables


def test_the_binomial_tail_of_small_counts() -> None:
    assert binomial_p(0, 5, 0.1) == pytest.approx(1.0)
    assert binomial_p(2, 2, 0.5) == pytest.approx(0.25)
    assert binomial_p(1, 2, 0.5) == pytest.approx(0.75)
    assert binomial_p(0, 0, 0.5) == 1.0


def test_holm_stops_at_the_first_value_that_does_not_stand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([0.02, 0.02], 0.05) == [True, True]
    assert holm([0.03, 0.04], 0.05) == [False, False]  # 0.03 > 0.05 / 2, so 0.04 < 0.05 does not count
    assert holm([0.04, 0.01], 0.05) == [True, True]  # Bonferroni's rule would refuse 0.04 > 0.05 / 2
    assert holm([], 0.05) == []


@pytest.mark.parametrize("values", [[0.3, 0.2, 0.4], [-0.5, 0.1, 0.2, 0.0], [0.9, 0.1], [-1.0, -2.0, -4.0]])
def test_the_t_test_is_that_of_scipy(values: list[float]) -> None:
    assert student_p(values) == pytest.approx(ttest_1samp(values, 0, alternative="greater").pvalue, abs=1e-9)


def test_equal_seeds_are_no_proof_beyond_that_of_their_episodes() -> None:
    assert student_p([0.1, 0.1, 0.1]) == 0.0
    assert student_p([0.1, 0.1, 0.1], least=0.2) == pytest.approx(ttest_1samp([-0.1, 0.1, 0.3], 0).pvalue / 2)
    assert student_p([0.0, 0.0]) == 1.0
    assert student_p([0.5]) != student_p([0.5])
