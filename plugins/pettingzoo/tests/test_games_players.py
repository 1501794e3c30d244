"""The players: how good they are; exploitability at Kuhn poker; Hanabi with two to five."""

import random
from typing import Any

import numpy as np
import pytest
from playing import at, begin, finish, say
from vlgym_pettingzoo.board_games import CELLS, name
from vlgym_pettingzoo.exploit import RANDOM, STATES, measure, place, sample_shares
from vlgym_pettingzoo.hanabi import COLOUR_NAMES, choose, read_view
from vlgym_pettingzoo.kitchen import LAYOUTS
from vlgym_pettingzoo.poker import Bold, read_table

from vlgym.registry import get_registry
from vlgym.testing import Subject, find_leaks
from vlgym.testing.game_checks import check_symmetry
from vlgym.types import Reply


@pytest.mark.parametrize(("game", "most"), [("kuhn_poker", 0.001), ("leduc_poker", 0.01)])
def test_a_best_reply_wins_next_to_nothing_against_the_tables(game: str, most: float) -> None:
    assert 0 <= measure(read_table(game), game) < most
    assert all(abs(sum(row.values()) - 1) < 1e-6 for row in read_table(game).values())


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_the_greedy_pair_serves_soup_in_every_layout(layout: str) -> None:
    table = begin("KitchenPair", layout=layout)
    assert min(finish(table, ["oracle", "oracle"], seed)[0] for seed in range(2)) >= 1
    assert max(finish(table, ["random", "random"], seed)[0] for seed in range(2)) < 1


def test_the_hunter_of_battleship_beats_random_shots() -> None:
    table = begin("Battleship")
    returns = [finish(table, ["oracle", "random"], seed)[0] for seed in range(4)]
    assert sum(result > 0 for result in returns) >= 3


def test_the_hunting_opponent_of_battleship_shoots_next_to_hits_and_at_no_square_twice() -> None:
    table = begin("Battleship")
    while not table.over:
        (seat,) = table.movers
        shot = table.game.search(seat)
        tried, hits = map(set, (table.game.shots_of(seat), table.game.hits_of(seat)))
        near = {(r + x, c + y) for r, c in hits for x, y in ((0, 1), (1, 0), (0, -1), (-1, 0))} & {*CELLS} - tried
        assert shot in map(name, near or {*CELLS} - tried)
        say(table, shot)


@pytest.mark.parametrize(("title", "least", "most"), [
    ("MonsterHunt", 200, 20), ("BattleOfTheColors", 45, 5),
    ("Hanabi", 28, 1),  # a score of 14, which both are paid
])  # fmt: skip
def test_two_oracles_earn_much_and_random_players_little(title: str, least: float, most: float) -> None:
    table = begin(title)
    means = [np.mean([sum(finish(table, [player] * 2, seed)) for seed in range(4)]) for player in ("oracle", "random")]
    assert means[0] > least
    assert means[1] < most


def test_the_apple_eater_eats_and_the_selfish_walk_to_their_own_block() -> None:
    assert min(finish(begin("MonsterHunt"), ("search", "search"), 1)) > 10
    table = at("BattleOfTheColors", places=[(2, 2), (2, 2)], blocks=[(0, 0), (4, 4)])
    assert {table.game.search(0)} <= {"up", "left"}
    assert {table.game.search(1)} <= {"down", "right"}


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
            replies = []
            for turn in turns:
                card = turn.env.table.game.card_of(turn.env.seat)
                replies.append(Reply(f"<action>{('what?', *turn.env.legal_actions())[card]}</action>"))
            return replies

    shares = sample_shares(Kings(), 12)
    assert len(shares) == STATES
    for state, row in shares.items():
        if state[0] == "0":
            assert 0.1 < row[0] < 0.9
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


@pytest.mark.parametrize(("players", "cards"), [(2, 5), (3, 5), (4, 4), (5, 4)])
def test_everybody_has_a_hand_and_sees_those_of_all_others(players: int, cards: int) -> None:
    table = begin("Hanabi", players=players)
    for seat in range(2):
        table.step({seat: f"<action>{table.game.advise(seat)}</action>"})
    game = table.game
    assert game.seats == players
    views = [game.view(seat) for seat in range(players)]
    hands = [[slot.card for slot in views[seat - 1].others[0]] for seat in range(players)]
    assert {len(hand) for hand in hands} == {cards}
    for seat, view in enumerate(views):
        assert [slot.card for slot in view.own] == [None] * cards
        cards_of_others = [[slot.card for slot in hand] for hand in view.others]
        assert cards_of_others == [hands[(seat + step) % players] for step in range(1, players)]
        assert all(card is not None for hand in cards_of_others for card in hand)


@pytest.mark.parametrize("players", [3, 5])
def test_a_hint_names_its_player_and_tells_that_player_alone(players: int) -> None:
    table = begin("Hanabi", players=players)
    target = players - 1
    card = table.game.view(0).others[target - 1][0].card
    assert card is not None
    assert f"hint player {players} {COLOUR_NAMES[card[0]]}" in table.legal(0)
    assert not [action for action in table.legal(0) if action.startswith("hint player 1 ")]
    table.step({0: f"<action>hint player {players} rank {card[1]}</action>"})
    for seat in range(players):
        hints = [slot.hinted for slot in table.game.view(seat).own]
        assert (hints[0] == f"X{card[1]}") == (seat == target)
        assert seat == target or set(hints) == {"XX"}


@pytest.mark.parametrize("players", [3, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_the_checks_of_games_pass_with_more_players(players: int) -> None:
    subject = Subject(get_registry().get("vlgym/Hanabi-v0"), {"players": players, "image_size": (64, 64)})
    assert "in reverse order" in check_symmetry(subject)
    changed, states = (int(word) for word in find_leaks(subject, 1).split() if word.isdigit())
    assert changed >= states / 3


START = "Life tokens: 3\nInfo tokens: 8\nFireworks: R0 Y0 G0 W0 B0 \nHands:\nCur player\n"
HINTS = [f"hint player {player} {what}" for player in (2, 3) for what in ("red", "blue", "rank 1", "rank 4", "rank 5")]


def test_the_player_by_rules_counts_the_cards_in_all_hands() -> None:
    # On the last life, with a blue 1 or 2.
    careful = START.replace("tokens: 3", "tokens: 1") + "XX || BX|B12\n-----\n"
    both = "B2 || XX|RYGWB12345\n-----\nB2 || XX|RYGWB12345\nDeck size: 30\nDiscards: "
    assert choose(read_view(careful + both), HINTS) == "play 1"
    assert choose(read_view(careful + both.replace("B2", "B3", 1)), HINTS) != "play 1"
