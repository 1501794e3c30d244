"""Reward shaping by hand-computed numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from baselines.learning.rewards import RewardOptions, RewardShaper, repeats_itself
from vlgym.types import StepRecord

BLANK = StepRecord(
    "a/B-v0", 0, 0, 0, [], np.zeros((1, 1, 3), np.uint8), "", "go", (), "ok", 1.0, False, False, False, False
)


def shape_all(shaper: RewardShaper, rewards: list[float], ends: list[bool]) -> list[float]:
    records = [replace(BLANK, reward=reward, terminated=end) for reward, end in zip(rewards, ends, strict=True)]
    return [shaper.shape([record], [5])[0] for record in records]


def test_without_options_rewards_stay_as_they_are():
    assert shape_all(RewardShaper(RewardOptions(), 1, 0.9), [1.0, -2.5], [False, True]) == [1.0, -2.5]


def test_a_scale_multiplies_the_environments_reward_alone():
    shaper = RewardShaper(RewardOptions(scale=0.5, length_bonus=0.1), 1, 0.9)
    assert shape_all(shaper, [4.0], [False]) == [pytest.approx(4.0 * 0.5 + 5 * 0.1)]


def test_training_takes_the_penalty_off_where_no_action_was_read():
    shaper = RewardShaper(RewardOptions(unreadable_penalty=0.3), 2, 0.9)
    assert shaper.shape([BLANK, replace(BLANK, invalid=True)], [5, 5]) == pytest.approx([1.0, 0.7])


def test_normalising_divides_by_the_running_deviation_of_the_discounted_return():
    # Returns with gamma 0.5: 2, 2 * 0.5 + 4 = 5, and after the end 1.
    shaped = shape_all(RewardShaper(RewardOptions(normalise=True), 1, 0.5), [2.0, 4.0, 1.0], [False, True, False])
    deviations = [1.0, 1.5, math.sqrt(((2 - 8 / 3) ** 2 + (5 - 8 / 3) ** 2 + (1 - 8 / 3) ** 2) / 3)]
    assert shaped == pytest.approx([2 / deviations[0], 4 / deviations[1], 1 / deviations[2]])


def test_the_length_bonus_is_for_replies_below_the_limit_only():
    shaper = RewardShaper(RewardOptions(length_bonus=0.001, length_limit=200), 1, 1.0)
    assert shaper.shape([replace(BLANK, reward=0.0)], [199]) == [pytest.approx(0.199)]
    assert shaper.shape([replace(BLANK, reward=0.0)], [200]) == [0.0]


@pytest.mark.parametrize(
    ("reply", "span", "expected"),
    [
        ("a b c d a b c d a b c d", None, True),
        ("a b c d a b c d", None, False),
        ("up up up up up up", None, True),
        ("push it. <action>" + "up; " * 12 + "</action>", (17, 17 + 48), False),  # a plan may repeat moves
        ("", None, False),
    ],
)
def test_a_reply_repeats_itself_if_four_words_in_a_row_come_three_times_outside_the_action(reply, span, expected):
    assert repeats_itself(replace(BLANK, reply=reply, span=span)) is expected
    shaper = RewardShaper(RewardOptions(repetition_penalty=0.2), 1, 1.0)
    assert shaper.shape([replace(BLANK, reply=reply, span=span)], [5]) == [pytest.approx(0.8 if expected else 1.0)]
