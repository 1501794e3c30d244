"""Exact search for the shortest completion of a formula that uses every card and hits the target.

The search follows the grammar of `formula`. For a set of numbers it tabulates every value that a
factor, a term or a sum over exactly these numbers can have, with the shortest tokens for it; and
likewise every effect that a *suffix* of a term (`* f / g`) or of a sum (`+ t - u`) can have. An
unfinished formula is then completed from its innermost open bracket outwards. Nothing is heuristic:
when `complete` returns `None`, no completion exists within the budget.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .formula import FormulaError, Level, read

Numbers = tuple[int, ...]  # a multiset, sorted
Tokens = tuple[str, ...]
Table = dict[Fraction, Tokens]  # value (or effect) to the shortest tokens that have it
EFFECTS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@dataclass(frozen=True)
class Rules:
    """Tokens that the game offers."""

    operators: str = "+-*/"
    brackets: bool = True


@lru_cache(maxsize=4096)
def complete(
    prefix: Tokens,
    numbers: Numbers,
    target: int,
    rules: Rules,
    budget: int,
    second: Callable[[str], object] | None = None,
) -> Tokens | None:
    """Return the fewest tokens that make `prefix` a formula worth `target`; `None` without any.

    Args:
        numbers: values of the cards that the formula has not used yet, sorted.
        budget: most tokens that may be added.
        second: another reader, which must find the same value in the whole formula. With it only
            one shortest formula for each value of the first term is tried, so `None` is no proof.
    """
    try:
        *outer, inner = read(prefix)
    except FormulaError:
        return None
    # Each number, an operator before all but a due one, and each closing bracket.
    fewest = len(outer) + 2 * len(numbers) - (1 if inner.pending and numbers else 0)
    if fewest > budget:
        return None

    # Brackets are closed from the innermost outwards, each with every part of the numbers.
    states = list(_after_factor(inner, numbers, rules))
    while outer:
        closed: dict[tuple[Numbers, Fraction], Tokens] = {}
        for state in states:
            for value, rest, tokens in _close(state, rules):
                if len(tokens) <= budget:
                    _keep(closed, (rest, value), tokens)
        level = outer.pop()
        states = [
            _State(level.take(value), rest, tokens)
            for (rest, value), tokens in closed.items()
            if value != 0 or level.pending == "*"
        ]

    # The outermost level takes all numbers that are left.
    best: Tokens | None = None
    for state in states:
        for addition in _hits(state, Fraction(target), rules):
            if len(addition) > budget or (best is not None and len(addition) >= len(best)):
                continue
            if second is None or second("".join((*prefix, *addition))) == target:
                best = addition
                if len(best) == fewest:
                    return best
    return best


@lru_cache(maxsize=4096)
def is_solvable(numbers: tuple[int, ...], target: int, rules: Rules) -> bool:
    states = _after_factor(Level(), tuple(sorted(numbers)), rules)
    return any(True for state in states for _ in _hits(state, Fraction(target), rules))


@dataclass(frozen=True)
class _State:
    """A level after a factor, the numbers still unused, and the tokens added so far."""

    level: Level
    rest: Numbers
    tokens: Tokens


def _after_factor(level: Level, numbers: Numbers, rules: Rules) -> Iterator[_State]:
    """Supply the factor that is due, if one is, in every way."""
    if level.pending is None:
        yield _State(level, numbers, ())
        return
    for part, rest in _splits(numbers):
        # A bracket around all that is left of a fresh sum is the sum.
        if not part or (level == Level() and not rest and len(part) > 1):
            continue
        for value, tokens in _factors(part, rules).items():
            if value != 0 or level.pending == "*":
                yield _State(level.take(value), rest, tokens)


def _close(state: _State, rules: Rules) -> Iterator[tuple[Fraction, Numbers, Tokens]]:
    """Finish the level with some of the numbers in every way, and close its bracket."""
    total, term = state.level.total, state.level.term
    for used, rest in _splits(state.rest):
        for part, others in _splits(used):
            additions = _suffixes(others, rules, "+-")
            for factor, first in _suffixes(part, rules, "*/").items():
                base = total + term * factor
                for addend, second in additions.items():
                    yield base + addend, rest, (*state.tokens, *first, *second, ")")


def _hits(state: _State, target: Fraction, rules: Rules) -> Iterator[Tokens]:
    """Make the outermost level worth `target` with all numbers: the shortest sum for each term."""
    total, term = state.level.total, state.level.term
    for part, others in _splits(state.rest):
        additions = _suffixes(others, rules, "+-")
        for factor, first in _suffixes(part, rules, "*/").items():
            second = additions.get(target - total - term * factor)
            if second is not None:
                yield (*state.tokens, *first, *second)


@lru_cache(maxsize=1024)
def _splits(numbers: Numbers) -> tuple[tuple[Numbers, Numbers], ...]:
    """All ways to split a multiset in two, as (part, rest), without repetition."""
    splits: dict[tuple[Numbers, Numbers], None] = {}
    for chosen in range(2 ** len(numbers)):
        part = tuple(n for i, n in enumerate(numbers) if chosen >> i & 1)
        rest = tuple(n for i, n in enumerate(numbers) if not chosen >> i & 1)
        splits[part, rest] = None
    return tuple(splits)


@lru_cache(maxsize=512)
def _factors(numbers: Numbers, rules: Rules) -> Table:
    if len(numbers) == 1:
        return {Fraction(numbers[0]): (str(numbers[0]),)}
    if not rules.brackets:
        return {}
    return {value: ("(", *tokens, ")") for value, tokens in _sums(numbers, rules).items()}


def _sums(numbers: Numbers, rules: Rules) -> Table:
    table: Table = {}
    for part, others in _splits(numbers):
        if part:
            additions = _suffixes(others, rules, "+-")
            for value, first in _terms(part, rules, brackets=len(others) > 0).items():
                for addend, second in additions.items():
                    _keep(table, value + addend, (*first, *second))
    return table


@lru_cache(maxsize=512)
def _terms(numbers: Numbers, rules: Rules, *, brackets: bool = True) -> Table:
    """Values of terms; without `brackets` not the factor that is a bracket around all numbers."""
    table: Table = {}
    for part, others in _splits(numbers):
        if part and (brackets or others or len(part) == 1):
            for value, first in _factors(part, rules).items():
                for factor, second in _suffixes(others, rules, "*/").items():
                    _keep(table, value * factor, (*first, *second))
    return table


@lru_cache(maxsize=1024)
def _suffixes(numbers: Numbers, rules: Rules, signs: str) -> Table:
    """Effects of `(sign operand)*`: factors of a term (`signs` "*/"), or what adds to a sum ("+-")."""
    if not numbers:
        return {Fraction(signs == "*/"): ()}
    table: Table = {}
    operands = _terms if signs == "+-" else _factors
    usable = [sign for sign in signs if sign in rules.operators]
    for part, others in _splits(numbers):
        if part:
            for value, first in operands(part, rules).items():
                for effect, second in _suffixes(others, rules, signs).items():
                    for sign in usable:
                        if sign != "/" or value != 0:
                            _keep(table, EFFECTS[sign](effect, value), (sign, *first, *second))
    return table


def _keep(table: dict, key: object, tokens: Tokens) -> None:
    known = table.get(key)
    if known is None or len(tokens) < len(known):
        table[key] = tokens
