"""Points24: rules, oracle on every solvable hand, pictures of long formulas."""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from vlgym_cards.cards import Card
from vlgym_cards.points24 import Points24
from vlgym_cards.solver import is_solvable

from vlgym.env import VLEnv

Build = Callable[..., VLEnv]


def test_faces_count_11_to_13_on_request(make_env: Build, play: Callable) -> None:
    env = make_env("Points24", {"cards": ["HJ", "SK", "DA", "CA"]}, faces_as_ten=False)
    assert len(env.legal_actions()) == 20
    assert len(make_env("Points24").legal_actions()) == 17
    rewards, _, _, info = play(env, ["(", "11", "+", "13", ")", "*", "1", "*", "1", "="])
    assert info["numbers"] == [11, 13, 1, 1]
    assert rewards[-1] == 10


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_the_oracle_wins_solvable_hands_and_plays_equals_on_every_other(make_env: Build, every: int) -> None:
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


def test_all_hands_are_solvable_on_request(make_env: Build) -> None:
    env = make_env("Points24", solvable_only=True)
    assert all(env.reset(seed=seed)[1]["solvable"] for seed in range(30))
