"""Cards and their pictures."""

from itertools import combinations

import numpy as np
from vlgym_cards.art import card_sprite
from vlgym_cards.cards import RANKS, SUITS, Card, draw_card


def test_draws_are_uniform_over_52_cards() -> None:
    rng = np.random.default_rng(0)
    drawn = [str(draw_card(rng)) for _ in range(5200)]
    counts = np.array([drawn.count(name) for name in set(drawn)])
    assert len(counts) == 52
    assert counts.min() > 60  # expected 100, standard deviation 10
    assert counts.max() < 140


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
