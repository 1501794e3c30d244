"""What is hidden from a seat stays hidden: all states of 200 random games, and words about the drawings."""

from __future__ import annotations

import numpy as np
import pytest

import vlgym
from vlgym.registry import get_registry
from vlgym.several import SKILL
from vlgym.testing import Subject, find_leaks

HIDDEN = ("KuhnPoker", "LeducHoldem", "Hanabi", "Battleship")


@pytest.mark.parametrize("title", HIDDEN)
def test_nothing_of_what_is_hidden_shows_in_200_random_games(title: str) -> None:
    kwargs = {"hands": 2} if title in ("KuhnPoker", "LeducHoldem") else {}
    kwargs |= {"image_size": (96, 96)} if title in ("Hanabi", "Battleship") else {}
    evidence = find_leaks(Subject(get_registry().get(f"vlgym/{title}-v0"), kwargs), 200)
    changed, states = (int(word) for word in evidence.split() if word.isdigit())
    assert states >= 400
    assert changed >= states / 3


def test_the_games_that_hide_something_say_so() -> None:
    specs = [spec for spec in get_registry().specs.values() if spec.family == "pettingzoo" and SKILL in spec.skills]
    assert {spec.title for spec in specs if "hidden information" in spec.skills} == set(HIDDEN)
    for spec in specs:
        assert vlgym.open_table(spec.id).game.hidden_information == (spec.title in HIDDEN)


def test_a_folded_card_is_shown_to_its_owner_alone() -> None:
    table = vlgym.open_table("vlgym/KuhnPoker-v0", hands=2)
    table.reset(seed=0)
    table.step({0: "<action>bet</action>"})
    table.step({1: "<action>fold</action>"})
    before = table.game.before
    assert not before.shown
    pictures = [table.game.draw(seat) for seat in (0, 1)]
    before.cards[1] = next(card for card in range(3) if card not in before.cards)
    assert np.array_equal(pictures[0], table.game.draw(0))
    assert not np.array_equal(pictures[1], table.game.draw(1))
