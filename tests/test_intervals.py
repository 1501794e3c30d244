"""Intervals against numbers worked out by hand or read from a printed table."""

import math

import numpy as np
import pytest

from vlgym.intervals import Mean, place_interval, student_t, wilson_interval


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
    [(3, 3.182), (10, 2.228), (11, 2.201), (29, 2.045), (30, 2.042), (31, 2.040), (100, 1.984), (1000, 1.962)],
)
def test_students_t_is_that_of_the_printed_tables(degrees: int, expected: float) -> None:
    assert student_t(degrees) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_students_t_of_one_and_two_degrees_follows_their_formulas(level: float) -> None:
    assert student_t(1, level) == pytest.approx(math.tan(math.pi * level / 2))
    assert student_t(2, level) == pytest.approx(level * math.sqrt(2 / (1 - level**2)))


def test_a_place_between_exact_bounds_has_the_interval_of_its_mean() -> None:
    # t of 10 degrees is 2.228: 3 +- 2.228 * 0.5 is 1.886 to 4.114, and so 0.1886 to 0.4114 of the way from 0 to 10.
    exact = [Mean(value, 0.0, 400) for value in (0.0, 10.0)]
    assert place_interval(Mean(3.0, 0.5, 11), *exact) == pytest.approx((0.1886, 0.4114), abs=1e-4)
    assert place_interval(Mean(3.0, 0.0, 11), *exact) == pytest.approx((0.3, 0.3))


def test_a_place_between_measured_bounds_has_fiellers_interval() -> None:
    # Each se is 1, 1001 values each, so t = 1.962 and t^2 = 3.850. With span 10 and height 5:
    # a = 100 - 7.700 = 92.30, b = 50 - 3.850 = 46.15, c = 25 - 7.700 = 17.30;
    # b / a = 0.5 and sqrt(46.15^2 - 92.30 * 17.30) / 92.30 = sqrt(533.0) / 92.30 = 0.2501.
    means = [Mean(value, 1.0, 1001) for value in (5.0, 0.0, 10.0)]
    assert place_interval(*means) == pytest.approx((0.2499, 0.7501), abs=1e-3)


def test_there_is_no_interval_where_the_bounds_cannot_be_told_apart_or_one_was_measured_once() -> None:
    mean, floor, ceiling = (Mean(value, 1.0, 100) for value in (5.0, 0.0, 10.0))
    assert place_interval(mean, floor, Mean(2.0, 1.0, 100)) is None
    assert place_interval(mean, floor, floor) is None
    for once in range(3):
        three = [mean, floor, ceiling]
        three[once] = Mean(three[once].value, 0.0, 1)
        assert place_interval(*three) is None


def test_the_interval_of_a_place_holds_the_true_one_95_times_in_100() -> None:
    rng = np.random.default_rng(0)
    truth, spreads, counts, draws = np.array([0.7, 0.2, 1.0]), (0.4, 0.5, 0.2), (30, 25, 20), 4000
    place = (truth[0] - truth[1]) / (truth[2] - truth[1])
    held = held_if_bounds_were_exact = 0
    for _ in range(draws):
        means = []
        for value, spread, count in zip(truth, spreads, counts, strict=True):
            sample = rng.normal(value, spread, count)
            means.append(Mean(sample.mean(), sample.std(ddof=1) / math.sqrt(count), count))
        ends = place_interval(*means)
        assert ends is not None
        held += ends[0] <= place <= ends[1]
        narrow = place_interval(means[0], *(Mean(each.value, 0.0, each.count) for each in means[1:]))
        assert narrow is not None
        held_if_bounds_were_exact += narrow[0] <= place <= narrow[1]
    assert 0.943 < held / draws < 0.957  # two standard errors of a share of 0.95 are 0.007
    assert held_if_bounds_were_exact / draws < 0.93
