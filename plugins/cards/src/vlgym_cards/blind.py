"""Blind players of the card games. Always `+` and always `stand` are constant actions, which are tried everywhere.

A player sees the text and the legal actions; of the games it knows the rules, as their tasks state them.
"""

from __future__ import annotations

import random
import re

from vlgym.sight.blind import BlindPlayer

_FORMULA = re.compile(r"Formula so far: (.*)")


class NumberLineScript(BlindPlayer):
    """Plays the same moves in every game of NumberLine.

    They turn round when the target is likely to be behind, so they earn more than always `+`.
    """

    name = "fixed moves"
    moves = "+++-----++"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._turn = -1

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        self._turn += 1
        return self.moves[self._turn % len(self.moves)]


class FormulaPlayer(BlindPlayer):
    """Base of both formula games' players: it reads the formula to learn which numbers were refused."""

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
        """Return the token to append to what is written."""
        raise TypeError(f"{type(self).__name__} must define next_token()")

    def guess(self) -> str:
        """Return the likeliest number that was not refused."""
        return next((number for number in self.likely if number not in self._refused), "1")


class EZPointsTries(FormulaPlayer):
    """Tries 10, 7, 9, 8 until one stays in the formula, and adds what is missing to 12."""

    name = "tries 10, 7, 9, 8"
    likely = ("10", "7", "9", "8", "6")

    def next_token(self, written: list[str]) -> str:
        """A first number, plus, the other, `=`."""
        if len(written) != 2:
            return {0: self.guess(), 1: "+"}.get(len(written), "=")
        return str(12 - int(written[0])) if written[0].isdigit() else "="


class Points24Tries(FormulaPlayer):
    """Finds three numbers by trying, in brackets and added up, and then tries the fourth that makes 24."""

    name = "tries numbers"
    likely = ("10", "1", "2", "3", "4", "5", "6", "7", "8", "9")

    def next_token(self, written: list[str]) -> str:
        """`( a + b + c )`, an operator, the number that it needs, `=`."""
        if len(written) < 7:
            return ("(", "", "+", "", "+", "", ")")[len(written)] or self.guess()
        numbers = [int(token) for token in written if token.isdigit()]
        if len(numbers) != 3:
            return "="
        wanted = self._find_fourth(sum(numbers))
        return wanted[len(written) - 7] if wanted else "="

    def _find_fourth(self, total: int) -> tuple[str, str] | None:
        """The operator and the likeliest number that make 24 of the sum, if one is left to try."""
        results = {
            "+": 24 - total,
            "-": total - 24,
            "*": 24 // total if 24 % total == 0 else 0,
            "/": total // 24 if total % 24 == 0 else 0,
        }
        fits = [(str(number), sign) for sign, number in results.items() if str(number) in self.likely]
        fits = [(number, sign) for number, sign in fits if number not in self._refused]
        if not fits:
            return None
        number, sign = min(fits, key=lambda fit: self.likely.index(fit[0]))
        return sign, number
