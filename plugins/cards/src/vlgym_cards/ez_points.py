"""EZPoints: two cards, plus and times, 12."""

from __future__ import annotations

from typing import Any

import numpy as np

from .art import Canvas
from .cards import Card, draw_suit
from .formula_game import FormulaGame
from .solver import Rules

TARGET = 12


class EZPoints(FormulaGame):
    """EZPoints: write a formula worth 12 from two cards.

    Goal: a formula that uses both cards' numbers exactly once and equals 12, then `=`. A counts 1; J, Q and
        K count 10. Every hand can be solved: 83.3 % of them only by a sum, 16.7 % only by a product.
    Observation: two cards on green felt, 300 x 300 pixels by default, and the formula so far under them; the
        text repeats the formula, not the cards.
    Actions: `1` to `10`, `+`, `*`, `=`; each turn appends one. All are always in the list; which fit is for
        the player to see.
    Reward: `=` pays +10 if the formula is right, else -1. A number that no unused card has: -1, formula
        unchanged, counted as an invalid action. A token when the formula holds 6 already: -1. Otherwise 0.
        Operators may be put anywhere. Best return: 10, in 4 turns.
    Endings: terminated by `=`; truncated by a seventh token or after 7 turns.
    Success: a right formula was finished (`info["solved"]`); `info["return_positive"]` (the rewards' sum is
        above 0) is the papers' measure. Random play: 0.1 % (60,000 episodes).
    Info: `cards`, `numbers`, `formula`, `solvable`, `solved`, `return_positive`.
    Splits: train, val and test differ by seed only.
    Oracle: exact, from every formula that can still become right; else it plays `=`.

    Formulas are read by an explicit grammar in exact fractions: numbers never run together and there are no
    signs and no powers. Replies that cannot be read cost `invalid_penalty` (0 by default) and a turn.

    `compat="rl4vlm"` gives the published rules: the formula is a Python expression (digits join, `* *` is a
    power), a refused number adds a blank to it, a `=` after the sixth token comes too late; published
    layout, reply parser and random fallback. Not reproduced: unseeded cards, and prompts that show the
    previous episode's formula.

    References:
        Zhai et al., Fine-Tuning Large Vision-Language Models as Decision-Making Agents via Reinforcement
        Learning, NeurIPS 2024 (gym-cards).

    Args:
        compat: `None` or `"rl4vlm"`.
        **kwargs: of `VLEnv`.

    Options of `reset`: `cards`, for example `["H5", "S7"]`.

    Raises:
        UserError: an argument or option is out of its range.
    """

    target = TARGET
    hand_size = 2
    rules = Rules("+*", brackets=False)
    longest = 6

    def __init__(self, *, compat: str | None = None, **kwargs: Any) -> None:
        super().__init__(compat=compat, faces_as_ten=True, **kwargs)

    def deal(self, rng: np.random.Generator) -> tuple[Card, ...]:
        """Draw a first card from 2 to K, a second that makes 12 with it, and their order."""
        first = Card(int(rng.integers(2, 14)), draw_suit(rng))
        choices = partners(first.value())
        second = Card(choices[int(rng.integers(len(choices)))], draw_suit(rng))
        return (second, first) if rng.random() < 0.5 else (first, second)

    def lay(self, canvas: Canvas) -> None:
        """Two cards side by side, and what does not change below them."""
        top, height = (55, 189) if self.compat else (10, 178)
        for card, x in zip(self.cards, (5, 153) if self.compat else (9, 156), strict=True):
            canvas.card(card, x, top, 135, height)
        if not self.compat:
            canvas.text("Formula:", 10, 192, 20)

    def write(self, canvas: Canvas) -> None:
        """The formula under the cards."""
        if self.compat:
            canvas.text(f"Formula: {' '.join(self.formula)}", 10, 258, 20)
        else:
            canvas.wrapped(self.formula, 10, 218, 282, 80, (52, 44, 36, 30, 24))

    def task(self) -> str:
        """The goal in words."""
        return (
            "You are playing EZPoints. The picture shows two cards and a formula. "
            "Each turn your action is appended to the formula. "
            "Use the number of each card exactly once to make a formula that equals 12, then finish with =. "
            "A counts as 1; J, Q and K count as 10."
        )


def partners(value: int) -> tuple[int, ...]:
    """Ranks of the second card for a first card worth `value`, all equally likely.

    They are 12 / value (for 1, 2, 3, 4 and 6) and 12 - value.
    A second card worth 10 is always a ten, never a face.
    """
    if value in (1, 2, 3, 4, 6):
        return TARGET // value, TARGET - value
    return (TARGET - value,)
