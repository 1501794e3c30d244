"""Blind players of the card games: they see the text and the legal actions, and know the rules.

Always `+` and always `stand` are constant actions, which are tried everywhere.
"""

import random
import re

from vlgym.sight.blind import BlindPlayer

_FORMULA = re.compile(r"Formula so far: (.*)")


class NumberLineScript(BlindPlayer):
    """Plays the same moves in every game of NumberLine; turning round beats always `+`."""

    name = "fixed moves"
    moves = "+++-----++"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._turn = -1

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        self._turn += 1
        return self.moves[self._turn % len(self.moves)]


class FormulaPlayer(BlindPlayer):
    """Base of both formula games' players: it learns from the formula which numbers were refused."""

    likely: tuple[str, ...] = ()

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._refused: set[str] = set()
        self._tried = ""

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        match = _FORMULA.search(text)
        written = match[1].split() if match and match[1] != "(empty)" else []
        if self._tried and not (written and written[-1] == self._tried):
            self._refused.add(self._tried)
        token = self.next_token(written)
        self._tried = token if token.isdigit() else ""
        return token

    def next_token(self, written: list[str]) -> str:
        """Return the token to append."""
        raise NotImplementedError

    def guess(self) -> str:
        """Return the likeliest number that is left."""
        return next((number for number in self.likely if number not in self._refused), "1")


class EZPointsTries(FormulaPlayer):
    """Tries 10, 7, 9, 8 until one stays in the formula, and adds what is missing to 12."""

    name = "tries 10, 7, 9, 8"
    likely = ("10", "7", "9", "8", "6")

    def next_token(self, written: list[str]) -> str:
        if len(written) != 2:
            return {0: self.guess(), 1: "+"}.get(len(written), "=")
        return str(12 - int(written[0])) if written[0].isdigit() else "="


class Points24Tries(FormulaPlayer):
    """Finds three numbers by trying, in brackets and added up, and then tries the fourth that makes 24."""

    name = "tries numbers"
    likely = ("10", "1", "2", "3", "4", "5", "6", "7", "8", "9")

    def next_token(self, written: list[str]) -> str:
        if len(written) < 7:
            return ("(", "", "+", "", "+", "", ")")[len(written)] or self.guess()
        numbers = [int(token) for token in written if token.isdigit()]
        if len(numbers) != 3:
            return "="
        wanted = self._find_fourth(sum(numbers))
        return wanted[len(written) - 7] if wanted else "="

    def _find_fourth(self, total: int) -> tuple[str, str] | None:
        """Return the operator and the likeliest number left that make 24 of the sum."""
        results = {
            "+": 24 - total,
            "-": total - 24,
            "*": 24 // total if 24 % total == 0 else 0,
            "/": total // 24 if total % 24 == 0 else 0,
        }
        left = [number for number in self.likely if number not in self._refused]
        fits = [(sign, str(number)) for sign, number in results.items() if str(number) in left]
        return min(fits, key=lambda fit: left.index(fit[1]), default=None)
