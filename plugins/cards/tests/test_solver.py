"""The solver, against brute force and against known shares of solvable hands."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
import pytest
from vlgym_cards.formula import FormulaError, Levels, evaluate, push, read
from vlgym_cards.solver import Rules, complete, is_solvable

TEN = {value: 4 if value == 10 else 1 for value in range(1, 11)}
THIRTEEN = dict.fromkeys(range(1, 14), 1)


def shortest(levels: Levels, left: tuple[str, ...], target: int, budget: int) -> int | None:
    """Length of the shortest completion, by trying every token sequence within the budget."""
    if len(levels) == 1 and not left and levels[0].pending is None and levels[0].value == target:
        return 0
    if budget < max(1, len(levels) - 1 + 2 * len(left) - (levels[-1].pending is not None)):
        return None
    lengths = []
    for _, after, rest in follow(levels, left):
        length = shortest(after, rest, target, budget - 1)
        lengths += [] if length is None else [length + 1]
    return min(lengths, default=None)


def follow(levels: Levels, left: tuple[str, ...]) -> Iterator[tuple[str, Levels, tuple[str, ...]]]:
    """Each token that may come next, what it makes, and the numbers that are left then."""
    for token in sorted({*left, *"+-*/()"}):
        at = left.index(token) if token in left else len(left)
        with contextlib.suppress(FormulaError):
            yield token, push(levels, token), left[:at] + left[at + 1 :]


def random_cases(count: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], int]]:
    """Beginnings of formulas of two or three cards, live and dead, with the numbers left."""
    rng = np.random.default_rng(24)
    for _ in range(count):
        left = tuple(map(str, rng.integers(1, 7, size=int(rng.integers(2, 4)))))
        prefix: tuple[str, ...] = ()
        for _ in range(int(rng.integers(0, 5))):
            ways = list(follow(read(prefix), left))
            token, _, left = ways[int(rng.integers(len(ways)))]
            prefix += (token,)
        yield prefix, left, int(rng.integers(1, 13))


def test_the_solver_agrees_with_brute_force_on_existence_and_length() -> None:
    outcomes = Counter()
    for prefix, left, target in random_cases(40):
        numbers = tuple(sorted(map(int, left)))
        ending = complete(prefix, numbers, target, Rules(), 9)
        length = shortest(read(prefix), left, target, 9)
        assert (None if ending is None else len(ending)) == length, (prefix, left, target, ending)
        if ending is not None:
            assert evaluate((*prefix, *ending)) == target
            assert sorted(int(each) for each in ending if each.isdigit()) == list(numbers)
            assert complete(prefix, numbers, target, Rules(), length - 1) is None
        outcomes[ending is None] += 1
    assert min(outcomes.values()) > 10, "both kinds of case must occur"


@pytest.mark.parametrize(
    ("weights", "share"), [(TEN, 0.731), pytest.param(THIRTEEN, 0.792, marks=pytest.mark.exhaustive)]
)
def test_the_share_of_solvable_hands(weights: dict[int, int], share: float) -> None:
    solvable = total = 0
    for hand in combinations_with_replacement(sorted(weights), 4):
        ways = math.factorial(4)
        for value, times in Counter(hand).items():
            ways = ways // math.factorial(times) * weights[value] ** times
        total += ways
        solvable += ways * is_solvable(hand, 24, Rules())
    assert total == 13**4
    assert solvable / total == pytest.approx(share, abs=0.0005)
