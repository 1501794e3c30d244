"""NumberLine: rules, exact rates, pictures, speed of drawing."""

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
    found = []
    for current, target in product(range(6), repeat=2):
        env.start(script(np.array([current, target])), {})
        found.append((env.current, env.target))
    return found


def test_the_start_distribution_is_the_published_one(make_env: Build, script: type) -> None:
    found = starts(make_env("NumberLine"), script)
    assert len(found) == 36
    assert len(set(found)) == 30
    assert sum(abs(c - t) for c, t in found) / 36 == pytest.approx(2.278, abs=0.0005)
    assert (5, 1) in found
    assert found.count((4, 0)) == 2  # a tie at 4 moves the target to (4 + 1) mod 5


def test_random_play_reaches_the_target_and_succeeds_at_the_published_rates(make_env: Build, script: type) -> None:
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
    assert reached / 36 == pytest.approx(0.611, abs=0.0005)
    assert paid / 36 == pytest.approx(0.283, abs=0.0005)


def test_the_oracle_always_returns_1_in_the_fewest_turns(make_env: Build) -> None:
    env: Any = make_env("NumberLine")
    for current, target in product(range(6), repeat=2):
        if current == target:
            continue
        env.reset(seed=0, options={"current": current, "target": target})
        rewards = []
        terminated = False
        while not terminated:
            _, reward, terminated, truncated, info = env.step(env.solve())
            rewards.append(reward)
            assert not truncated
        assert rewards == [0.0] * (abs(current - target) - 1) + [1.0]
        assert info["success"]
        assert info["solved"]
        assert info["return_positive"]


def test_one_wrong_move_cancels_success_but_not_the_solution(make_env: Build, play: Callable) -> None:
    env = make_env("NumberLine")
    env.reset(seed=0, options={"current": 2, "target": 4})
    rewards, terminated, _, info = play(env, ["-", "+", "+", "+"])
    assert rewards == [-1, 0, 0, 1]
    assert terminated
    assert (info["success"], info["solved"], info["return_positive"]) == (False, True, False)


@pytest.mark.parametrize(("current", "target", "action"), [(0, 3, "-"), (5, 2, "+")])
def test_a_push_against_an_end_costs_1_and_moves_nothing(
    make_env: Build, play: Callable, current: int, target: int, action: str
) -> None:
    env = make_env("NumberLine")
    env.reset(seed=0, options={"current": current, "target": target})
    rewards, terminated, truncated, info = play(env, [action])
    assert rewards == [-1]
    assert info["current"] == current
    assert not terminated
    assert not truncated


def test_ten_turns_without_the_target_are_a_truncation(make_env: Build, play: Callable) -> None:
    env = make_env("NumberLine")
    env.reset(seed=0, options={"current": 0, "target": 5})
    rewards, terminated, truncated, info = play(env, ["-"] * 20)
    assert len(rewards) == 10
    assert truncated
    assert not terminated
    assert not info["solved"]


def test_the_turn_limit_follows_the_length_of_the_line(make_env: Build) -> None:
    assert make_env("NumberLine", max_position=9).max_turns == 18
    assert make_env("NumberLine", max_position=9, max_turns=3).max_turns == 3


def test_the_numbers_are_in_the_picture_only(make_env: Build) -> None:
    env = make_env("NumberLine")
    texts = {
        env.reset(seed=0, options={"current": c, "target": t})[0]["text"] for c in range(6) for t in range(6) if c != t
    }
    pictures = {
        env.reset(seed=0, options={"current": c, "target": t})[0]["image"].tobytes()
        for c in range(6)
        for t in range(6)
        if c != t
    }
    assert len(texts) == 1
    assert len(pictures) == 30


def test_the_oracle_thinks_in_both_numbers(make_env: Build) -> None:
    env = make_env("NumberLine")
    env.reset(seed=0, options={"current": 1, "target": 3})
    assert env.solve() == "target 3 current 1 <action>+</action>"


@pytest.mark.parametrize("size", [(56, 112), (300, 300), (224, 224)])
def test_each_number_stands_alone_in_the_third_quarter_of_its_half(make_env: Build, size: tuple[int, int]) -> None:
    env = make_env("NumberLine", image_size=size)
    height, width = size
    blank = None
    for target, current in product(range(6), repeat=2):
        if target == current:
            continue
        image = env.reset(seed=0, options={"current": current, "target": target})[0]["image"]
        ink = image.min(axis=2) < 128
        right = ink[:, width // 2 :]
        assert not right[:, width // 4 :].any(), "ink in the last quarter"
        for half in (right[: height // 2], right[height // 2 :]):
            rows = np.nonzero(half.any(axis=1))[0]
            assert rows.max() - rows.min() + 1 >= 0.45 * height / 2, "the number fills too little of its row"
            assert rows.min() > 0
            assert rows.max() < height // 2 - 1
        words = ink[:, : width // 2]
        blank = words if blank is None else blank
        assert (words == blank).all(), "the words must not change with the numbers"


def test_images_are_writable_copies_of_the_cached_frame(make_env: Build) -> None:
    env = make_env("NumberLine")
    image = env.reset(seed=3)[0]["image"]
    image[:] = 0
    assert env.image().max() == 255


def test_a_longer_line_shows_numbers_of_two_digits(make_env: Build) -> None:
    env = make_env("NumberLine", max_position=99)
    first = env.reset(seed=0, options={"current": 10, "target": 99})[0]["image"]
    second = env.reset(seed=0, options={"current": 11, "target": 99})[0]["image"]
    assert (first != second).any()
    assert (first[:, -2:] == 255).all(), "ink leaves the picture"


@pytest.mark.parametrize(
    "arguments", [{"max_position": 1}, {"max_position": 100}, {"max_position": "5"}, {"compat": "gym"}]
)
def test_bad_arguments_are_named(make_env: Build, arguments: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(arguments))):
        make_env("NumberLine", **arguments)


@pytest.mark.parametrize(
    "options", [{"target": 3}, {"current": 3, "target": 3}, {"current": -1, "target": 3}, {"current": "1", "target": 3}]
)
def test_bad_options_are_named(make_env: Build, options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="reset option"):
        make_env("NumberLine").reset(seed=0, options=options)
