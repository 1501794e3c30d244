"""What the published EZPoints and Points24 make of a formula: the meaning of a Python arithmetic
expression.

For `compat="rl4vlm"` only. The tokens are joined without separators, so digits run together (`2`, `4` is
24), `*`, `*` is a power, `/`, `/` a floor division, and signs are allowed; a blank ends a number or an
operator. Values are integers and floating-point numbers compared without tolerance. The language is
interpreted here, token by token; nothing is handed to the Python interpreter. One departure: a power of
more than `MAX_BITS` bits is an error, where Python would compute for minutes.
"""

from __future__ import annotations

import operator
import re
from typing import Any

from .formula import FormulaError

MAX_BITS = 4096
"""Largest integer power that is computed, in bits."""

MAX_LENGTH = 64
"""Longest expression that is read, in characters."""

_LEXEME = re.compile(r" *([0-9]+|\*\*|//|[-+*/()])")
_SUMS = {"+": operator.add, "-": operator.sub}
_PRODUCTS = {"*": operator.mul, "/": operator.truediv, "//": operator.floordiv}

Number = int | float | complex


def evaluate_published(expression: str) -> Number:
    """Return the value of an expression in the published language.

    Args:
        expression: the formula's tokens, joined; blanks stand for refused tokens.

    Raises:
        FormulaError: malformed (a syntax or type error in Python), division by zero, overflow, or a power
            that is too large.
    """
    if len(expression) > MAX_LENGTH:
        raise FormulaError(f"longer than {MAX_LENGTH} characters")
    reader = _Reader(_lex(expression))
    try:
        value = reader.sum()
    except (ZeroDivisionError, OverflowError, TypeError) as error:
        raise FormulaError(str(error)) from None
    if reader.peek() is not None:
        raise FormulaError(f"{reader.peek()!r} does not continue an expression")
    return value


def _lex(expression: str) -> list[str]:
    expression = expression.rstrip(" ")
    lexemes, position = [], 0
    while position < len(expression):
        match = _LEXEME.match(expression, position)
        if match is None:
            raise FormulaError(f"{expression[position]!r} belongs to no token")
        lexeme = match.group(1)
        if lexeme[0] == "0" and lexeme.strip("0"):
            raise FormulaError(f"{lexeme!r} begins with a zero")
        lexemes.append(lexeme)
        position = match.end()
    return lexemes


class _Reader:
    """Recursive descent over the lexemes; as deep as the brackets and signs, which `MAX_LENGTH` bounds."""

    def __init__(self, lexemes: list[str]) -> None:
        self.lexemes = lexemes
        self.position = 0

    def peek(self) -> str | None:
        return self.lexemes[self.position] if self.position < len(self.lexemes) else None

    def take(self) -> str | None:
        lexeme = self.peek()
        self.position += 1
        return lexeme

    def sum(self) -> Number:
        value = self.product()
        while self.peek() in _SUMS:
            apply = _SUMS[str(self.take())]
            value = apply(value, self.product())
        return value

    def product(self) -> Number:
        value = self.signed()
        while self.peek() in _PRODUCTS:
            apply = _PRODUCTS[str(self.take())]
            value = apply(value, self.signed())
        return value

    def signed(self) -> Number:
        if self.peek() == "-":
            self.take()
            return -self.signed()
        if self.peek() == "+":
            self.take()
            return +self.signed()
        return self.power()

    def power(self) -> Number:
        base = self.atom()
        if self.peek() != "**":
            return base
        self.take()
        return _power(base, self.signed())

    def atom(self) -> Number:
        lexeme = self.take()
        if lexeme == "(":
            value = self.sum()
            if self.take() != ")":
                raise FormulaError("a bracket is not closed")
            return value
        if lexeme is None or not lexeme.isdigit():
            raise FormulaError(f"{lexeme!r} stands where a number must stand")
        return int(lexeme)


def _power(base: Number, exponent: Number) -> Number:
    integers = isinstance(base, int) and isinstance(exponent, int)
    if integers and _bits(base, exponent) > MAX_BITS:
        raise FormulaError(f"a power of more than {MAX_BITS} bits")
    return base**exponent


def _bits(base: Any, exponent: Any) -> int:
    """About how many bits an integer power has; powers of -1, 0 and 1 stay small."""
    return exponent * base.bit_length() if abs(base) > 1 else 1
