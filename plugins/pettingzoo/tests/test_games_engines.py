"""Knights and zombies, spread and tag, Pong, on others' engines: turns, pay, ends, players."""

import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from playing import begin, finish, move
from vlgym_pettingzoo.mpe import RUNNER
from vlgym_pettingzoo.pong import SHIFT, STICKS, WINNING, Pong

import vlgym
from vlgym.errors import NotInstalledError
from vlgym.games.table import Table

KNIGHTS, SPREAD, TAG = "KnightsArchersZombies", "MPESpread", "MPETag"
Spot = tuple[float, float]


def put(table: Table, *spots: tuple[int, int]) -> None:
    """Leave as many zombies as there are spots, with their middles there; no more come."""
    engine = table.game.engine
    engine.max_zombies = 0
    zombies = list(engine.zombie_list)
    for zombie in zombies[len(spots) :]:
        engine.zombie_list.remove(zombie)
    for zombie, spot in zip(zombies, spots, strict=False):
        zombie.rect.center = spot


def test_actions_move_and_turn_a_player_for_three_frames() -> None:
    table = begin(KNIGHTS)
    put(table)
    archer, knight = table.game.bodies
    (x, y), before = archer.rect.center, table.game.engine.frames
    move(table, "forward", "turn left")
    assert archer.rect.center == (x, y - 75)  # it looks up
    assert tuple(knight.direction) == pytest.approx((-0.5, -(3**0.5) / 2), abs=1e-4)
    assert table.game.engine.frames == before + 3
    move(table, "backward", "turn right")
    assert archer.rect.center == (x, y)
    assert tuple(knight.direction) == pytest.approx((0, -1), abs=1e-4)


@pytest.mark.parametrize(("seat", "above"), [(0, 200), (1, 60)])
def test_an_attack_kills_the_zombie_ahead_and_pays_both(seat: int, above: int) -> None:
    table = begin(KNIGHTS)
    x, y = table.game.bodies[seat].rect.center
    put(table, (x, y - above))
    actions = ["attack" if each == seat else "stay" for each in (0, 1)]
    paid = [move(table, *actions) for _ in range(3)]
    assert np.sum(paid, axis=0).tolist() == [1.0, 1.0]
    assert table.game.points(0) == table.game.points(1) == 1


def test_whom_a_zombie_touches_is_dead_and_the_other_goes_on() -> None:
    table = begin(KNIGHTS)
    put(table, table.game.bodies[1].rect.center)
    move(table, "stay", "stay")
    assert (table.over, table.movers, table.legal(1)) == (False, (0,), ["wait"])
    assert table.game.details(1) == {"role": "knight", "alive": False, "other_alive": True, "killed": 0}
    put(table, table.game.bodies[0].rect.center)
    move(table, "stay")
    assert table.terminated
    assert not table.game.won(0)


def test_the_line_is_lost_to_one_zombie_and_won_when_it_holds_to_the_last_turn() -> None:
    table = begin(KNIGHTS)
    put(table, (600, 690))
    while not table.over:
        move(table, "stay", "stay")
    assert (table.terminated, table.game.won(0), table.game.won(1)) == (True, False, False)
    table = begin(KNIGHTS, max_turns=2)
    put(table)
    move(table, "stay", "stay")
    assert not table.game.won(0)
    move(table, "stay", "stay")
    assert (table.truncated, table.game.won(0), table.game.won(1)) == (True, True, True)


@pytest.mark.parametrize(("title", "seats", "seeds"), [(KNIGHTS, 2, (100, 101)), (SPREAD, 3, (100, 101, 102))])
def test_planners_hold_the_line_or_cover_all_and_random_players_do_not(title, seats, seeds):
    table, won = begin(title), {"oracle": 0, "random": 0}
    for player in won:
        for seed in seeds:
            finish(table, [player] * seats, seed)
            won[player] += table.game.won(0)
    assert won["oracle"] >= 2
    assert won["random"] == 0


