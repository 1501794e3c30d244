"""The solver, against brute force and against known shares of solvable hands."""

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


def brute_force(levels: Levels, numbers: tuple[int, ...], target: int, budget: int) -> int | None:
    """Length of the shortest completion, by trying every token sequence within the budget."""
    best = None
    if len(levels) == 1 and not numbers and levels[0].pending is None and levels[0].value == target:
        return 0
    if budget < max(1, len(levels) - 1 + 2 * len(numbers) - (levels[-1].pending is not None)):
        return None
    for token in [*{str(n) for n in numbers}, *"+-*/()"]:
        left = list(numbers)
        if token.isdigit():
            left.remove(int(token))
        try:
            rest = brute_force(push(levels, token), tuple(left), target, budget - 1)
        except FormulaError:
            continue
        if rest is not None and (best is None or rest + 1 < best):
            best = rest + 1
    return best


def random_cases(count: int) -> Iterator[tuple[list[str], tuple[int, ...], int]]:
    """Beginnings of formulas of two or three cards, live and dead, with the numbers left."""
    rng = np.random.default_rng(24)
    for _ in range(count):
        numbers = [int(n) for n in rng.integers(1, 7, size=int(rng.integers(2, 4)))]
        target = int(rng.integers(1, 13))
        prefix: list[str] = []
        left = list(numbers)
        for _ in range(int(rng.integers(0, 5))):
            choices = [each for each in [*map(str, left), *"+-*/()"] if _continues(prefix, each)]
            if not choices:
                break
            prefix.append(choices[int(rng.integers(len(choices)))])
            if prefix[-1].isdigit():
                left.remove(int(prefix[-1]))
        yield prefix, tuple(sorted(left)), target


def _continues(prefix: list[str], token: str) -> bool:
    try:
        read([*prefix, token])
    except FormulaError:
        return False
    return True


def test_the_solver_agrees_with_brute_force_on_existence_and_length() -> None:
    outcomes = Counter()
    for prefix, left, target in random_cases(60):
        ending = complete(tuple(prefix), left, target, Rules(), 9)
        expected = brute_force(read(prefix), left, target, 9)
        assert (None if ending is None else len(ending)) == expected, (prefix, left, target, ending)
        if ending is not None:
            whole = [*prefix, *ending]
            assert evaluate(whole) == target
            assert sorted(int(t) for t in ending if t.isdigit()) == list(left)
        outcomes["none" if ending is None else "found"] += 1
    assert min(outcomes.values()) > 10, "both kinds of case must occur"


@pytest.mark.parametrize(
    ("weights", "share"), [(TEN, 0.731), pytest.param(THIRTEEN, 0.792, marks=pytest.mark.exhaustive)]
)
def test_the_share_of_solvable_hands_is_the_published_one(weights: dict[int, int], share: float) -> None:
    solvable = total = 0
    for hand in combinations_with_replacement(sorted(weights), 4):
        ways = math.factorial(4)
        for value, times in Counter(hand).items():
            ways = ways // math.factorial(times) * weights[value] ** times
        total += ways
        solvable += ways * is_solvable(hand, 24, Rules())
    assert total == 13**4
    assert solvable / total == pytest.approx(share, abs=0.0005)
