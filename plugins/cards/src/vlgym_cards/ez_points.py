"""EZPoints: two cards, plus and times, 12."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_choice

from .art import Canvas
from .cards import Card, draw_suit
from .formula_game import FormulaGame
from .solver import Rules, is_solvable

TARGET = 12
HANDS = ("published", "balanced")

PAIRS = ((2, 10), (3, 9), (4, 8), (5, 7), (6, 6), (2, 6), (3, 4))
"""Values of two cards that make 12: the pairs that the published rule deals, here each as often as any other."""


class EZPoints(FormulaGame):
    """EZPoints: write a formula worth 12 from two cards.

    EZPoints-v1 deals balanced hands, and its second refused number ends the episode. EZPoints-v0 is the published
    form: there a player who sees nothing tries 10, 7, 9, 8 and wins about 0.8 of the games.

    Goal: a formula that uses both cards' numbers exactly once and equals 12, then `=`. A counts 1; J, Q and
        K count 10. Every hand can be solved: 83.3 % of them only by a sum, 16.7 % only by a product.
    Observation: two cards on green felt, 300 x 300 pixels by default, and the formula so far under them; the
        text repeats the formula, not the cards.
    Actions: `1` to `10`, `+`, `*`, `=`; each turn appends one. All are always in the list; which fit is for
        the player to see.
    Reward: `=` pays +10 if the formula is right, else -1. A number that no unused card has: -1, formula
        unchanged, counted as an invalid action. A token when the formula holds 6 already: -1. Otherwise 0.
        Operators may be put anywhere. Best return: 10, in 4 turns.
    Endings: terminated by `=`, and by the second refused number in EZPoints-v1 (`refusals=2`); truncated by a
        seventh token or after 7 turns.
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
        hands: `published`, or `balanced`: each of the seven pairs of values that make 12 is as likely (10 with 2 is
            more than a third of the published hands, so that a player who sees nothing does well to try 10).
        refusals: refused numbers that end the episode, at a further cost of nothing; `None`, the published game's code:
            any number (its README ends the episode at the first). `info` then has `refused` and `strict_success`, a
            success without a refusal.
        compat: `None` or `"rl4vlm"`, which sets both of these as published.
        **kwargs: of `VLEnv`.

    Options of `reset`: `cards`, for example `["H5", "S7"]`; `level`, 0 to 4.

    Raises:
        UserError: an argument or option is out of its range.
    """

    target = TARGET
    hand_size = 2
    rules = Rules("+*", brackets=False)
    longest = 6
    level_arguments: ClassVar = (
        {"hands": "balanced", "rules": Rules("+", brackets=False)},
        {"hands": "balanced"},
        *(
            {
                "hands": "solvable",
                "hand_size": cards,
                "rules": Rules(signs, brackets=False),
                "longest": 10,
                "max_turns": 11,
            }
            for cards, signs in ((3, "+*"), (3, "+-*"), (4, "+-*"))
        ),
    )

    def __init__(self, *, hands: str = "published", compat: str | None = None, **kwargs: Any) -> None:
        self.hands = "published" if compat else check_choice("hands", hands, HANDS)
        super().__init__(compat=compat, faces_as_ten=True, **kwargs)

    def deal(self, rng: np.random.Generator) -> tuple[Card, ...]:
        """Draw a first card from 2 to K, a second that makes 12 with it, and their order; or one of the seven pairs."""
        if self.hands == "solvable":
            return self.deal_solvable(rng)
        if self.hands == "balanced":
            pairs = [pair for pair in PAIRS if is_solvable(pair, TARGET, self.rules)]
            values = pairs[int(rng.integers(len(pairs)))]
            ranks = [int(rng.integers(10, 14)) if value == 10 else value for value in values]
            low, high = (Card(rank, draw_suit(rng)) for rank in ranks)
            return (high, low) if rng.random() < 0.5 else (low, high)
        first = Card(int(rng.integers(2, 14)), draw_suit(rng))
        choices = partners(first.value())
        second = Card(choices[int(rng.integers(len(choices)))], draw_suit(rng))
        return (second, first) if rng.random() < 0.5 else (first, second)

    def lay(self, canvas: Canvas) -> None:
        if self.hand_size > 2:
            self.lay_row(canvas, 24)
            canvas.text("Formula:", 10, 192, 20)
            return
        top, height = (55, 189) if self.compat else (10, 178)
        for card, x in zip(self.cards, (5, 153) if self.compat else (9, 156), strict=True):
            canvas.card(card, x, top, 135, height)
        if not self.compat:
            canvas.text("Formula:", 10, 192, 20)

    def write(self, canvas: Canvas) -> None:
        if self.compat:
            canvas.text(f"Formula: {' '.join(self.formula)}", 10, 258, 20)
        else:
            canvas.wrapped(self.formula, 10, 218, 282, 80, (52, 44, 36, 30, 24))

    def task(self) -> str:
        return (
            f"You are playing EZPoints. The picture shows {self.count_cards()} cards and a formula. "
            "Each turn your action is appended to the formula. "
            "Use the number of each card exactly once to make a formula that equals 12, then finish with =. "
            f"A counts as 1; J, Q and K count as 10.{self.refusal_rule()}"
        )


def partners(value: int) -> tuple[int, ...]:
    """Ranks of the second card for a first card worth `value`, all equally likely.

    They are 12 / value (for 1, 2, 3, 4 and 6) and 12 - value.
    A second card worth 10 is always a ten, never a face.
    """
    if value in (1, 2, 3, 4, 6):
        return TARGET // value, TARGET - value
    return (TARGET - value,)
