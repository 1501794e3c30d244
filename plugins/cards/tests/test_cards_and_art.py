"""Cards, their pictures, and the font."""

from itertools import combinations

import numpy as np
import pytest
from vlgym_cards.art import card_sprite
from vlgym_cards.cards import RANKS, SUITS, Card, draw_card, names


def test_symbols_and_values() -> None:
    assert [Card(rank, "H").symbol for rank in RANKS] == ["A", *map(str, range(2, 11)), "J", "Q", "K"]
    assert [Card(rank, "H").value() for rank in (1, 9, 10, 11, 12, 13)] == [1, 9, 10, 10, 10, 10]
    assert [Card(rank, "H").value(faces_as_ten=False) for rank in (10, 11, 12, 13)] == [10, 11, 12, 13]
    assert names([Card(5, "H"), Card(13, "S")]) == ["H5", "SK"]
    for rank, suit in ((0, "H"), (14, "H"), (5, "X")):
        with pytest.raises(ValueError, match="No such card"):
            Card(rank, suit)


def test_draws_are_uniform_over_52_cards_and_a_function_of_the_generator() -> None:
    rng = np.random.default_rng(0)
    drawn = [str(draw_card(rng)) for _ in range(5200)]
    counts = np.array([drawn.count(name) for name in set(drawn)])
    assert len(counts) == 52
    assert counts.min() > 60  # expected 100, standard deviation 10
    assert counts.max() < 140
    again = np.random.default_rng(0)
    assert [str(draw_card(again)) for _ in range(20)] == drawn[:20]


def test_every_two_cards_look_different_in_the_corner_and_in_the_middle() -> None:
    width, height = 67, 93
    cards = [Card(rank, suit) for rank in RANKS for suit in SUITS]
    pictures = {card: np.asarray(card_sprite(card, width, height)[0]).astype(int) for card in cards}
    corner = (slice(0, round(height * 0.45)), slice(0, round(width * 0.42)))
    middle = (slice(round(height * 0.25), height), slice(round(width * 0.25), width))
    for a, b in combinations(cards, 2):
        difference = np.abs(pictures[a] - pictures[b]).max(axis=2) > 80
        assert difference[corner].sum() >= 10, (a, b)
        if a.rank != b.rank:
            assert difference[middle].sum() >= 40, (a, b)
