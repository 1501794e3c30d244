"""Reward shaping by hand-computed numbers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from baselines.learning.collect import RewardOptions, repeats_itself
from vlgym.types import StepRecord

BLANK = StepRecord(
    "a/B-v0", 0, 0, 0, [], np.zeros((1, 1, 3), np.uint8), "", "go", (), "ok", 1.0, False, False, False, False
)


def shaped(options: RewardOptions, tokens: int = 5, **changes: Any) -> float:
    return options.shape(replace(BLANK, extra=SimpleNamespace(ids=[0] * tokens), **changes))


def test_by_default_only_an_unreadable_reply_costs():
    assert shaped(RewardOptions(), reward=-2.5) == -2.5
    assert shaped(RewardOptions(), invalid=True) == 0.5


def test_the_length_bonus_is_for_replies_below_the_limit_only():
    options = RewardOptions(length_bonus=0.001, length_limit=200)
    assert shaped(options, 199, reward=0.0) == pytest.approx(0.199)
    assert shaped(options, 200, reward=0.0) == 0.0


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
def test_a_reply_repeats_itself_if_four_words_come_three_times_outside_the_action(reply, span, expected):
    assert repeats_itself(replace(BLANK, reply=reply, span=span)) is expected
    options = RewardOptions(repetition_penalty=0.2)
    assert shaped(options, reply=reply, span=span) == pytest.approx(0.8 if expected else 1.0)
