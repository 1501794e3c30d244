"""Base of EZPoints and Points24: build a formula token by token from the cards' numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import ResetOption
from vlgym.errors import UserError, check_number
from vlgym.types import Outcome

from .art import FELT, Canvas
from .cards import SUITS, Card, draw_card, names
from .formula import FormulaError, evaluate
from .published_formula import evaluate_published
from .rl4vlm import FormulaParser, apply_compat
from .solver import Rules, Tokens, complete, is_solvable

FORMULA_PARSER = "vlgym_cards.rl4vlm:FormulaParser"

REFUSED = " "
"""The token that the published games append for a number that no unused card has."""


class FormulaGame(VLEnv):
    """Base of the formula games.

    Attributes:
        target: what the formula must equal.
        rules: operators and brackets of the game.
        longest: tokens that a formula may hold; one more ends the episode.
        cards: this episode's cards.
        numbers: their values, in the order of the cards.
        formula: tokens so far.
        solved: a right formula was finished.
        refusals: refused numbers that end the episode; `None` where none does.
        refused: numbers that were refused in this episode.
    """

    target: ClassVar[int]
    hand_size: int
    rules: Rules
    longest: int

    prompt = PromptTemplate(version=1, instructions="{task}\n{format}", turn="{state}\nLegal actions: {actions}")
    reset_options: ClassVar = {
        "cards": ResetOption(
            "the hand", 'a list of as many cards as are dealt, such as ["H5", "SK"]',
            lambda env, value: read_cards(value, env.hand_size), ("H5", [], [5, 6]),
        )
    }  # fmt: skip

    def __init__(
        self, *, compat: str | None = None, faces_as_ten: bool = True, refusals: int | None = None, **kwargs: Any
    ) -> None:
        if refusals is not None:
            check_number("refusals", refusals, 1, hint="This many refused numbers end the episode; None: any number.")
        self.compat = compat
        self.faces_as_ten = faces_as_ten
        self.refusals = None if compat else refusals
        super().__init__(**apply_compat(compat, kwargs, FORMULA_PARSER))
        self.refused = 0
        self.cards: tuple[Card, ...] = ()
        self.numbers: tuple[int, ...] = ()
        self.formula: list[str] = []
        self.solved = False
        self._table: Canvas | None = None

    def deal(self, rng: np.random.Generator) -> tuple[Card, ...]:
        """Draw this episode's cards."""
        raise TypeError(f"{type(self).__name__} must define deal()")

    def deal_solvable(self, rng: np.random.Generator) -> tuple[Card, ...]:
        """Draw cards, again while the hand cannot be solved."""
        while True:
            hand = tuple(draw_card(rng) for _ in range(self.hand_size))
            values = [card.value(faces_as_ten=self.faces_as_ten) for card in hand]
            if is_solvable(values, self.target, self.rules):
                return hand

    def lay(self, canvas: Canvas) -> None:
        raise TypeError(f"{type(self).__name__} must define lay()")

    def write(self, canvas: Canvas) -> None:
        raise TypeError(f"{type(self).__name__} must define write()")

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        dealt = self.deal(rng)
        self.cards = options.get("cards", dealt)
        self.numbers = tuple(card.value(faces_as_ten=self.faces_as_ten) for card in self.cards)
        self.formula = []
        self.solved = False
        self.refused = 0
        self._table = None

    def act(self, action: str) -> Outcome:
        full = len(self.formula) >= self.longest
        # The published games look at the length first, so that even a `=` comes too late.
        if full and (self.compat or action != "="):
            return Outcome(-1.0, truncated=True, feedback="the formula is too long")
        if action == "=":
            self.solved = self._is_right()
            feedback = "right" if self.solved else "wrong"
            return Outcome(10.0 if self.solved else -1.0, terminated=True, feedback=feedback)
        if action.isdigit() and int(action) not in self.unused():
            if self.compat:
                self.formula.append(REFUSED)
            self.refused += 1
            ended = self.refusals is not None and self.refused >= self.refusals
            return Outcome(-1.0, terminated=ended, feedback=f"no unused card is worth {action}", illegal=True)
        self.formula.append(action)
        return Outcome(0.0, feedback="added")

    def image(self) -> NDArray[np.uint8]:
        if self._table is None:
            self._table = Canvas(self.image_size, FELT)
            self.lay(self._table)
        canvas = self._table.copy()
        self.write(canvas)
        return canvas.finish()

    def describe(self) -> str:
        """The cards, suit first, and the formula so far."""
        return f"cards {' '.join(map(str, self.cards))}, formula {' '.join(self.formula) or '(empty)'}"

    def state_text(self) -> str:
        """The formula so far, as in the picture; the cards are in the picture only."""
        return f"Formula so far: {' '.join(self.formula) or '(empty)'}"

    def legal_actions(self) -> list[str]:
        """Every token of the game, always: which of them fit is for the player to see."""
        largest = 10 if self.faces_as_ten else 13
        brackets = ["(", ")"] if self.rules.brackets else []
        return [*map(str, range(1, largest + 1)), *self.rules.operators, *brackets, "="]

    def oracle(self) -> str:
        """The next token of a shortest right formula; `=` when it is complete.

        Also `=` when nothing can save the hand: -1 is the least loss.
        """
        completion = self.completion()
        return completion[0] if completion else "="

    def think(self, action: str) -> str:
        """The formula so far, the whole equation, the next token; with the published parser under the published
        keys."""
        thoughts = self._think(action)
        if not isinstance(self.parser, FormulaParser):
            return thoughts
        cards = [card.symbol for card in self.cards]
        return json.dumps({"cards": cards, "current formula": "".join(self.formula), "thoughts": thoughts})

    def _think(self, action: str) -> str:
        so_far = " ".join(self.formula) or "(empty)"
        completion = self.completion()
        if completion is None:
            return f"formula {so_far}; it cannot become {self.target}; next {action}"
        if not completion:
            return f"formula {so_far} = {self.target}; it is complete; next {action}"
        whole = " ".join([*self.formula, *completion])
        return f"formula {so_far}; it is incomplete; {whole} = {self.target}; next {action}"

    def success(self) -> bool:
        return self.solved

    def extra_info(self) -> dict[str, Any]:
        """Cards, numbers, formula, solvability of the hand (in exact arithmetic) and both measures of success."""
        return {
            "cards": names(self.cards),
            "numbers": list(self.numbers),
            "formula": list(self.formula),
            "solvable": is_solvable(self.numbers, self.target, self.rules),
            "solved": self.solved,
            "return_positive": self.episode_return > 0,
            **self._count_refusals(),
        }

    def _count_refusals(self) -> dict[str, Any]:
        """Return the number of refusals and strict success (success without any), where refusals end an episode."""
        if self.refusals is None:
            return {}
        return {"refused": self.refused, "strict_success": self.solved and self.refused == 0}

    def lay_row(self, canvas: Canvas, top: float) -> None:
        """Lay the cards side by side, as wide as the picture allows."""
        step = 296 / len(self.cards)
        width = min(step - 4, 96)
        for index, card in enumerate(self.cards):
            canvas.card(card, 4 + step * index, top, width, min(134, 2 * width))

    def count_cards(self) -> str:
        """The number of cards in words."""
        return {2: "two", 3: "three", 4: "four", 5: "five"}[self.hand_size]

    def refusal_rule(self) -> str:
        """The task's sentence on refused numbers; empty where they do not end the episode."""
        if self.refusals is None:
            return ""
        times = {1: "first", 2: "second", 3: "third"}.get(self.refusals, f"{self.refusals}th")
        return f" A number that is on no unused card is refused; the {times} refusal ends the game."

    def unused(self) -> tuple[int, ...]:
        """Numbers of the cards that the formula does not use yet, sorted."""
        left = Counter(self.numbers) - Counter(int(token) for token in self.formula if token.isdigit())
        return tuple(sorted(left.elements()))

    def completion(self) -> Tokens | None:
        """Fewest tokens that make the formula right, in time for the `=`; `None` if there are none."""
        room = self.longest - len(self.formula) - (1 if self.compat else 0)
        turns = self.max_turns - self.turn - 1
        prefix = tuple(token for token in self.formula if token != REFUSED)
        accept = _ACCEPTED[self.target] if self.compat else None
        return complete(prefix, self.unused(), self.target, self.rules, max(0, min(room, turns)), accept)

    def _is_right(self) -> bool:
        if self.unused():
            return False
        try:
            if self.compat:
                return evaluate_published("".join(self.formula)) == self.target
            return evaluate(self.formula) == self.target
        except FormulaError:
            return False


def read_cards(value: Any, count: int | None = None) -> tuple[Card, ...]:
    """Read cards named suit first, such as `["H5", "S10", "DK"]`."""
    symbols = {Card(rank, "C").symbol: rank for rank in range(1, 14)}
    if not isinstance(value, (list, tuple)) or (count is not None and len(value) != count):
        raise UserError(f"Cards must be a list of {count or 'some'} names such as 'H5', 'S10' or 'DK'; got {value!r}.")
    for name in value:
        if not (isinstance(name, str) and name[:1] in SUITS and name[1:] in symbols):
            raise UserError(f"{name!r} is not a card: write the suit ({', '.join(SUITS)}), then {', '.join(symbols)}.")
    return tuple(Card(symbols[name[1:]], name[0]) for name in value)


def _equals_12(tokens: Sequence[str]) -> bool:
    return evaluate_published("".join(tokens)) == 12


def _equals_24(tokens: Sequence[str]) -> bool:
    return evaluate_published("".join(tokens)) == 24


# Floating-point arithmetic misses some exact solutions (8 / (3 - 8 / 3)), which the published games then reject.
_ACCEPTED = {12: _equals_12, 24: _equals_24}
