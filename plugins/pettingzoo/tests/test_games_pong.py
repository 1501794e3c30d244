"""Pong on the emulated console: its moves, points and serves, and what its players are worth."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from playing import begin, finish, move
from vlgym_pettingzoo.pong import SHIFT, STICKS, WINNING, Pong

import vlgym
from vlgym.errors import NotInstalledError
from vlgym.games.table import Table

pytest.importorskip("multi_agent_ale_py", reason="the plugin's extra `pong` is not installed")


@pytest.fixture(scope="module")
def table() -> Table:
    """One game for all tests."""
    return begin("Pong")


@pytest.mark.parametrize(("action", "seat"), zip(STICKS, (0, 1, 0, 1, 1), strict=True))
def test_an_action_moves_the_own_paddle_by_its_rows_and_no_other(table: Table, seat: int, action: str) -> None:
    table.reset(seed=3)
    game: Pong = table.game
    for mover in (0, 1):  # from the middle, at rest
        while abs(game.paddle_of(mover) - 120) > 8:
            move(table, *("up a bit" if mover == other else "stay" for other in (0, 1)))
    move(table, "stay", "stay")
    before = [game.paddle_of(other) for other in (0, 1)]
    move(table, *(action if other == seat else "stay" for other in (0, 1)))
    move(table, "stay", "stay")
    assert game.paddle_of(seat) - before[seat] == pytest.approx(SHIFT[action], abs=2)
    assert game.paddle_of(1 - seat) == before[1 - seat]


def test_points_are_paid_at_once_and_three_win(table: Table) -> None:
    table.reset(seed=1)
    paid = []
    while not table.over:
        paid.append(move(table, "up", "up"))
    game = table.game
    points = [game.score_of(0), game.score_of(1)]
    assert max(points) == WINNING
    assert [sum(each) for each in zip(*paid, strict=True)] == [points[0] - points[1], points[1] - points[0]]
    assert table.terminated
    assert [game.won(seat) for seat in (0, 1)] == [points[0] > points[1], points[1] > points[0]]


def test_seeds_serve_in_both_directions_and_at_many_heights(table: Table) -> None:
    serves = set()
    for seed in range(12):
        table.reset(seed=seed)
        serves.add((table.game.to_right, table.game.ball[1]))
    assert len({right for right, _ in serves}) == 2
    assert len({row for _, row in serves}) > 8


def test_the_ball_is_where_the_picture_shows_it_and_the_text_tells_nothing_of_it(table: Table) -> None:
    texts = set()
    for seed in range(6):
        table.reset(seed=seed)
        rows, columns = np.where((table.game._seen[-1] == 236).all(axis=-1))
        assert (columns.mean() - 79.5, rows.mean() - 79.5) == pytest.approx(table.game.ball, abs=1)
        texts.add(table.observe(0)["text"])
        for seat in (0, 1):
            if (follow := table.game.search(seat)) != "stay":
                assert ("above" in table.game.explain(seat, "stay")) == follow.startswith("up")
            assert ("comes" in table.game.explain(seat, "stay")) == (table.game.to_right == (seat == 0))
    assert len(texts) == 1


def test_the_oracle_beats_the_follower_and_that_one_random_play(table: Table) -> None:
    for players, least in ((("oracle", "search"), 2), (("search", "random"), 3)):
        ahead = 0
        for seed in range(4):
            first = seed % 2
            returns = finish(table, players if first == 0 else players[::-1], seed)
            ahead += returns[first] > 0
        assert ahead >= least, players


def test_without_the_console_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "multi_agent_ale_py", None)
    with pytest.raises(NotInstalledError, match=r"plugins/pettingzoo\[pong\]"):
        vlgym.make("vlgym/Pong-v0")
