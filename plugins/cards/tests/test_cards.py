"""Cards, levels, and pictures that can be read."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from vlgym_cards.art import UNITS, WHITE, Canvas, card_sprite
from vlgym_cards.cards import RANKS, SUITS, Card, draw_card

SMALLEST_NUMBER = 73  # pixels of NumberLine's smallest number on any level, at 300 x 300
SMALLEST_RANK = 24  # pixels of the smallest rank in the middle of a card, with five cards


def ink_height(picture: np.ndarray, ground: tuple[int, int, int]) -> int:
    """Return the height of what is drawn on a plain ground."""
    rows = (np.abs(picture.astype(int) - ground).max(axis=2) > 96).any(axis=1)
    return int(np.ptp(rows.nonzero()[0])) + 1


@pytest.mark.parametrize("level", [*(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(5)), 5])
def test_number_line_draws_every_number_of_a_level_large(make_env: Callable, level: int) -> None:
    env = make_env("NumberLine-v1", level=level)
    count = env.level_arguments[level]["max_position"] + 1
    for number in range(count):
        start = {"current": number, "target": (number + 1) % count}
        image = env.reset(seed=0, options=start)[0]["image"]
        assert ink_height(image[150:, 150:], (255, 255, 255)) >= SMALLEST_NUMBER


@pytest.mark.parametrize(("title", "cards"), [("EZPoints", (2, 2, 3, 3, 4)), ("Points24", (3, 3, 4, 4, 4, 5))])
def test_a_level_has_its_number_of_cards_and_its_signs(make_env: Callable, title: str, cards: tuple[int, ...]) -> None:
    env = make_env(f"{title}-v1")
    for level, count in enumerate(cards):
        for seed in range(3):
            _, info = env.reset(seed=seed, options={"level": level})
            assert (info["solvable"], len(info["cards"])) == (True, count)
        assert count == 5 or env.completion(), "there is room for a solution"
        assert ("13" in env.legal_actions()) == (title == "Points24" and level > 3)
        rules = env.level_arguments[level].get("rules", type(env).rules)
        signs = {*rules.operators, *("()" if rules.brackets else "")}
        assert {*env.legal_actions()} & {*"+-*/()"} == signs


def test_five_cards_do_not_overlap_and_their_ranks_can_be_read(make_env, monkeypatch):
    laid = []
    monkeypatch.setattr(Canvas, "card", lambda canvas, card, *place: laid.append(place))
    make_env("Points24-v1", {}, level=5)
    (left, _, width, height), *others = laid
    assert len(others) == 4
    assert others[0][0] >= left + width
    assert others[-1][0] + width <= UNITS
    for rank in range(1, 14):
        sprite, _ = card_sprite(Card(rank, "C"), round(width), round(height))
        middle = np.array(sprite)[round(0.36 * height) : -3, round(0.25 * width) : -3]
        assert ink_height(middle, WHITE) >= SMALLEST_RANK


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
