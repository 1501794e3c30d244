"""Drawings: the bar that says whose turn it is, ships and rocks that are told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playing import begin, say
from vlgym_pettingzoo.art import GREEN, GREY
from vlgym_pettingzoo.board_games import _SHIP, name, place
from vlgym_pettingzoo.plugin import vlgym_envs

import vlgym
from vlgym.games.several import SKILL
from vlgym.games.table import Table

FEW = ("KuhnPoker", "KitchenPair", "ChessEndings")  # in turn, at once, with another bar
GAMES = [
    pytest.param(spec.id, marks=() if spec.title in FEW else pytest.mark.exhaustive)
    for spec in vlgym_envs()
    if SKILL in spec.skills
]
BAR = 10  # units from the left edge, where no bar has words or marks


def bar_of(table: Table, seat: int) -> tuple[int, ...]:
    """Return the colour of the turn bar in a seat's picture."""
    picture = table.game.draw(seat)
    row = 12 if table.game.title == "vlgym/ChessEndings-v0" else 376
    return tuple(int(level) for level in picture[row * picture.shape[0] // 384, BAR])


@pytest.mark.parametrize("env_id", GAMES)
def test_the_bar_is_green_in_the_pictures_of_those_who_move(env_id: str) -> None:
    table = vlgym.open_table(env_id)
    table.reset(seed=0)
    for seat, space in enumerate(table.spaces):
        space.seed(seat)
    for _ in range(3):
        for seat in range(table.game.seats):
            assert bar_of(table, seat) == (GREEN if seat in table.movers else GREY)
        table.step({seat: table.spaces[seat].sample() for seat in table.movers})


@pytest.mark.parametrize("env_id", GAMES)
def test_the_oracles_thought_names_what_the_picture_alone_shows(env_id: str) -> None:
    """After the same moves the thoughts of several games differ in more than their actions."""
    table, thoughts = vlgym.open_table(env_id, image_size=(64, 64)), set()
    for seed in range(4):
        table.reset(seed=seed)
        for space in table.spaces:
            space.seed(seed)
        for _ in range(2):
            table.step({seat: table.spaces[seat].sample() for seat in table.movers})
        seat = table.movers[0]
        action = table.game.advise(seat)
        thoughts.add((seat, table.game.explain(seat, action).replace(action, "")))
    assert max(sum(seat == each for each, _ in thoughts) for seat in range(table.game.seats)) > 1


def test_battleships_thought_tells_hits_from_water() -> None:
    table = begin("Battleship")
    while len(table.game.shots_of(0)) < 12:
        table.step({seat: table.game.advise(seat) or "" for seat in table.movers})
    hits, water = table.game.explain(0, "a1").partition(";")[0].removeprefix("hits ").split(", water ")
    ships = {name(cell) for ship in table.game.ships_of(1) for cell in ship}
    assert set(hits.split()) <= ships
    assert ships.isdisjoint(water.split())


def test_ships_that_touch_are_told_apart() -> None:
    table = begin("Battleship", image_size=(768, 768))
    layouts = (
        [place("horizontally", 0, 0, 2), place("horizontally", 0, 2, 4)],
        [place("horizontally", 0, 0, 4), place("horizontally", 0, 4, 2)],
    )
    pictures = []
    for ships in layouts:
        table.game.ships_of = lambda seat, own=ships: own if seat == 0 else []
        pictures.append(table.game.draw(0))
    assert all((picture == _SHIP).all(axis=2).any() for picture in pictures)
    assert not np.array_equal(*pictures)


def test_the_rocks_of_tag_lie_apart() -> None:
    table = begin("MPETag")
    for seed in range(30):
        table.reset(seed=seed)
        one, other = table.game.engine.world.landmarks
        assert math.dist(one.state.p_pos, other.state.p_pos) > one.size + other.size


def test_the_words_of_a_board_are_its_rows() -> None:
    table = begin("TicTacToe")
    say(table, "b2")
    assert table.game.describe_view(1) == "the board (x X, o O, . empty), last move b2\n3...\n2.x.\n1...\n abc"


def test_a_table_shows_each_turns_own_picture_or_its_words_by_the_modality() -> None:
    plain, worded = (begin("TicTacToe", 1, modality=each) for each in ("image", "text"))
    while not plain.over:
        (seat,) = plain.movers
        picture, words = (table.turn(seat).messages[-1]["content"] for table in (plain, worded))
        assert np.array_equal(picture[0]["image"], plain.game.draw(seat))
        assert [part["type"] for part in words] == ["text"]
        assert worded.game.describe_view(seat) in words[0]["text"]
        assert worded.game.describe_view(seat) not in picture[1]["text"]
        for table in (plain, worded):
            table.step({seat: table.game.parser.format([table.legal(seat)[0]])})


def test_the_bar_is_grey_when_the_game_is_over() -> None:
    table = begin("TicTacToe")
    while not table.over:
        table.step({})
    assert [bar_of(table, seat) for seat in (0, 1)] == [GREY, GREY]
