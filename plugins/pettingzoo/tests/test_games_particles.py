"""Spread and tag on MPE2's engine: what a turn is, when a game ends, how good the players are, what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playing import begin, finish, move
from vlgym_pettingzoo.mpe import RUNNER

from vlgym.games.table import Table

SPREAD, TAG = "MPESpread", "MPETag"


def place(table: Table, *spots: tuple[float, float]) -> None:
    """Put the agents at rest on these spots."""
    for body, spot in zip(table.game.engine.world.agents, spots, strict=True):
        body.state.p_pos, body.state.p_vel = np.array(spot, float), np.zeros(2)


def lay(table: Table, *spots: tuple[float, float]) -> None:
    """Put the landmarks on these spots."""
    for mark, spot in zip(table.game.engine.world.landmarks, spots, strict=True):
        mark.state.p_pos = np.array(spot, float)


@pytest.mark.parametrize("frames", [1, 4])
def test_one_push_of_spread_takes_an_agent_a_fifth_of_a_unit_however_many_frames_share_it(frames: int) -> None:
    table = begin(SPREAD, frame_skip=frames)
    place(table, (0.0, 0.0), (0.8, 0.8), (-0.8, 0.8))
    move(table, "right", "stay", "stay")
    for _ in range(20):
        move(table, "stay", "stay", "stay")
    assert table.game.body_of(0).state.p_pos[0] == pytest.approx(0.2, abs=0.002)
    assert table.game.engine.steps == 21 * frames


def test_spread_pays_all_the_same_minus_the_distances_and_ends_when_all_is_covered() -> None:
    table = begin(SPREAD)
    lay(table, (-0.5, 0.0), (0.5, 0.0), (0.0, 0.8))
    place(table, (-0.5, 0.0), (0.5, 0.0), (0.0, -0.2))
    assert move(table, "stay", "stay", "stay") == pytest.approx((-1.0 + 0.0,) * 3, abs=0.12)
    assert (table.over, table.game.points(0)) == (False, 2)
    expected = -sum(
        min(math.dist(body.state.p_pos, mark.state.p_pos) for body in table.game.engine.world.agents)
        for mark in table.game.engine.world.landmarks
    )
    assert expected == pytest.approx(table.returns[0], abs=1e-6)  # nobody moved, so every frame paid that
    place(table, (-0.5, 0.0), (0.5, 0.0), (0.1, 0.8))
    assert table.game.make_moves(dict.fromkeys(range(3), "stay")).terminated
    assert all(table.game.won(seat) for seat in range(3))


def test_the_planners_of_spread_cover_all_and_random_agents_do_not() -> None:
    table, won = begin(SPREAD), {"oracle": 0, "random": 0}
    for player in won:
        for seed in range(100, 103):
            finish(table, [player] * 3, seed)
            won[player] += table.game.won(0)
    assert won["oracle"] >= 2
    assert won["random"] == 0


def test_in_tag_a_touch_pays_the_chasers_costs_the_runner_and_ends_the_game() -> None:
    table = begin(TAG)
    lay(table, (-0.9, -0.9), (0.9, -0.9))
    place(table, (0.0, 0.0), (0.8, 0.8), (0.1, 0.0))
    assert move(table, "right", "stay", "stay") == pytest.approx((1.0, 1.0, -1.0))
    assert table.terminated
    assert [table.game.won(seat) for seat in range(3)] == [True, True, False]


def test_in_tag_a_runner_who_leaves_the_field_has_lost() -> None:
    table = begin(TAG)
    lay(table, (-0.9, -0.9), (0.9, -0.9))
    place(table, (-0.5, 0.0), (-0.8, 0.8), (0.85, 0.3))
    rewards = [move(table, "stay", "stay", "right") for _ in range(3) if not table.over]
    assert (table.terminated, table.game.left, table.game.caught) == (True, True, False)
    assert rewards[-1][:2] == (1.0, 1.0)
    assert rewards[-1][2] < -1.0


def test_a_runner_who_lasts_all_turns_has_won() -> None:
    table = begin(TAG, max_turns=2)
    lay(table, (-0.9, -0.9), (0.9, -0.9))
    place(table, (-0.8, 0.0), (-0.8, 0.8), (0.5, 0.3))
    for turn in range(2):
        assert not table.game.won(RUNNER), turn
        move(table, "stay", "stay", "stay")
    assert table.truncated
    assert [table.game.won(seat) for seat in range(3)] == [False, False, True]


@pytest.mark.parametrize("title", [SPREAD, TAG])
def test_a_push_moves_a_disc_that_way_in_the_field_and_in_the_picture(title: str) -> None:
    table = begin(title)
    lay(table, *[(0.8, -0.8), (-0.8, -0.8), (0.0, 0.8)][: len(table.game.engine.world.landmarks)])
    for action, axis, sign in (("up", 1, 1), ("down", 1, -1), ("left", 0, -1), ("right", 0, 1)):
        place(table, (0.0, 0.0), (0.8, 0.8), (-0.8, 0.8))
        assert table.game.way_to(0, table.game.body_of(2).state.p_pos) == "up left"
        assert table.game.way_to(2, (0.0, 0.0)) == "down right"
        before = table.game.at(table.game.body_of(0).state.p_pos)
        move(table, action, "stay", "stay")
        moved = table.game.body_of(0).state.p_pos
        assert moved[axis] * sign > 0.01
        assert moved[1 - axis] == 0
        assert (table.game.at(moved)[axis] - before[axis]) * (sign if axis == 0 else -sign) > 1
