"""The strong players: how good they are, measured here."""

from __future__ import annotations

import numpy as np
import pytest
from vlgym_pettingzoo.exploit import measure
from vlgym_pettingzoo.kitchen import LAYOUTS
from vlgym_pettingzoo.poker import read_table

import vlgym
from vlgym.games.table import Reading, Table
from vlgym.types import Parsed


def play(table: Table, players: list[str], seed: int) -> list[float]:
    """Let `advise`, `search` or random play of each seat finish a game; return the returns."""
    rng = np.random.default_rng(seed)
    table.reset(seed=seed)
    table.remembers = set()
    while not table.over:
        moves = {
            seat: getattr(table.game, players[seat])(seat)
            if players[seat] != "random"
            else str(rng.choice(table.game.moves(seat)))
            for seat in table.movers
        }
        table.play({seat: Reading(action, Parsed((action,)), None) for seat, action in moves.items()})
    return table.returns


@pytest.mark.parametrize(("game", "most"), [("kuhn_poker", 0.001), ("leduc_poker", 0.01)])
def test_a_best_reply_wins_next_to_nothing_against_the_tables(game: str, most: float) -> None:
    assert 0 <= measure(read_table(game), game) < most
    assert all(abs(sum(row.values()) - 1) < 1e-6 for row in read_table(game).values())


def test_two_players_by_rules_score_at_least_14_of_25_in_hanabi_on_average() -> None:
    table = vlgym.open_table("vlgym/Hanabi-v0")
    scores = [play(table, ["advise", "advise"], seed)[0] for seed in range(10)]
    assert np.mean(scores) >= 14


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_the_greedy_pair_serves_soup_in_every_layout(layout: str) -> None:
    table = vlgym.open_table("vlgym/KitchenPair-v0", layout=layout)
    assert min(play(table, ["advise", "advise"], seed)[0] for seed in range(3)) >= 1
    assert np.mean([play(table, ["random", "random"], seed)[0] for seed in range(3)]) < 0.5


def test_the_hunter_of_battleship_beats_random_shots() -> None:
    table = vlgym.open_table("vlgym/Battleship-v0")
    returns = [play(table, ["advise", "random"], seed)[0] for seed in range(8)]
    assert sum(result > 0 for result in returns) >= 6
