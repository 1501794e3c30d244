"""Levels of the board games: the board's side and the strength of the opponent."""

import pytest
import vlgym_pettingzoo.spiel as spiel

import vlgym
from vlgym import make


def test_a_level_sets_the_opponents_simulations_and_nothing_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    monkeypatch.setattr(spiel, "search", lambda state, count, salt: (counts.append(count), state.legal_actions()[0])[1])
    env = make("vlgym/ConnectFour-v0")
    for level, simulations in ((0, 2), (4, 200), (None, 50)):
        counts.clear()
        _, info = env.reset(seed=1, options={} if level is None else {"level": level})
        env.step(env.unwrapped.parser.format(info["vlgym"]["legal_actions"][:1]))
        assert set(counts) == {simulations}


def test_breakthroughs_board_has_the_levels_side_in_rules_names_and_picture() -> None:
    env = make("vlgym/Breakthrough-v0", opponents="random")
    for level, side in enumerate((5, 6, 6, 7, 8)):
        env.reset(seed=3, options={"level": level})
        assert str(env.unwrapped.state.get_game()).count(f"={side}") == 2 or side == 8  # OpenSpiel's own default
        lines = str(env.unwrapped.state).splitlines()
        assert lines[0][0] == str(side)
        assert len(lines[0]) == side + 1
        last = "abcdefgh"[side - 1]
        squares = {square for move in env.unwrapped.moves(env.unwrapped.seat_now) for square in (move[:2], move[3:5])}
        assert max(square[0] for square in squares) <= last
        assert env.unwrapped.board_side == side
    env.reset(seed=3)
    assert env.unwrapped.board_side == 6


def test_a_table_plays_the_level_that_is_asked_for_and_restores_it() -> None:
    table = vlgym.open_table("vlgym/Breakthrough-v0")
    table.reset(seed=0, options={"level": 4})
    assert str(table.game.state).startswith("8")
    saved = table.save()
    table.reset(seed=1)
    assert str(table.game.state).startswith("6")
    table.load(saved)
    assert str(table.game.state).startswith("8")
