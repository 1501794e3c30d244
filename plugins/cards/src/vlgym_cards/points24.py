"""Points24: four cards, four operators, brackets, 24."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .art import Canvas
from .cards import Card, draw_card
from .formula_game import FormulaGame
from .solver import Rules


class Points24(FormulaGame):
    """Points24: write a formula worth 24 from four cards.

    Goal: a formula that uses all four cards' numbers exactly once and equals 24, then `=`. A counts 1; J, Q
        and K count 10 (or 11, 12, 13 with `faces_as_ten=False`). The published hands are kept: four ranks
        uniform and independent, of which only 73.1 % can be solved (79.2 % with 11, 12, 13);
        `info["solvable"]` tells, and `solvable_only=True` deals no others.
    Observation: four cards on green felt, 300 x 300 pixels by default, and the formula so far under them in
        the largest writing that fits the longest one; the text repeats the formula, not the cards.
    Actions: `1` to `10` (`13`), `+`, `-`, `*`, `/`, `(`, `)`, `=`; each turn appends one. All are always in
        the list; which fit is for the player to see.
    Reward: `=` pays +10 if the formula is right, else -1. A number that no unused card has: -1, formula
        unchanged, counted as an invalid action. A token when the formula holds 21 already: -1. Otherwise 0.
        Operators and brackets may be put anywhere. Best return: 10 on a solvable hand, -1 (by `=`) on
        another.
    Endings: terminated by `=`, and by the second refused number in Points24-v1 (`refusals=2`); truncated by a 22nd
        token or after 22 turns.
    Success: a right formula was finished (`info["solved"]`); `info["return_positive"]` (the rewards' sum is
        above 0) is the papers' measure. Random play: below 0.01 % (60,000 episodes).
    Info: `cards`, `numbers`, `formula`, `solvable`, `solved`, `return_positive`.
    Splits: train, val and test differ by seed only.
    Oracle: exact, from every formula that can still become right; else, and on unsolvable hands, it
        honestly plays `=` and loses. Its success is therefore the share of solvable hands.

    Formulas are read by an explicit grammar in exact fractions: numbers never run together and there are no
    signs, no powers and no floor divisions. Replies that cannot be read cost `invalid_penalty` (0 by
    default) and a turn, so on an unsolvable hand silence returns more than good play: set a penalty when
    training on return.

    `compat="rl4vlm"` gives the published rules: the formula is a Python expression in floating-point
    numbers (digits join, `* *` is a power, `/ /` a floor division, signs are allowed; 3, 3, 8, 8 cannot be
    solved exactly), a refused number adds a blank to it, a `=` after the 21st token comes too late;
    published layout, reply parser and random fallback. Not reproduced: unseeded cards, and prompts that
    show the previous episode's formula.

    References:
        Zhai et al., Fine-Tuning Large Vision-Language Models as Decision-Making Agents via Reinforcement
        Learning, NeurIPS 2024 (gym-cards).

    Args:
        faces_as_ten: J, Q, K count 10; else 11, 12, 13.
        solvable_only: deal solvable hands only.
        refusals: refused numbers that end the episode; `None`, the published game's code: any number (its README ends
            the episode at the first). `info` then has `refused` and `strict_success`, a success without a refusal.
        compat: `None` or `"rl4vlm"`.
        **kwargs: of `VLEnv`.

    Options of `reset`: `cards`, for example `["H5", "S7", "DK", "CA"]`; `level`, 0 to 5.

    Raises:
        UserError: an argument or option is out of its range.
    """

    target = 24
    hand_size = 4
    rules = Rules("+-*/", brackets=True)
    longest = 21
    level_arguments: ClassVar = (
        {"solvable_only": True, "hand_size": 3, "rules": Rules("+-*", brackets=False)},
        {"solvable_only": True, "hand_size": 3},
        {"solvable_only": True, "rules": Rules("+-*", brackets=False)},
        {"solvable_only": True},
        {"solvable_only": True, "faces_as_ten": False},
        {"solvable_only": True, "faces_as_ten": False, "hand_size": 5},
    )

    def __init__(
        self, *, faces_as_ten: bool = True, solvable_only: bool = False, compat: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(compat=compat, faces_as_ten=faces_as_ten, **kwargs)
        self.solvable_only = solvable_only

    def deal(self, rng: np.random.Generator) -> tuple[Card, ...]:
        """Draw four cards, again while the hand cannot be solved if only solvable ones are wanted."""
        if self.solvable_only:
            return self.deal_solvable(rng)
        return tuple(draw_card(rng) for _ in range(self.hand_size))

    def lay(self, canvas: Canvas) -> None:
        if self.compat:
            for card, x in zip(self.cards, (5, 78, 152, 226), strict=True):
                canvas.card(card, x, 103, 67, 93)
            canvas.text("Formula:", 10, 210, 16)
            return
        self.lay_row(canvas, 8)
        canvas.text("Formula:", 8, 148, 18)

    def write(self, canvas: Canvas) -> None:
        if self.compat:
            canvas.text(" ".join(self.formula), 10, 240, 16)
        else:
            canvas.wrapped(self.formula, 8, 172, 284, 126, (46, 40, 34, 30, 26, 22, 18))

    def task(self) -> str:
        faces = "J, Q and K count as 10" if self.faces_as_ten else "J counts as 11, Q as 12, K as 13"
        return (
            f"You are playing Points24. The picture shows {self.count_cards()} cards and a formula. "
            "Each turn your action is appended to the formula. "
            "Use the number of each card exactly once to make a formula that equals 24, then finish with =. "
            f"A counts as 1; {faces}.{self.refusal_rule()}"
        )
