"""EZPoints: dealing, rules, oracle."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from vlgym_cards.ez_points import partners
from vlgym_cards.solver import complete

from vlgym.env import VLEnv
from vlgym.errors import UserError

Build = Callable[..., VLEnv]


def deals(env: Any, script: type) -> list[tuple[float, list[str], list[int]]]:
    """(probability, cards, numbers) of every deal, suits aside, by playing back every draw."""
    rows = []
    for rank in range(2, 14):
        count = len(partners(min(rank, 10)))
        for choice, swap in product(range(count), (0.25, 0.75)):
            env.start(script(rank, 0, choice, 1, swap), {})
            rows.append((1 / 12 / count / 2, [str(card) for card in env.cards], list(env.numbers)))
    return rows


def test_every_hand_can_be_solved_five_sixths_by_a_sum_and_one_sixth_by_a_product(
    make_env: Build, script: type
) -> None:
    env: Any = make_env("EZPoints")
    sums = products = 0.0
    for probability, _, numbers in deals(env, script):
        solution = complete((), tuple(sorted(numbers)), 12, env.rules)
        assert solution is not None
        assert len(solution) == 3
        sums += probability * (sum(numbers) == 12)
        products += probability * (numbers[0] * numbers[1] == 12)
    assert sums == pytest.approx(0.833, abs=0.0005)
    assert products == pytest.approx(0.167, abs=0.0005)


def test_a_number_that_no_unused_card_has_costs_1_and_changes_nothing(make_env: Build, play: Callable) -> None:
    env = make_env("EZPoints")
    env.reset(seed=0, options={"cards": ["H5", "S7"]})
    rewards, terminated, truncated, info = play(env, ["5", "5", "3"])
    assert rewards == [0, -1, -1]
    assert info["formula"] == ["5"]
    assert info["invalid_action"]
    assert not terminated
    assert not truncated


@pytest.mark.parametrize(
    "formula",
    [[], ["5"], ["5", "+"], ["7", "*", "5"], ["5", "7"], ["+", "5", "7"], ["5", "+", "+", "7"], ["5", "+", "7", "*"]],
)
def test_a_wrong_formula_loses_1_and_ends_the_episode(make_env: Build, play: Callable, formula: list[str]) -> None:
    env = make_env("EZPoints")
    env.reset(seed=0, options={"cards": ["H5", "S7"]})
    rewards, terminated, _, info = play(env, [*formula, "="])
    assert rewards[-1] == -1
    assert terminated
    assert not info["success"]
    assert not info["solved"]


def test_a_seventh_token_ends_the_episode_with_minus_1_but_an_equals_sign_still_counts(
    make_env: Build, play: Callable
) -> None:
    env = make_env("EZPoints")
    env.reset(seed=0, options={"cards": ["H5", "S7"]})
    rewards, terminated, truncated, _ = play(env, ["+"] * 9)
    assert rewards == [0] * 6 + [-1]
    assert truncated
    assert not terminated
    env.reset(seed=0, options={"cards": ["H5", "S7"]})
    rewards, terminated, truncated, _ = play(env, ["+"] * 6 + ["="])
    assert rewards == [0] * 6 + [-1]
    assert terminated
    assert not truncated


@pytest.mark.parametrize(
    ("title", "options"),
    [
        ("EZPoints", {"cards": ["H5", "S1"]}), ("EZPoints", {"cards": ["H5"] * 3}), ("EZPoints", {"cards": "H5"}),
        ("Blackjack", {"dealer": ["H5", "X7"]}), ("Blackjack", {"player": ["HK", "SK", "D2"]}),
        ("NumberLine", {"current": 3, "target": 3}), ("NumberLine", {"target": 3}),
    ],
)  # fmt: skip
def test_impossible_starts_are_refused(make_env: Build, title: str, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        make_env(title).reset(seed=0, options=options)
