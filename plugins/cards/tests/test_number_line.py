"""NumberLine: rules, exact rates, pictures."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from vlgym.env import VLEnv
from vlgym.errors import UserError

Build = Callable[..., VLEnv]


def starts(env: Any, script: type) -> list[tuple[int, int]]:
    """(current, target) for each of the 36 equally likely draws."""
    draws = []
    for current, target in product(range(6), repeat=2):
        env.start(script(np.array([current, target])), {})
        draws.append((env.current, env.target))
    return draws


def test_the_start_distribution_is_the_published_one(make_env: Build, script: type) -> None:
    draws = starts(make_env("NumberLine"), script)
    assert (len(draws), len(set(draws))) == (36, 30)
    assert sum(abs(c - t) for c, t in draws) / 36 == pytest.approx(2.278, abs=0.0005)
    assert (5, 1) in draws
    assert draws.count((4, 0)) == 2  # a tie at 4 moves the target to (4 + 1) mod 5


def test_random_play_has_the_published_rates(make_env: Build, script: type) -> None:
    env: Any = make_env("NumberLine")
    reached = paid = 0.0
    for current, target in starts(env, script):
        # Exact distribution over (position, return so far) after each of the ten turns.
        states = {(current, 0): 1.0}
        for _ in range(10):
            after: dict[tuple[int, int], float] = {}
            for (position, total), probability in states.items():
                for action in "-+":
                    env.current, env.target = position, target
                    outcome = env.act(action)
                    share = probability / 2
                    if outcome.terminated:
                        reached += share
                        paid += share * (total + outcome.reward > 0)
                    else:
                        key = (env.current, total + int(outcome.reward))
                        after[key] = after.get(key, 0.0) + share
            states = after
    assert (reached / 36, paid / 36) == pytest.approx((0.611, 0.283), abs=0.0005)


def test_one_wrong_move_cancels_success_only(make_env: Build, play: Callable) -> None:
    env = make_env("NumberLine", {"current": 2, "target": 4})
    rewards, terminated, _, info = play(env, ["-", "+", "+", "+"])
    assert (rewards, terminated) == ([-1, 0, 0, 1], True)
    assert (info["success"], info["solved"], info["return_positive"]) == (False, True, False)


def test_a_push_against_an_end_costs_1_and_moves_nothing(make_env: Build, play: Callable) -> None:
    for current, target, action in ((0, 3, "-"), (5, 2, "+")):
        env = make_env("NumberLine", {"current": current, "target": target})
        rewards, *ended, info = play(env, [action])
        assert (rewards, info["current"], ended) == ([-1], current, [False, False])


def test_a_game_has_twice_its_largest_number_of_turns_unless_told_otherwise(make_env: Build) -> None:
    given = ({}, {"max_turns": 3})
    assert [make_env("NumberLine", max_position=9, **turns).max_turns for turns in given] == [18, 3]


def test_a_largest_number_out_of_range_is_refused(make_env: Build) -> None:
    for largest in (1, 100):
        with pytest.raises(UserError, match="must be an integer from 2 to 99"):
            make_env("NumberLine", max_position=largest)


def test_the_numbers_are_in_the_picture_only(make_env: Build) -> None:
    env = make_env("NumberLine")
    texts, pictures = set(), set()
    for current, target in product(range(6), repeat=2):
        if current != target:
            observation, _ = env.reset(seed=0, options={"current": current, "target": target})
            texts.add(observation["text"])
            pictures.add(observation["image"].tobytes())
    assert (len(texts), len(pictures)) == (1, 30)
