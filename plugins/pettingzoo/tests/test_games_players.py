"""The strong players: how good they are, measured here."""

from __future__ import annotations

import numpy as np
import pytest
from playing import begin, finish
from vlgym_pettingzoo.exploit import measure
from vlgym_pettingzoo.kitchen import LAYOUTS
from vlgym_pettingzoo.poker import read_table


@pytest.mark.parametrize(("game", "most"), [("kuhn_poker", 0.001), ("leduc_poker", 0.01)])
def test_a_best_reply_wins_next_to_nothing_against_the_tables(game: str, most: float) -> None:
    assert 0 <= measure(read_table(game), game) < most
    assert all(abs(sum(row.values()) - 1) < 1e-6 for row in read_table(game).values())


def test_two_players_by_rules_score_at_least_14_of_25_in_hanabi_on_average() -> None:
    table = begin("Hanabi")
    scores = [finish(table, ["oracle", "oracle"], seed)[0] for seed in range(4)]
    assert np.mean(scores) >= 14


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_the_greedy_pair_serves_soup_in_every_layout(layout: str) -> None:
    table = begin("KitchenPair", layout=layout)
    assert min(finish(table, ["oracle", "oracle"], seed)[0] for seed in range(2)) >= 1
    assert max(finish(table, ["random", "random"], seed)[0] for seed in range(2)) < 1


def test_the_hunter_of_battleship_beats_random_shots() -> None:
    table = begin("Battleship")
    returns = [finish(table, ["oracle", "random"], seed)[0] for seed in range(4)]
    assert sum(result > 0 for result in returns) >= 3
