"""Games in a position, single rounds and whole games for the tests."""

from collections.abc import Sequence
from typing import Any

import vlgym
from vlgym.games.loop import read_moves
from vlgym.games.table import Table


def begin(title: str, seed: int = 0, **kwargs: Any) -> Table:
    """Return a game that remembers no pictures, at its first move, without random ones before."""
    table = vlgym.open_table(f"vlgym/{title}-v0", **kwargs)
    table.remembers, table.game.opening = set(), 0
    table.reset(seed=seed)
    return table


def at(title: str, **state: Any) -> Table:
    """Return a game in a position."""
    table = begin(title)
    for name, value in state.items():
        setattr(table.game, name, value)
    return table


def say(table: Table, *actions: str) -> list[tuple[float, ...]]:
    """Let the seats that move play these actions in turn; return the rewards."""
    return [table.step({table.movers[0]: f"<action>{action}</action>"}).rewards for action in actions]


def move(table: Table, *actions: str) -> tuple[float, ...]:
    """Play one round, in which the seats that move do so by these actions; return the rewards."""
    return table.step({seat: table.game.parser.format([actions[seat]]) for seat in table.movers}).rewards


def finish(table: Table, players: Sequence[str], seed: int) -> list[float]:
    """Let the game's own players, of the seats in order, play a whole game; return the returns."""
    table.reset(seed=seed)
    while not table.over:
        table.play(read_moves(table, table.movers, players, {}))
    return table.returns
