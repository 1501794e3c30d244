"""VL-DAC's setting: what `compat="vldac"` changes, and that other arguments given with it win."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import vlgym
from vlgym.play.policies import ScriptedPolicy
from vlgym.play.rollout import Runner

SMALL = (24, 32)


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """Build environments in small pictures; all are closed afterwards."""
    built: list[Any] = []

    def build(name: str = "OneRoom", **kwargs: Any) -> Any:
        built.append(vlgym.make(f"vlgym/{name}-v0", image_size=SMALL, **kwargs))
        return built[-1]

    yield build
    for env in built:
        env.close()


def play(env: Any, *actions: str) -> list[float]:
    env.reset(seed=1)
    return [env.step(env.parser.format([action]))[1] for action in actions]


def test_the_preset_has_128_turns_four_images_and_a_random_action_for_what_cannot_be_read(make: Callable) -> None:
    env = make(compat="vldac")
    assert (env.max_turns, env.invalid_action) == (128, "published")
    assert (env.vlgym_spec.history_turns, env.vlgym_spec.history_images) == (3, 4)
    given = make(compat="vldac", max_turns=7, invalid_action="noop")
    assert (given.max_turns, given.invalid_action) == (7, "noop")
    plain = make()
    assert (plain.max_turns, plain.invalid_action) == (180, "noop")
    assert (plain.vlgym_spec.history_turns, plain.vlgym_spec.history_images) == (0, 1)


def test_an_episode_that_fails_pays_minus_one_with_its_last_step_and_nothing_before(make: Callable) -> None:
    assert play(make(compat="vldac", max_turns=5), *["turn left"] * 5) == [0, 0, 0, 0, -1]
    assert play(make(max_turns=5), *["turn left"] * 5) == [0, 0, 0, 0, 0]


def test_walking_into_the_street_pays_minus_one(make: Callable) -> None:
    env = make("Sidewalk", compat="vldac")
    env.reset(seed=1)
    street = env.world.street
    env.world.agent.pos = np.array([street.min_x - 0.05, 0.0, env.world.agent.pos[2]])
    env.world.agent.dir = 0.0
    _, reward, terminated, _, info = env.step(env.parser.format(["move forward"]))
    assert (reward, terminated, info["success"]) == (-1.0, True, False)


def test_a_success_is_paid_as_ever(make: Callable) -> None:
    env = make(compat="vldac")
    env.reset(seed=1)
    box = env.world.box
    env.world.agent.pos = np.array([box.pos[0] - 1.2, 0.0, box.pos[2]])
    env.world.agent.dir = 0.0
    _, reward, terminated, _, info = env.step(env.parser.format(["move forward"]))
    assert terminated
    assert info["success"]
    assert reward == pytest.approx(1 - 0.2 / 128)


def test_the_prompt_shows_the_last_four_pictures(make: Callable) -> None:
    runner = Runner([make(compat="vldac")], split="val", episodes=1)
    policy = ScriptedPolicy(["<action>turn left</action>"])
    shown = []
    for _ in range(6):
        messages = runner.turns()[0].messages
        shown.append(sum(part["type"] == "image" for message in messages for part in message["content"]))
        runner.step(policy)
    assert shown == [1, 2, 3, 4, 4, 4]
