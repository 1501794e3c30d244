"""Value of a formula in the published EZPoints and Points24: that of a Python arithmetic expression.

The tokens are joined without separators, so digits run together (`2`, `4` is 24), `*`, `*` is a
power, `/`, `/` a floor division, and signs are allowed; a blank ends a number or an operator.
Values are integers and floating-point numbers compared without tolerance. Python parses the
expression; its tree is interpreted here, so nothing is run. One departure: a power of more than
`MAX_BITS` bits is an error, where Python would compute for minutes.
"""

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from .formula import FormulaError

MAX_BITS = 4096  # of a power
MAX_LENGTH = 64  # characters of an expression

Number = int | float | complex


def evaluate_published(expression: str) -> Number:
    """Return the value of an expression in the published language.

    Raises:
        FormulaError: malformed, division by zero, overflow, or a power that is too large.
    """
    if len(expression) > MAX_LENGTH:
        raise FormulaError(f"longer than {MAX_LENGTH} characters")
    if not re.fullmatch(r"[-+*/() 0-9]*", expression, re.ASCII):
        raise FormulaError("a character belongs to no token")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, OverflowError, TypeError) as error:
        raise FormulaError(str(error)) from None


def _value(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return _APPLY[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp):
        return _APPLY[type(node.op)](_value(node.left), _value(node.right))
    raise FormulaError("a number is missing")


def _power(base: Any, exponent: Any) -> Number:
    large = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if large and exponent * base.bit_length() > MAX_BITS:
        raise FormulaError(f"a power of more than {MAX_BITS} bits")
    return base**exponent


_APPLY: dict[type, Callable[..., Number]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Add: operator.add, ast.Sub: operator.sub,
    ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Pow: _power,
}  # fmt: skip
