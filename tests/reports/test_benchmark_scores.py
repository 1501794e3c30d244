"""MageBench's scores against hand-computed numbers."""

from __future__ import annotations

import itertools
import statistics

import numpy as np
import pytest

from vlgym.reports.sampling import expect_best, find_instruction_error, measure_half_width, summarize_items
from vlgym.types import StepRecord


def record(actions: tuple[str, ...], invalid: bool = False) -> StepRecord:
    image = np.zeros((1, 1, 3), np.uint8)
    return StepRecord("t/T-v0", 0, 0, 0, [], image, "", "", actions, "ok", 0.0, False, False, invalid, False)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_best_of_n_is_the_mean_of_the_maxima_of_all_draws(n: int) -> None:
    scores = [3.0, 10.0, -2.0, 7.0]
    expected = statistics.mean(max(draw) for draw in itertools.combinations(scores, n))
    assert expect_best(scores, n) == pytest.approx(expected)


def test_half_width_of_three_repeats_uses_students_t() -> None:
    # sd of (40, 42, 44) is 2; 4.303 * 2 / sqrt(3) = 4.9687
    assert measure_half_width([40.0, 42.0, 44.0]) == pytest.approx(4.9687, abs=1e-3)
    assert measure_half_width([40.0]) is None


def test_a_summary_averages_over_items_and_repeats() -> None:
    result = summarize_items([[0.0, 10.0], [20.0, 30.0]], [[record(("up",)), record(("down",))]])
    assert result["mean"] == 15.0
    assert result["best_of"] == [15.0, 20.0]
    assert result["half_width"] == pytest.approx(12.706205 * statistics.stdev([10.0, 20.0]) / 2**0.5)
    assert result["instruction_error"] is None


def test_nine_in_ten_unparsable_replies_or_equal_actions_are_an_instruction_error() -> None:
    nine = [record((), invalid=True)] * 9 + [record(("up",))]
    assert find_instruction_error([nine]) is None
    assert "could not be parsed" in (find_instruction_error([nine + [record((), invalid=True)] * 2]) or "")
    assert "'up'" in (find_instruction_error([[record(("up",))] * 9 + [record(("down",))]]) or "")
    assert find_instruction_error([[record(("up",))] * 8 + [record(("down",))] * 2]) is None
