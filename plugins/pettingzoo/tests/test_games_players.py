"""The players: how good they are, and the exploitability of a policy at Kuhn poker."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from playing import begin, finish
from vlgym_pettingzoo.exploit import RANDOM, STATES, measure, place, sample_shares
from vlgym_pettingzoo.kitchen import LAYOUTS
from vlgym_pettingzoo.poker import Bold, read_table

from vlgym.types import Reply


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


def test_exploitability_is_that_of_the_book():
    states = list(read_table("kuhn_poker"))
    assert len(states) == STATES
    assert measure({state: {0: 0.5, 1: 0.5} for state in states}) == pytest.approx(11 / 24) == RANDOM
    # A player that always passes loses the ante to every bet: 1 chip in either seat.
    assert measure({state: {0: 1.0} for state in states}) == pytest.approx(1.0)


def test_shares_are_those_of_the_replies_and_an_unreadable_one_is_a_random_move():
    class Kings:
        """Bets with a king, passes with a queen, and cannot be read with a jack."""

        name = "kings"

        def reply(self, turns: Any) -> list[Reply]:
            actions = []
            for turn in turns:
                card = turn.env.table.game.rank(turn.env.table.game.card_of(turn.env.seat))
                legal = turn.env.legal_actions()
                actions.append({"K": legal[1], "Q": legal[0], "J": "what?"}[card])
            return [Reply(f"<action>{action}</action>") for action in actions]

    shares = sample_shares(Kings(), 30)
    assert len(shares) == STATES
    for state, row in shares.items():
        if state[0] == "0":
            assert 0.2 < row[0] < 0.8
        else:
            assert row == {0: 1.0} if state[0] == "1" else row == {1: 1.0}


def test_equilibrium_play_has_place_1_and_the_place_of_random_play_is_known_to_a_fifth():
    states = list(read_table("kuhn_poker"))
    share, half = place({state: {0: 0.5, 1: 0.5} for state in states}, samples=64)
    assert share == pytest.approx(0.0, abs=1e-9)
    assert 0.05 < half < 0.2
    assert place(read_table("kuhn_poker"), samples=64)[0] > 0.998


@pytest.mark.parametrize(
    ("legal", "action"), [(("check", "bet"), "bet"), (("fold", "call"), "call"), (("fold", "call", "raise"), "raise")]
)
def test_the_bold_blind_player_never_folds(legal: tuple[str, ...], action: str):
    assert Bold(random.Random(0)).choose("", legal) == action
