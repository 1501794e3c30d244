"""Base of EZPoints and Points24: build a formula token by token from the cards' numbers."""

import json
from collections import Counter
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
REFUSED = " "  # the published games append it for a number that no unused card has
COUNTS = {2: "two", 3: "three", 4: "four", 5: "five"}
TIMES = {1: "first", 2: "second", 3: "third"}


class FormulaGame(VLEnv):
    """Base of the formula games.

    Formulas are read by an explicit grammar in exact fractions: numbers never run together, and
    there are no signs, powers or floor divisions. An unreadable reply costs `invalid_penalty` (0 by
    default) and a turn. On an unsolvable hand silence therefore returns more than good play: set a
    penalty when training on return.

    `compat="rl4vlm"` gives the published rules: the formula is a Python expression in
    floating-point numbers (digits join, `* *` is a power, `/ /` a floor division, signs are
    allowed; 3, 3, 8, 8 cannot be solved exactly), a refused number adds a blank to it, and a `=`
    after `longest` tokens comes too late. Layout, reply parser and random fallback are the
    published ones. Not reproduced: unseeded cards, and prompts that show the previous episode's
    formula.

    Info: `cards`, `numbers`, `formula`, `solvable` (in exact arithmetic), `solved`, and
        `return_positive`, the papers' measure: the rewards' sum is above 0. With `refusals` also
        `refused`, their number, and `strict_success`, a success without a refusal.
    Splits: train, val and test differ by seed only.

    Args:
        compat: `None` or `"rl4vlm"`, without `refusals`.
        faces_as_ten: J, Q, K count 10; else 11, 12, 13.
        refusals: refused numbers that end the episode; `None`: any number, as in the published code
            (its README ends the episode at the first).

    Options of `reset`: `cards`, for example `["H5", "S7"]`; `level`.

    Attributes:
        longest: tokens that a formula may hold; one more ends the episode.
        numbers: the values of `cards`, in their order.
        formula: tokens so far.
        solved: a right formula was finished.
        refused: numbers that were refused in this episode.
    """

    title: ClassVar[str]
    target: ClassVar[int]
    hand_size: int
    rules: Rules
    longest: int
    solvable_only: bool

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
        while True:
            hand = tuple(draw_card(rng) for _ in range(self.hand_size))
            if not self.solvable_only or is_solvable(self._values(hand), self.target, self.rules):
                return hand

    def lay(self, canvas: Canvas) -> None:
        """Draw what stays the same in an episode."""
        raise NotImplementedError

    def write(self, canvas: Canvas) -> None:
        """Draw the formula."""
        raise NotImplementedError

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        dealt = self.deal(rng)
        self.cards = options.get("cards", dealt)
        self.numbers = self._values(self.cards)
        self.formula, self.solved, self.refused = [], False, 0
        self._table = None

    def _values(self, cards: tuple[Card, ...]) -> tuple[int, ...]:
        return tuple(card.value(faces_as_ten=self.faces_as_ten) for card in cards)

    def act(self, action: str) -> Outcome:
        full = len(self.formula) >= self.longest
        # The published games look at the length first, so that even a `=` comes too late.
        if full and (self.compat or action != "="):
            return Outcome(-1.0, truncated=True, feedback="the formula is too long")

        # The end: nothing else is worth anything.
        if action == "=":
            self.solved = self._is_right()
            feedback = "right" if self.solved else "wrong"
            return Outcome(10.0 if self.solved else -1.0, terminated=True, feedback=feedback)

        # A number without a card is counted, and can end the game.
        if action.isdigit() and int(action) not in self.unused():
            if self.compat:
                self.formula.append(REFUSED)
            self.refused += 1
            ended = self.refusals is not None and self.refused >= self.refusals
            feedback = f"no unused card is worth {action}"
            return Outcome(-1.0, terminated=ended, feedback=feedback, illegal=True)
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
        return f"cards {' '.join(names(self.cards))}, formula {self._written()}"

    def task(self) -> str:
        faces = "J, Q and K count as 10" if self.faces_as_ten else "J counts as 11, Q as 12, K as 13"
        refusal = ""
        if self.refusals is not None:
            times = TIMES.get(self.refusals, f"{self.refusals}th")
            refusal = f" A number that is on no unused card is refused; the {times} refusal ends the game."
        return (
            f"You are playing {self.title}. The picture shows {COUNTS[self.hand_size]} cards and a formula. "
            "Each turn your action is appended to the formula. Use the number of each card exactly "
            f"once to make a formula that equals {self.target}, then finish with =. "
            f"A counts as 1; {faces}.{refusal}"
        )

    def state_text(self) -> str:
        """The formula so far; the cards are in the picture only."""
        return f"Formula so far: {self._written()}"

    def _written(self) -> str:
        return " ".join(self.formula) or "(empty)"

    def legal_actions(self) -> list[str]:
        """Every token of the game, always: which of them fit is for the player to see."""
        largest = 10 if self.faces_as_ten else 13
        brackets = ["(", ")"] if self.rules.brackets else []
        return [*map(str, range(1, largest + 1)), *self.rules.operators, *brackets, "="]

    def oracle(self) -> str:
        """The next token of a shortest right formula; `=` when it is complete, or nothing can save it."""
        completion = self.completion()
        return completion[0] if completion else "="

    def think(self, action: str) -> str:
        """The formula so far, the whole equation, the next token."""
        completion, written = self.completion(), self._written()
        if completion is None:
            thoughts = f"formula {written}; it cannot become {self.target}; next {action}"
        elif not completion:
            thoughts = f"formula {written} = {self.target}; it is complete; next {action}"
        else:
            equation = f"{' '.join([*self.formula, *completion])} = {self.target}"
            thoughts = f"formula {written}; it is incomplete; {equation}; next {action}"

        # The published prompt asks for other keys before the thoughts.
        if not isinstance(self.parser, FormulaParser):
            return thoughts
        cards = [card.symbol for card in self.cards]
        return json.dumps({"cards": cards, "current formula": "".join(self.formula), "thoughts": thoughts})

    def success(self) -> bool:
        return self.solved

    def extra_info(self) -> dict[str, Any]:
        info = {
            "cards": names(self.cards),
            "numbers": list(self.numbers),
            "formula": list(self.formula),
            "solvable": is_solvable(self.numbers, self.target, self.rules),
            "solved": self.solved,
            "return_positive": self.episode_return > 0,
        }
        if self.refusals is not None:
            info |= {"refused": self.refused, "strict_success": self.solved and not self.refused}
        return info

    def lay_row(self, canvas: Canvas, top: float) -> None:
        """Lay the cards side by side, as wide as the picture allows."""
        step = 296 / len(self.cards)
        width = min(step - 4, 96)
        for index, card in enumerate(self.cards):
            canvas.card(card, 4 + step * index, top, width, min(134, 2 * width))

    def unused(self) -> tuple[int, ...]:
        """Numbers of the cards that the formula does not use yet, sorted."""
        left = Counter(self.numbers) - Counter(int(token) for token in self.formula if token.isdigit())
        return tuple(sorted(left.elements()))

    def completion(self) -> Tokens | None:
        """Fewest tokens that make the formula right, in time for the `=`; `None` without any."""
        room = self.longest - len(self.formula) - (1 if self.compat else 0)
        budget = max(0, min(room, self.max_turns - self.turn - 1))
        prefix = tuple(token for token in self.formula if token != REFUSED)
        # Floating-point arithmetic misses some exact solutions, which the published games reject.
        second = evaluate_published if self.compat else None
        return complete(prefix, self.unused(), self.target, self.rules, budget, second)

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
    if not isinstance(value, (list, tuple)) or (count is not None and len(value) != count):
        raise UserError(f"Cards must be a list of {count or 'some'} names such as 'H5', 'S10' or 'DK'; got {value!r}.")
    symbols = {Card(rank, "C").symbol: rank for rank in range(1, 14)}
    for name in value:
        if not (isinstance(name, str) and name[:1] in SUITS and name[1:] in symbols):
            raise UserError(f"{name!r} is not a card: write the suit ({', '.join(SUITS)}), then {', '.join(symbols)}.")
    return tuple(Card(symbols[name[1:]], name[0]) for name in value)
