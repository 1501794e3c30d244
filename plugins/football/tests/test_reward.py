"""The reward formula, term by term, in numbers computed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from vlgym_football.engine import Snapshot
from vlgym_football.reward import RewardMeter, count_passed, rate_pass, rate_shot

Make = Callable[..., Snapshot]


def begun(snapshot: Make, **kwargs: object) -> RewardMeter:
    """Return a meter that has seen its unpaid first frame and one frame with owner 1."""
    meter = RewardMeter(400)
    meter.pay(snapshot(**kwargs), "right")
    meter.pay(snapshot(**kwargs), "right")
    return meter


def test_the_first_frame_pays_nothing(snapshot: Make) -> None:
    assert RewardMeter(400).pay(snapshot((0.9, 0.0), score=(1, 0)), "shot") == (0.0, False)


def test_new_ground_pays_16_for_each_unit_and_only_once(snapshot: Make) -> None:
    meter = begun(snapshot)
    assert meter.pay(snapshot((0.1, 0.0)), "right")[0] == pytest.approx(20 * 0.8 * 0.1)
    assert meter.pay(snapshot((0.05, 0.0)), "left")[0] == 0.0
    assert meter.pay(snapshot((0.1, 0.0)), "right")[0] == 0.0
    assert meter.pay(snapshot((0.2, 0.0)), "right")[0] == pytest.approx(1.6)


def test_ground_won_in_the_air_is_paid_at_the_reception(snapshot: Make) -> None:
    meter = begun(snapshot)
    assert meter.pay(snapshot((0.3, 0.0), owner_team=-1, owner=-1), "right")[0] == 0.0
    assert meter.pay(snapshot((0.4, 0.0)), "right")[0] == pytest.approx(20 * 0.8 * 0.4)


def test_passing_an_opponent_pays_an_eleventh_and_falling_back_takes_it_back(snapshot: Make) -> None:
    meter = begun(snapshot)
    assert meter.pay(snapshot((0.55, 0.0)), "right")[0] == pytest.approx(20 * (0.8 * 0.55 + 1 / 11))
    assert meter.pay(snapshot((0.45, 0.0)), "left")[0] == pytest.approx(-20 / 11)
    assert count_passed(snapshot((0.65, 0.0))) == 2


def test_a_goal_pays_40_once(snapshot: Make) -> None:
    meter = begun(snapshot)
    loose = {"owner_team": -1, "owner": -1}
    assert meter.pay(snapshot(score=(1, 0), **loose), "right")[0] == pytest.approx(40)
    assert meter.pay(snapshot(score=(1, 0), **loose), "right")[0] == 0.0


def test_a_stolen_ball_pays_by_its_frame_and_ends(snapshot: Make) -> None:
    meter = begun(snapshot)
    assert meter.pay(snapshot(owner_team=1, owner=2, frame=100), "right") == (pytest.approx(20 * 100 / 400), True)


def test_a_stolen_ball_counts_for_nothing_where_the_game_goes_on(snapshot: Make) -> None:
    meter = RewardMeter(3000, possession=False)
    meter.pay(snapshot(), "right")
    assert meter.pay(snapshot(owner_team=1, owner=2, frame=100), "right") == (0.0, False)


def test_s_pass_is_the_least_distance_over_ten_times_the_cosine_plus_one(snapshot: Make) -> None:
    # Straight ahead at 0.5: 0.5 / 11. Square at 0.1: 0.1 / 1. Behind at 0.03: 0.03 / 1.
    assert rate_pass(snapshot(right=[[0.5, 0.0]])) == pytest.approx(0.5 / 11)
    assert rate_pass(snapshot(right=[[0.5, 0.0], [0.0, 0.1]])) == pytest.approx(0.5 / 11)
    assert rate_pass(snapshot(right=[[0.5, 0.0], [-0.03, 0.0]])) == pytest.approx(0.03)
    assert rate_pass(snapshot(right=[[0.3, 0.3]])) == pytest.approx(math.hypot(0.3, 0.3) / (10 * math.sqrt(0.5) + 1))


def test_passes_pay_at_reception_and_each_further_one_three_quarters(snapshot: Make) -> None:
    meter = begun(snapshot)
    field = {"right": [[0.5, 0.0]]}
    meter.passed = 0
    assert meter.pay(snapshot(**field), "short_pass")[0] == 0.0
    assert meter.pay(snapshot(owner_team=-1, owner=-1, **field), "builtin_ai")[0] == 0.0
    assert meter.pay(snapshot(owner=2, **field), "builtin_ai")[0] == pytest.approx(20 * 20 * 0.5 / 11)
    meter.pay(snapshot(owner=2, **field), "high_pass")
    assert meter.pay(snapshot(owner=0, **field), "builtin_ai")[0] == pytest.approx(20 * 20 * 0.5 / 11 * 0.75)


def test_a_pass_back_to_oneself_pays_nothing(snapshot: Make) -> None:
    meter = begun(snapshot)
    meter.pay(snapshot(), "long_pass")
    meter.pay(snapshot(owner_team=-1, owner=-1), "builtin_ai")
    assert meter.pay(snapshot(), "builtin_ai")[0] == 0.0


def test_s_shot_is_the_widest_lane_times_the_nearness(snapshot: Make) -> None:
    # One opponent at (0.9, 0.1); the best goal point for a ball at (0.8, 0) is the one farthest from him, y = -0.044.
    now = snapshot((0.8, 0.0), right=[[0.9, 0.1]])
    nearest = min(math.hypot(0.8 + 0.2 * i / 100 - 0.9, -0.044 * i / 100 - 0.1) for i in range(1, 101))
    assert rate_shot(now) == pytest.approx(nearest)
    far = snapshot((0.4, 0.0), right=[[-0.5, 0.0]])
    assert rate_shot(far) == pytest.approx(
        0.4 * min(math.hypot(0.9 + 0.6 * i / 100, y * i / 100) for i in range(1, 2) for y in (0.044,))
    )


def test_a_shot_pays_at_most_two_thirds_of_half_a_goal_and_once_while_pending(snapshot: Make) -> None:
    meter = begun(snapshot, ball=(0.8, 0.0))
    assert meter.pay(snapshot((0.8, 0.0)), "shot")[0] == pytest.approx(20 * 2 / 3)
    assert meter.pay(snapshot((0.8, 0.0)), "shot")[0] == 0.0


def test_a_pending_shot_is_forgotten_when_nobody_has_the_ball(snapshot: Make) -> None:
    meter = begun(snapshot, ball=(0.8, 0.0))
    meter.pay(snapshot((0.8, 0.0)), "shot")
    assert meter.pay(snapshot((0.9, 0.0), owner_team=-1, owner=-1), "builtin_ai")[0] == 0.0
    assert meter.pay(snapshot((0.95, 0.0), owner_team=1, owner=0, frame=200), "builtin_ai") == (pytest.approx(10), True)


def test_a_ball_lost_during_a_pending_shot_is_no_steal(snapshot: Make) -> None:
    meter = begun(snapshot, ball=(0.8, 0.0))
    meter.pay(snapshot((0.8, 0.0)), "shot")
    assert meter.pay(snapshot((0.8, 0.0), owner_team=1, owner=0, frame=200), "shot")[1] is False
