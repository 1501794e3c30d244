"""EZPoints: two cards, plus and times, 12."""

from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_choice

from .art import Canvas
from .cards import Card, draw_suit
from .formula_game import FormulaGame
from .solver import Rules, is_solvable

HANDS = ("published", "balanced")
_LONG = {"hands": "solvable", "longest": 10, "max_turns": 11}
PAIRS = ((2, 10), (3, 9), (4, 8), (5, 7), (6, 6), (2, 6), (3, 4))  # values that make 12


class EZPoints(FormulaGame):
    """EZPoints: write a formula worth 12 from two cards.

    EZPoints-v1 deals balanced hands, and its second refused number ends the episode. EZPoints-v0 is
    the published form: there a player who sees nothing tries 10, 7, 9, 8 and wins about 0.8 of the
    games. `FormulaGame` describes formulas, `compat` and info.

    Goal: a formula that uses both cards' numbers exactly once and equals 12, then `=`. A counts 1;
        J, Q and K count 10. 83.3 % of the published hands need a sum, 16.7 % a product.
    Observation: two cards on green felt, 300 x 300 pixels by default, and the formula so far under
        them; the text repeats the formula, not the cards.
    Actions: `1` to `10`, `+`, `*`, `=`; each turn appends one. All are always in the list.
    Reward: `=` pays +10 if the formula is right, else -1. A number that no unused card has: -1,
        formula unchanged, counted as an invalid action. A token when the formula holds 6 already:
        -1. Otherwise 0. Best return: 10, in 4 turns.
    Endings: terminated by `=`, and by the second refused number in EZPoints-v1 (`refusals=2`);
        truncated by a seventh token or after 7 turns.
    Success: a right formula was finished. Random play: 0.1 % (60,000 episodes).
    Oracle: exact, from every formula that can still become right; else it plays `=`.
    References: Zhai et al., NeurIPS 2024 (gym-cards). VL-DAC, arXiv 2508.04280.

    Args:
        hands: `published`, or `balanced`: the seven pairs of values that make 12 are equally likely
            (10 with 2 is more than a third of the published hands).
        compat: `None` or `"rl4vlm"`, with published hands and without `refusals`.
    """

    title = "EZPoints"
    target = 12
    hand_size = 2
    rules = Rules("+*", brackets=False)
    longest = 6
    solvable_only = True
    level_arguments: ClassVar = (
        {"hands": "balanced", "rules": Rules("+", brackets=False)},
        {"hands": "balanced"},
        {**_LONG, "hand_size": 3, "rules": Rules("+*", brackets=False)},
        {**_LONG, "hand_size": 3, "rules": Rules("+-*", brackets=False)},
        {**_LONG, "hand_size": 4, "rules": Rules("+-*", brackets=False)},
    )

    def __init__(self, *, hands: str = "published", compat: str | None = None, **kwargs: Any) -> None:
        self.hands = "published" if compat else check_choice("hands", hands, HANDS)
        super().__init__(compat=compat, faces_as_ten=True, **kwargs)

    def deal(self, rng: np.random.Generator) -> tuple[Card, ...]:
        if self.hands == "solvable":
            return super().deal(rng)

        # Balanced: one of the pairs that the level's signs solve.
        if self.hands == "balanced":
            pairs = [pair for pair in PAIRS if is_solvable(pair, self.target, self.rules)]
            values = pairs[int(rng.integers(len(pairs)))]
            ranks = [int(rng.integers(10, 14)) if value == 10 else value for value in values]
            low, high = (Card(rank, draw_suit(rng)) for rank in ranks)
            return (high, low) if rng.random() < 0.5 else (low, high)

        # Published: a first card from 2 to K, and a second that makes 12 with it.
        first = Card(int(rng.integers(2, 14)), draw_suit(rng))
        choices = partners(first.value())
        second = Card(choices[int(rng.integers(len(choices)))], draw_suit(rng))
        return (second, first) if rng.random() < 0.5 else (first, second)

    def lay(self, canvas: Canvas) -> None:
        if not self.compat:
            canvas.write("Formula:", 10, 192, 20)
        if self.hand_size > 2:
            self.lay_row(canvas, 24)
            return
        top, height = (55, 189) if self.compat else (10, 178)
        for card, x in zip(self.cards, (5, 153) if self.compat else (9, 156), strict=True):
            canvas.card(card, x, top, 135, height)

    def write(self, canvas: Canvas) -> None:
        if self.compat:
            canvas.write(f"Formula: {' '.join(self.formula)}", 10, 258, 20)
        else:
            canvas.wrapped(self.formula, 10, 218, 282, 80, (52, 44, 36, 30, 24))


def partners(value: int) -> tuple[int, ...]:
    """Ranks of the second published card for a first one worth `value`, all equally likely.

    A second card worth 10 is always a ten, never a face.
    """
    return (12 // value, 12 - value) if value in (1, 2, 3, 4, 6) else (12 - value,)