def test_loading_the_engine_leaves_python_writing_bytecode_and_opens_no_window() -> None:
    code = (
        "import sys, os; os.environ.pop('SDL_VIDEODRIVER', None); sys.dont_write_bytecode = False\n"
        "import vlgym; table = vlgym.open_table('vlgym/KnightsArchersZombies-v0'); table.reset(seed=0)\n"
        "table.game.draw(0); import pygame\n"
        "print(sys.dont_write_bytecode, pygame.display.get_init(), os.environ.get('SDL_VIDEODRIVER'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["False", "False", "None"], done.stderr


def set_out(table: Table, marks: Sequence[Spot], *agents: Spot) -> None:
    """Put landmarks, and agents at rest, on these spots."""
    world = table.game.engine.world
    for mark, spot in zip(world.landmarks, marks, strict=True):
        mark.state.p_pos = np.array(spot, float)
    for body, spot in zip(world.agents, agents, strict=True):
        body.state.p_pos, body.state.p_vel = np.array(spot, float), np.zeros(2)


MARKS = ((-0.5, 0.0), (0.5, 0.0), (0.0, 0.8))
ROCKS = ((-0.9, -0.9), (0.9, -0.9))


@pytest.mark.parametrize("frames", [1, 4])
def test_one_push_of_spread_is_a_fifth_of_a_unit_in_any_number_of_frames(frames: int) -> None:
    table = begin(SPREAD, frame_skip=frames)
    set_out(table, MARKS, (0.0, 0.0), (0.8, 0.8), (-0.8, 0.8))
    move(table, "right", "stay", "stay")
    for _ in range(20):
        move(table, "stay", "stay", "stay")
    assert table.game.body_of(0).state.p_pos[0] == pytest.approx(0.2, abs=0.002)
    assert table.game.engine.steps == 21 * frames


def test_spread_pays_all_the_same_minus_the_distances_and_ends_when_all_is_covered() -> None:
    table = begin(SPREAD)
    set_out(table, MARKS, (-0.5, 0.0), (0.5, 0.0), (0.0, -0.2))
    world = table.game.engine.world
    away = [min(math.dist(body.state.p_pos, spot) for body in world.agents) for spot in MARKS]
    assert move(table, "stay", "stay", "stay") == pytest.approx((-sum(away),) * 3, abs=1e-6)
    assert (table.over, table.game.points(0)) == (False, 2)
    set_out(table, MARKS, (-0.5, 0.0), (0.5, 0.0), (0.1, 0.8))
    assert table.game.make_moves(dict.fromkeys(range(3), "stay")).terminated
    assert all(table.game.won(seat) for seat in range(3))


def test_in_tag_a_touch_pays_the_chasers_costs_the_runner_and_ends_the_game() -> None:
    table = begin(TAG)
    set_out(table, ROCKS, (0.0, 0.0), (0.8, 0.8), (0.1, 0.0))
    assert move(table, "right", "stay", "stay") == pytest.approx((1.0, 1.0, -1.0))
    assert table.terminated
    assert [table.game.won(seat) for seat in range(3)] == [True, True, False]


def test_in_tag_a_runner_who_leaves_the_field_has_lost() -> None:
    table = begin(TAG)
    set_out(table, ROCKS, (-0.5, 0.0), (-0.8, 0.8), (0.85, 0.3))
    rewards = [move(table, "stay", "stay", "right") for _ in range(3) if not table.over]
    assert (table.terminated, table.game.left, table.game.caught) == (True, True, False)
    assert rewards[-1][:2] == (1.0, 1.0)
    assert rewards[-1][2] < -1.0


def test_a_runner_who_lasts_all_turns_has_won() -> None:
    table = begin(TAG, max_turns=2)
    set_out(table, ROCKS, (-0.8, 0.0), (-0.8, 0.8), (0.5, 0.3))
    for turn in range(2):
        assert not table.game.won(RUNNER), turn
        move(table, "stay", "stay", "stay")
    assert table.truncated
    assert [table.game.won(seat) for seat in range(3)] == [False, False, True]


def test_a_push_moves_a_disc_that_way_in_the_field_and_in_the_picture() -> None:
    table = begin(SPREAD)
    for action, axis, sign in (("up", 1, 1), ("down", 1, -1), ("left", 0, -1), ("right", 0, 1)):
        set_out(table, ((0.8, -0.8), (-0.8, -0.8), (0.0, 0.8)), (0.0, 0.0), (0.8, 0.8), (-0.8, 0.8))
        assert table.game.way_to(0, table.game.body_of(2).state.p_pos) == "up left"
        assert table.game.way_to(2, (0.0, 0.0)) == "down right"
        before = table.game.at((0.0, 0.0))
        move(table, action, "stay", "stay")
        moved = table.game.body_of(0).state.p_pos
        assert moved[axis] * sign > 0.01
        assert moved[1 - axis] == 0
        assert (table.game.at(moved)[axis] - before[axis]) * (sign if axis == 0 else -sign) > 1


@pytest.fixture(scope="module")
def pong() -> Table:
    """One game for all tests."""
    pytest.importorskip("multi_agent_ale_py", reason="the plugin's extra `pong` is not installed")
    return begin("Pong")


@pytest.mark.parametrize(("action", "seat"), [*zip(STICKS, (0, 1, 0, 1, 1), strict=True)])
def test_an_action_moves_the_own_paddle_by_its_rows(pong: Table, seat: int, action: str) -> None:
    pong.reset(seed=3)
    game: Pong = pong.game
    for mover in (0, 1):  # from the middle, at rest
        while abs(game.paddle_of(mover) - 120) > 8:
            move(pong, *("up a bit" if mover == other else "stay" for other in (0, 1)))
    move(pong, "stay", "stay")
    before = [game.paddle_of(other) for other in (0, 1)]
    move(pong, *(action if other == seat else "stay" for other in (0, 1)))
    move(pong, "stay", "stay")
    assert game.paddle_of(seat) - before[seat] == pytest.approx(SHIFT[action], abs=2)
    assert game.paddle_of(1 - seat) == before[1 - seat]


def test_points_are_paid_at_once_and_three_win(pong: Table) -> None:
    pong.reset(seed=1)
    paid = []
    while not pong.over:
        paid.append(move(pong, "up", "up"))
    one, other = points = [pong.game.score_of(seat) for seat in (0, 1)]
    assert max(points) == WINNING
    assert np.sum(paid, axis=0).tolist() == [one - other, other - one]
    assert pong.terminated
    assert [pong.game.won(seat) for seat in (0, 1)] == [one > other, other > one]


def test_the_ball_is_served_both_ways_and_is_where_the_picture_shows_it(pong: Table) -> None:
    texts, serves = set(), set()
    for seed in range(12):
        pong.reset(seed=seed)
        game: Any = pong.game
        rows, columns = np.where((game._seen[-1] == 236).all(axis=-1))
        assert (columns.mean() - 79.5, rows.mean() - 79.5) == pytest.approx(game.ball, abs=1)
        texts.add(pong.turn_text(0))
        serves.add((game.to_right, game.ball[1]))
        for seat in (0, 1):
            if (follow := game.search(seat)) != "stay":
                assert ("above" in game.explain(seat, "stay")) == follow.startswith("up")
            assert ("comes" in game.explain(seat, "stay")) == (game.to_right == (seat == 0))
    assert len(texts) == 1
    assert len({right for right, _ in serves}) == 2
    assert len({row for _, row in serves}) > 8


@pytest.mark.parametrize("players", [("oracle", "search"), ("search", "random")])
def test_the_oracle_beats_the_follower_and_that_one_random_play(pong: Table, players: Any) -> None:
    ahead = [finish(pong, players[:: 1 - 2 * (seed % 2)], seed)[seed % 2] > 0 for seed in range(2)]
    assert ahead == [True, True]


def test_without_the_console_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "multi_agent_ale_py", None)
    with pytest.raises(NotInstalledError, match=r"plugins/pettingzoo\[pong\]"):
        vlgym.make("vlgym/Pong-v0")
