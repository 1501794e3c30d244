"""Monster Hunt and Battle of the Colors: rules by hand, and players."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from playing import begin, finish, move
from vlgym_pettingzoo.walkers import distance

from vlgym.games.table import Table


def at(title: str, **state: Any) -> Table:
    """Return a game in a position."""
    table = begin(title)
    for name, value in state.items():
        setattr(table.game, name, value)
    return table


HUNT = {"monster": (0, 4), "apples": [(0, 1), (4, 0)]}


def test_a_thought_names_the_ways_that_lead_to_a_square() -> None:
    game = begin("MonsterHunt").game
    for goal in game.cells():
        words = game.way_to(1, goal).split()
        assert set(words[1::2] or ["stay"]) == set(game.nearer(1, goal))
        assert sum(map(int, words[:-1:2])) == distance(game.places[1], goal)


def test_an_apple_pays_two_and_grows_elsewhere() -> None:
    table = at("MonsterHunt", places=[(0, 0), (4, 4)], **HUNT)
    assert move(table, "right", "stay") == (2.0, 0.0)
    assert (0, 1) not in table.game.apples
    assert table.game.apples[1] == (4, 0)


def test_the_monster_goes_to_the_nearest_and_who_meets_it_alone_pays_and_is_put_elsewhere() -> None:
    table = at("MonsterHunt", places=[(0, 2), (4, 4)], **HUNT)
    assert move(table, "stay", "stay") == (0.0, 0.0)
    assert table.game.monster == (0, 3)
    assert move(table, "stay", "stay") == (-2.0, 0.0)
    assert table.game.monster == (0, 2) != table.game.places[0]


def test_two_who_meet_the_monster_on_one_square_earn_five_each() -> None:
    table = at("MonsterHunt", places=[(1, 3), (1, 3)], **HUNT)
    assert move(table, "up", "up") == (5.0, 5.0)
    assert table.game.places == [(0, 3), (0, 3)]
    assert table.game.monster != (0, 3)


def test_a_wall_stops_a_move_and_chance_draws_the_nearest_of_two_who_are_as_near() -> None:
    prey = set()
    for seed in range(12):
        table = at("MonsterHunt", places=[(0, 0), (0, 4)], monster=(0, 2), apples=[(4, 0), (4, 4)])
        table.game.chance_rng = np.random.default_rng(seed)
        move(table, "left", "up")
        assert table.game.places == [(0, 0), (0, 4)]
        prey.add(table.game.monster)
    assert prey == {(0, 1), (0, 3)}


@pytest.mark.parametrize(
    ("places", "actions", "rewards", "moved"),
    [
        ([(0, 1), (1, 0)], ("left", "up"), (2.0, 1.0), (True, False)),
        ([(4, 3), (3, 4)], ("right", "down"), (1.0, 2.0), (False, True)),
        ([(0, 1), (4, 3)], ("left", "right"), (0.0, 0.0), (True, True)),
        ([(0, 1), (2, 2)], ("left", "stay"), (0.0, 0.0), (False, False)),
        ([(2, 2), (2, 2)], ("stay", "stay"), (0.0, 0.0), (False, False)),
    ],
)
def test_a_block_pays_two_who_stand_on_it_and_different_blocks_pay_nobody(
    places: list[Any], actions: tuple[str, str], rewards: tuple[float, float], moved: tuple[bool, bool]
) -> None:
    table = at("BattleOfTheColors", places=places, blocks=[(0, 0), (4, 4)])
    assert move(table, *actions) == rewards
    assert tuple(block != was for block, was in zip(table.game.blocks, [(0, 0), (4, 4)], strict=True)) == moved


@pytest.mark.parametrize(("title", "least", "most"), [("MonsterHunt", 200, 20), ("BattleOfTheColors", 45, 5)])
def test_two_oracles_earn_much_and_random_players_little(title: str, least: float, most: float) -> None:
    table = begin(title)
    means = [np.mean([sum(finish(table, [player] * 2, seed)) for seed in range(3)]) for player in ("oracle", "random")]
    assert means[0] > least
    assert means[1] < most


def test_the_apple_eater_eats_and_the_selfish_walk_to_their_own_block() -> None:
    assert min(finish(begin("MonsterHunt"), ("search", "search"), 1)) > 10
    table = at("BattleOfTheColors", places=[(2, 2), (2, 2)], blocks=[(0, 0), (4, 4)])
    assert {table.game.search(0)} <= {"up", "left"}
    assert {table.game.search(1)} <= {"down", "right"}
