"""Points24: four cards, four operators, brackets, 24."""

from typing import Any, ClassVar

from .art import Canvas
from .formula_game import FormulaGame
from .solver import Rules


class Points24(FormulaGame):
    """Points24: write a formula worth 24 from four cards.

    `FormulaGame` describes formulas, `compat` and info.

    Goal: a formula that uses all four cards' numbers exactly once and equals 24, then `=`. A counts
        1; J, Q and K count 10 (or 11, 12, 13 with `faces_as_ten=False`). The published hands are
        kept: four ranks uniform and independent, of which only 73.1 % can be solved (79.2 % with
        11, 12, 13); `info["solvable"]` tells, and `solvable_only=True` deals no others.
    Observation: four cards on green felt, 300 x 300 pixels by default, and the formula so far under
        them in the largest writing that fits the longest one; the text repeats the formula, not the
        cards.
    Actions: `1` to `10` (`13`), `+`, `-`, `*`, `/`, `(`, `)`, `=`; each turn appends one. All are
        always in the list.
    Reward: `=` pays +10 if the formula is right, else -1. A number that no unused card has: -1,
        formula unchanged, counted as an invalid action. A token when the formula holds 21 already:
        -1. Otherwise 0. Best return: 10 on a solvable hand, -1 (by `=`) on another.
    Endings: terminated by `=`, and by the second refused number in Points24-v1 (`refusals=2`);
        truncated by a 22nd token or after 22 turns.
    Success: a right formula was finished. Random play: below 0.01 % (60,000 episodes).
    Oracle: exact, from every formula that can still become right; else, and on unsolvable hands, it
        plays `=` and loses. Its success is therefore the share of solvable hands.
    References: Zhai et al., NeurIPS 2024 (gym-cards).

    Args:
        solvable_only: deal solvable hands only.
    """

    title = "Points24"
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

    def __init__(self, *, solvable_only: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.solvable_only = solvable_only

    def lay(self, canvas: Canvas) -> None:
        if self.compat:
            for card, x in zip(self.cards, (5, 78, 152, 226), strict=True):
                canvas.card(card, x, 103, 67, 93)
            canvas.write("Formula:", 10, 210, 16)
            return
        self.lay_row(canvas, 8)
        canvas.write("Formula:", 8, 148, 18)

    def write(self, canvas: Canvas) -> None:
        if self.compat:
            canvas.write(" ".join(self.formula), 10, 240, 16)
        else:
            canvas.wrapped(self.formula, 8, 172, 284, 126, (46, 40, 34, 30, 26, 22, 18))
