"""Intervals against numbers worked out by hand or read from a printed table."""

import math

import pytest

from vlgym.intervals import binomial_interval, binomial_p, student_t, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # z = 1.96 gives z^2 = 3.8416; for 5 of 10: centre (0.5 + 0.19208) / 1.38416 = 0.5,
        # half 1.96 * sqrt(0.025 + 0.009604) / 1.38416 = 0.26341.
        (5, 10, 0.2366, 0.7634),
        # 0 of 10: from 0 to z^2 / (n + z^2) = 3.8416 / 13.8416.
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        # 190 of 200: centre (0.95 + 0.009604) / 1.019208 = 0.94152, half 1.96 * sqrt(0.0002375 + 0.00002401) /
        # 1.019208 = 0.03110.
        (190, 200, 0.9104, 0.9726),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_wilson_interval_is_the_one_worked_out_by_hand(
    successes: int, trials: int, low: float, high: float
) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(3, 3.182), (30, 2.042)],
)
def test_students_t_is_that_of_the_printed_tables(degrees: int, expected: float) -> None:
    assert student_t(degrees) == pytest.approx(expected, abs=5e-4)


def test_the_exact_interval_holds_the_share_and_leaves_out_what_is_as_unlikely_as_it_says() -> None:
    assert binomial_interval(0, 0) == (0.0, 1.0)
    assert binomial_interval(0, 10)[0] == 0
    assert binomial_interval(10, 10)[1] == 1
    low, high = binomial_interval(3, 20, 0.9)
    assert low < 3 / 20 < high
    assert math.isclose(binomial_p(3, 20, low), 0.05, rel_tol=1e-6)
    assert math.isclose(1 - binomial_p(4, 20, high), 0.05, rel_tol=1e-6)
