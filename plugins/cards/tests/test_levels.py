"""Levels of the card games: what they change, and that the pictures can be read."""

import numpy as np
import pytest
from vlgym_cards.art import UNITS, WHITE, Canvas, card_sprite
from vlgym_cards.cards import Card

from vlgym.registry.making import make

SMALLEST_NUMBER = 73  # pixels of NumberLine's smallest number on any level, at 300 x 300
SMALLEST_RANK = 24  # pixels of the smallest rank in the middle of a card, with five cards


def ink_height(picture: np.ndarray, ground: tuple[int, int, int]) -> int:
    """Return the height of what is drawn on a plain ground."""
    rows = (np.abs(picture.astype(int) - ground).max(axis=2) > 96).any(axis=1)
    return int(np.ptp(rows.nonzero()[0])) + 1


@pytest.mark.parametrize("level", [*(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(5)), 5])
def test_number_line_draws_every_number_of_a_level_large(level: int) -> None:
    env = make("vlgym/NumberLine-v1", level=level)
    env.reset(seed=0)
    count = env.level_arguments[level]["max_position"] + 1
    for number in range(count):
        start = {"current": number, "target": (number + 1) % count}
        image = env.reset(seed=0, options=start)[0]["image"]
        assert ink_height(image[150:, 150:], (255, 255, 255)) >= SMALLEST_NUMBER


@pytest.mark.parametrize(("title", "cards"), [("EZPoints", (2, 2, 3, 3, 4)), ("Points24", (3, 3, 4, 4, 4, 5))])
def test_a_level_has_its_number_of_cards_and_its_signs(title: str, cards: tuple[int, ...]) -> None:
    env = make(f"vlgym/{title}-v1")
    for level, count in enumerate(cards):
        for seed in range(3):
            _, info = env.reset(seed=seed, options={"level": level})
            assert (info["solvable"], len(info["cards"])) == (True, count)
        rules = env.level_arguments[level].get("rules", type(env).rules)
        signs = {*rules.operators, *("()" if rules.brackets else "")}
        assert {*env.legal_actions()} & {*"+-*/()"} == signs


def test_five_cards_do_not_overlap_and_their_ranks_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laid = []
    monkeypatch.setattr(Canvas, "card", lambda canvas, card, *place: laid.append(place))
    env = make("vlgym/Points24-v1", level=5)
    env.reset(seed=0)
    (left, _, width, height), *others = laid
    assert len(others) == 4
    assert others[0][0] >= left + width
    assert others[-1][0] + width <= UNITS
    for rank in range(1, 14):
        sprite, _ = card_sprite(Card(rank, "C"), round(width), round(height))
        middle = np.array(sprite)[round(0.36 * height) : -3, round(0.25 * width) : -3]
        assert ink_height(middle, WHITE) >= SMALLEST_RANK
