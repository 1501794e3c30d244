"""The arithmetic that the card games accept: an explicit grammar in exact fractions.

    sum    := term   (("+" | "-") term)*
    term   := factor (("*" | "/") factor)*
    factor := NUMBER | "(" sum ")"

A NUMBER is one token: neighbouring numbers never join. There is no sign, no power and no floor
division.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce


class FormulaError(ValueError):
    """The tokens are not a formula of the grammar, or it divides by zero."""


@dataclass(frozen=True)
class Level:
    """The part of one `sum` that has been read: the whole formula or an open bracket.

    Attributes:
        total: the finished terms.
        term: the current term so far, its sign included.
        pending: `*` or `/` while a factor must come next; `None` while an operator may come.
    """

    total: Fraction = Fraction(0)
    term: Fraction = Fraction(1)
    pending: str | None = "*"

    def take(self, factor: Fraction) -> Level:
        if self.pending is None:
            raise FormulaError("an operator is missing between two numbers or brackets")
        if self.pending == "*":
            return Level(self.total, self.term * factor, None)
        if factor == 0:
            raise FormulaError("division by zero")
        return Level(self.total, self.term / factor, None)

    def operate(self, operator: str) -> Level:
        if self.pending is not None:
            raise FormulaError(f"{operator!r} stands where a number must stand")
        if operator in "*/":
            return Level(self.total, self.term, operator)
        return Level(self.total + self.term, Fraction(1 if operator == "+" else -1), "*")

    @property
    def value(self) -> Fraction:
        """The value of the sum as it stands."""
        if self.pending is not None:
            raise FormulaError("it stops where a number must stand")
        return self.total + self.term


Levels = tuple[Level, ...]  # one for the whole formula and one for each open bracket, outermost first


def push(levels: Levels, token: str) -> Levels:
    """Return the levels after one more token."""
    *outer, inner = levels

    # A bracket opens and closes a level.
    if token == "(":
        if inner.pending is None:
            raise FormulaError("an operator is missing before '('")
        return (*levels, Level())
    if token == ")":
        if not outer:
            raise FormulaError("')' closes no bracket")
        return (*outer[:-1], outer[-1].take(inner.value))

    # Everything else continues the innermost level.
    if token in ("+", "-", "*", "/"):
        return (*outer, inner.operate(token))
    if token.isascii() and token.isdigit():
        return (*outer, inner.take(Fraction(int(token))))
    raise FormulaError(f"{token!r} is not a token of a formula")


def read(tokens: Iterable[str]) -> Levels:
    return reduce(push, tokens, (Level(),))


def evaluate(tokens: Iterable[str]) -> Fraction:
    """Return the exact value of a whole formula."""
    levels = read(tokens)
    if len(levels) > 1:
        raise FormulaError("a bracket is not closed")
    return levels[0].value
