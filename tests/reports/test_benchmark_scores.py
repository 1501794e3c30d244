"""MageBench's scores against hand-computed numbers."""

from __future__ import annotations

import itertools
import statistics

import numpy as np
import pytest

from vlgym.reports.sampling import expect_best, find_instruction_error, summarize_items
from vlgym.types import StepRecord


def record(actions: tuple[str, ...], invalid: bool = False) -> StepRecord:
    image = np.zeros((1, 1, 3), np.uint8)
    return StepRecord("t/T-v0", 0, 0, 0, [], image, "", "", actions, "ok", 0.0, False, False, invalid, False)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_best_of_n_is_the_mean_of_the_maxima_of_all_draws(n: int) -> None:
    scores = [3.0, 10.0, -2.0, 7.0]
    expected = statistics.mean(max(draw) for draw in itertools.combinations(scores, n))
    assert expect_best(scores, n) == pytest.approx(expected)


def test_a_summary_averages_over_items_and_repeats() -> None:
    result = summarize_items([[0.0, 10.0], [20.0, 30.0]], [[record(("up",)), record(("down",))]])
    assert result["mean"] == 15.0
    assert result["best_of"] == [15.0, 20.0]
    assert result["half_width"] == pytest.approx(12.706205 * statistics.stdev([10.0, 20.0]) / 2**0.5)
    assert result["instruction_error"] is None


def test_nine_in_ten_unparsable_replies_or_equal_actions_are_an_error() -> None:
    up, down, none = record(("up",)), record(("down",)), record((), invalid=True)
    assert find_instruction_error([[none] * 9 + [up]]) is None
    assert "could not be parsed" in (find_instruction_error([[none] * 11 + [up]]) or "")
    assert "'up'" in (find_instruction_error([[up] * 9 + [down]]) or "")
    assert find_instruction_error([[up] * 8 + [down] * 2]) is None
