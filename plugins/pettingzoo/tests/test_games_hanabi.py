"""Hanabi with two to five players."""

from __future__ import annotations

import pytest
from playing import begin
from vlgym_pettingzoo.hanabi import choose, read_view

from vlgym.registry import get_registry
from vlgym.testing import Subject, find_leaks
from vlgym.testing.game_checks import check_symmetry

HANABI = "vlgym/Hanabi-v0"
SMALL = (96, 96)
MORE = pytest.mark.parametrize("players", [3, 5])


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


@MORE
def test_a_hint_names_its_player_and_tells_that_player_alone(players: int) -> None:
    table = begin("Hanabi", players=players)
    target = players - 1
    card = table.game.view(0).others[target - 1][0].card
    assert card is not None
    colour = {"R": "red", "Y": "yellow", "G": "green", "W": "white", "B": "blue"}[card[0]]
    assert f"hint player {players} {colour}" in table.legal(0)
    assert not [action for action in table.legal(0) if action.startswith("hint player 1 ")]
    table.step({0: f"<action>hint player {players} rank {card[1]}</action>"})
    for seat in range(players):
        hints = [slot.hinted for slot in table.game.view(seat).own]
        assert (hints[0] == f"X{card[1]}") == (seat == target)
        assert seat == target or set(hints) == {"XX"}


@pytest.mark.parametrize("players", [3, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_the_checks_of_games_pass_with_more_players(players: int) -> None:
    subject = Subject(get_registry().get(HANABI), {"players": players, "image_size": SMALL})
    assert "in reverse order" in check_symmetry(subject)
    changed, states = (int(word) for word in find_leaks(subject, 1).split() if word.isdigit())
    assert changed >= states / 3


START = "Life tokens: 3\nInfo tokens: 8\nFireworks: R0 Y0 G0 W0 B0 \nHands:\nCur player\n"
HINTS = [f"hint player {player} {what}" for player in (2, 3) for what in ("red", "blue", "rank 1", "rank 4", "rank 5")]


def test_the_player_by_rules_counts_the_cards_in_all_hands() -> None:
    careful = START.replace("tokens: 3", "tokens: 1") + "XX || BX|B12\n-----\n"  # the last life, and a blue 1 or 2
    both = "B2 || XX|RYGWB12345\n-----\nB2 || XX|RYGWB12345\nDeck size: 30\nDiscards: "
    assert choose(read_view(careful + both), HINTS) == "play 1"
    assert choose(read_view(careful + both.replace("B2", "B3", 1)), HINTS) != "play 1"
