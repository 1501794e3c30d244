"""The archer and the knight: what an action does, who dies and what that ends, how good the planners are, pictures."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from playing import begin, finish, move

from vlgym.games.table import Table

TITLE = "KnightsArchersZombies"


def put(table: Table, *spots: tuple[int, int]) -> list[Any]:
    """Leave as many zombies as there are spots, with their middles there; no more come."""
    engine = table.game.engine
    engine.max_zombies = 0
    zombies = list(engine.zombie_list)
    for zombie in zombies[len(spots) :]:
        engine.zombie_list.remove(zombie)
    for zombie, spot in zip(zombies, spots, strict=False):
        zombie.rect.center = spot
    return zombies[: len(spots)]


def test_actions_move_and_turn_a_player_for_three_frames() -> None:
    table = begin(TITLE)
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
    table = begin(TITLE)
    x, y = table.game.bodies[seat].rect.center
    put(table, (x, y - above))
    actions = ["stay", "stay"]
    actions[seat] = "attack"
    paid = [move(table, *actions) for _ in range(3)]
    assert np.sum(paid, axis=0).tolist() == [1.0, 1.0]
    assert table.game.points(0) == table.game.points(1) == 1


def test_whom_a_zombie_touches_is_dead_and_the_other_goes_on() -> None:
    table = begin(TITLE)
    put(table, table.game.bodies[1].rect.center)
    move(table, "stay", "stay")
    assert not table.over
    assert table.movers == (0,)
    assert table.game.details(1) == {"role": "knight", "alive": False, "other_alive": True, "killed": 0}
    assert table.legal(1) == ["wait"]
    put(table, table.game.bodies[0].rect.center)
    move(table, "stay")
    assert table.terminated
    assert not table.game.won(0)


def test_a_zombie_that_reaches_the_line_ends_the_game() -> None:
    table = begin(TITLE)
    put(table, (600, 690))
    while not table.over:
        move(table, "stay", "stay")
    assert (table.terminated, table.game.won(0), table.game.won(1)) == (True, False, False)


def test_a_line_that_holds_to_the_last_turn_is_success_for_both() -> None:
    table = begin(TITLE, max_turns=2)
    put(table)
    move(table, "stay", "stay")
    assert not table.game.won(0)
    move(table, "stay", "stay")
    assert (table.truncated, table.game.won(0), table.game.won(1)) == (True, True, True)


def test_two_planners_hold_the_line_and_random_players_do_not() -> None:
    table, won = begin(TITLE), {"oracle": 0, "random": 0}
    for player in won:
        for seed in (100, 101):
            finish(table, [player] * 2, seed)
            won[player] += table.game.won(0)
    assert won == {"oracle": 2, "random": 0}


def test_loading_the_engine_leaves_python_writing_bytecode_and_opens_no_window() -> None:
    code = (
        "import sys, os; os.environ.pop('SDL_VIDEODRIVER', None); sys.dont_write_bytecode = False\n"
        "import vlgym; table = vlgym.open_table('vlgym/KnightsArchersZombies-v0'); table.reset(seed=0)\n"
        "table.game.draw(0); import pygame\n"
        "print(sys.dont_write_bytecode, pygame.display.get_init(), os.environ.get('SDL_VIDEODRIVER'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["False", "False", "None"], done.stderr
