"""EZPoints and Points24: dealing, rules, oracle."""

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from vlgym_cards.cards import Card
from vlgym_cards.ez_points import partners
from vlgym_cards.points24 import Points24
from vlgym_cards.solver import is_solvable

from vlgym.env import VLEnv
from vlgym.errors import UserError

Build = Callable[..., VLEnv]
HAND = {"cards": ["H5", "S7"]}


def test_five_sixths_of_the_hands_need_a_sum_and_one_sixth_a_product(make_env: Build, script: type) -> None:
    env: Any = make_env("EZPoints")
    sums = products = 0.0
    for rank in range(2, 14):
        choices = range(len(partners(min(rank, 10))))
        for choice, swap in product(choices, (0.25, 0.75)):
            env.start(script(rank, 0, choice, 1, swap), {})
            share = 1 / 12 / len(choices) / 2
            sums += share * (sum(env.numbers) == 12)
            products += share * (env.numbers[0] * env.numbers[1] == 12)
    assert (sums, products) == pytest.approx((0.833, 0.167), abs=0.0005)


def test_a_number_of_no_unused_card_costs_1_and_changes_nothing(make_env: Build, play: Callable) -> None:
    rewards, *ended, info = play(make_env("EZPoints", HAND), ["5", "5", "3"])
    assert (rewards, ended) == ([0, -1, -1], [False, False])
    assert (info["formula"], info["invalid_action"]) == (["5"], True)


@pytest.mark.parametrize("formula", ["", "5", "5+", "7*5", "57", "+57", "5++7", "5+7*"])
def test_a_wrong_formula_loses_1(make_env: Build, play: Callable, formula: str) -> None:
    rewards, terminated, _, info = play(make_env("EZPoints", HAND), [*formula, "="])
    assert (rewards[-1], terminated) == (-1, True)
    assert (info["success"], info["solved"]) == (False, False)


def test_a_seventh_token_ends_the_episode_with_minus_1_but_an_equals_sign_still_counts(make_env, play):
    for last in "+=":
        rewards, terminated, truncated, _ = play(make_env("EZPoints", HAND), [*"++++++", last])
        assert rewards == [0] * 6 + [-1]
        assert (terminated, truncated) == (last == "=", last == "+")


@pytest.mark.parametrize(
    ("title", "options"),
    [
        ("EZPoints", {"cards": ["H5", "S1"]}),
        ("EZPoints", {"cards": ["H5"] * 3}),
        ("EZPoints", {"cards": "H5"}),
        ("Blackjack", {"dealer": ["H5", "X7"]}),
        ("Blackjack", {"player": ["HK", "SK", "D2"]}),
        ("NumberLine", {"current": 3, "target": 3}),
        ("NumberLine", {"target": 3}),
    ],
)
def test_impossible_starts_are_refused(make_env: Build, title: str, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        make_env(title, options)


def test_faces_count_11_to_13_on_request(make_env: Build, play: Callable) -> None:
    env = make_env("Points24", {"cards": ["HJ", "SK", "DA", "CA"]}, faces_as_ten=False)
    assert len(env.legal_actions()) == 20
    assert len(make_env("Points24").legal_actions()) == 17
    rewards, _, _, info = play(env, ["(", "11", "+", "13", ")", "*", "1", "*", "1", "="])
    assert info["numbers"] == [11, 13, 1, 1]
    assert rewards[-1] == 10


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_the_oracle_wins_solvable_hands_and_gives_up_others(make_env: Build, every: int) -> None:
    env: Any = make_env("Points24")
    won = []
    for hand in list(combinations_with_replacement(range(1, 11), 4))[::every]:
        env.start(np.random.default_rng(0), {"cards": tuple(Card(n, "S") for n in hand)})
        rewards: list[float] = []
        while not rewards or rewards[-1] == 0:
            rewards.append(env.act(env.oracle()).reward)
        won.append(is_solvable(hand, 24, Points24.rules))
        assert rewards == ([0.0] * (len(rewards) - 1) + [10.0] if won[-1] else [-1.0]), hand
    assert 0 < sum(won) < len(won)
    assert every > 1 or (sum(won), len(won)) == (566, 566 + 149)


def test_the_oracle_gives_up_where_the_turns_do_not_reach_the_equals_sign(make_env: Build) -> None:
    assert [make_env("EZPoints", HAND, max_turns=turns).oracle() for turns in (3, 4)] == ["=", "5"]


def test_all_hands_are_solvable_on_request(make_env: Build) -> None:
    env = make_env("Points24", solvable_only=True)
    assert all(env.reset(seed=seed)[1]["solvable"] for seed in range(30))
