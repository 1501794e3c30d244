"""Refuse a game file whose text grammar holds code.

TextWorld evaluates the expressions of a grammar as Python. In ALFWorld's grammars they are names joined by `+` or `or`
(`o.indefinite + ' ' + o.name`); anything else in a file from elsewhere is not run.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from vlgym.errors import UserError

from .engine import fast_engine

_ALLOWED = (ast.Expression, ast.Attribute, ast.Name, ast.Load, ast.BinOp, ast.Add, ast.Constant, ast.BoolOp, ast.Or)


def check_grammar(grammar: str, source: str) -> None:
    """Check every expression of a text grammar.

    Args:
        grammar: the grammar's text.
        source: where it comes from, for the message.

    Raises:
        UserError: the grammar cannot be read, or an expression calls, indexes, or computes.
    """
    try:
        expressions = list_expressions(grammar)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{source}: the text grammar cannot be read ({type(error).__name__}: {str(error)[:200]})."
        ) from error
    for expression in expressions:
        if not is_plain(expression):
            raise UserError(
                f"{source}: the text grammar holds the expression {expression[:80]!r}, which is not a plain name; "
                "the game is not played."
            )


@lru_cache(maxsize=64)
def list_expressions(grammar: str) -> tuple[str, ...]:
    """Return every expression of a grammar that TextWorld would evaluate; nothing is evaluated here."""
    with fast_engine():
        logic = importlib.import_module("textworld.envs.pddl.logic")
        textgen = importlib.import_module("textworld.envs.pddl.textgen")
        actions, rules = logic._parse_and_convert(grammar, rule_name="pddlStart")
        symbols = [symbol for group in rules._rules.values() for rule in group for symbol in rule.rhs]
        for action in actions.values():
            for text in (action.template, action.feedback_rule):
                symbols += textgen._parse_and_convert(text, rule_name="symbols")
        return tuple(sorted({text for symbol in symbols for text in _expressions(symbol, textgen.Symbol)}))


def is_plain(expression: str) -> bool:
    """Whether an expression consists of names, attributes without underscores in front, strings, `+` and `or`."""
    try:
        nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = [node.id for node in nodes if isinstance(node, ast.Name)] + [
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    ]
    return all(isinstance(node, _ALLOWED) for node in nodes) and not any(name.startswith("_") for name in names)


def _expressions(symbol: Any, kind: type) -> Iterator[str]:
    if type(symbol).__name__ == "EvalSymbol":
        yield str(symbol.expression)
    for part in (getattr(symbol, "expression", None), getattr(symbol, "symbol", None)):
        if isinstance(part, kind):
            yield from _expressions(part, kind)
