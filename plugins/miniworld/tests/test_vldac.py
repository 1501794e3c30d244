"""VL-DAC's setting: what `compat="vldac"` changes, and that other arguments given with it win."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import gymnasium
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


def test_the_preset_has_128_turns_at_most_four_images_and_a_random_action_for_what_cannot_be_read(
    make: Callable,
) -> None:
    env = make(compat="vldac")
    assert (env.max_turns, env.invalid_action) == (128, "published")
    assert (env.vlgym_spec.history_turns, env.vlgym_spec.history_images) == (3, 4)
    assert [make(name, compat="vldac").max_turns for name in ("MazeS2", "OneRoomS6", "OneRoomS6Fast", "Sign")] == [
        96,
        100,
        50,
        20,
    ]
    assert make("MazeS2", compat="vldac", max_turns=300).max_turns == 96
    own = make(compat="vldac", max_turns=7, invalid_action="noop")
    assert (own.max_turns, own.invalid_action) == (7, "noop")
    plain = make()
    assert (plain.max_turns, plain.invalid_action) == (180, "noop")
    assert (plain.vlgym_spec.history_turns, plain.vlgym_spec.history_images) == (0, 1)


@pytest.mark.parametrize("name", ["OneRoom", "MazeS2", "OneRoomS6Fast", "WallGap"])
def test_limit_and_pay_are_those_of_a_limit_of_128_on_top_of_miniworlds(make: Callable, name: str) -> None:
    env = make(name, compat="vldac")
    env.reset(seed=1)
    raw = getattr(import_module("miniworld.envs"), name)(obs_width=16, obs_height=16, window_width=16, window_height=16)
    limit = raw.max_episode_steps
    theirs = gymnasium.wrappers.TimeLimit(raw, 128)
    for plan in ("oracle", "idle"):
        env.reset(seed=1)
        theirs.reset(seed=1)
        paid, ended = [], (False, False)
        while not any(ended):
            reply = env.solve() if plan == "oracle" and env.turn > 9 else env.parser.format(["turn left"])
            _, reward, *ended, info = env.step(reply)
            (action,) = info["vlgym"]["actions"]
            _, expected, *over, _ = theirs.step(env.actions[action])
            paid.append(reward)
            assert ended == over
            assert reward == (expected if expected or not any(over) else -1.0)
        if plan == "oracle":
            assert paid[-1] == pytest.approx(1 - 0.2 * len(paid) / limit)
        else:
            assert (len(paid), paid[-1]) == (min(128, limit), -1.0)
    theirs.close()


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
    assert reward == pytest.approx(1 - 0.2 / 180)


def test_the_prompt_shows_the_last_four_pictures(make: Callable) -> None:
    runner = Runner([make(compat="vldac")], split="val", episodes=1)
    policy = ScriptedPolicy(["<action>turn left</action>"])
    shown = []
    for _ in range(6):
        messages = runner.turns()[0].messages
        shown.append(sum(part["type"] == "image" for message in messages for part in message["content"]))
        runner.step(policy)
    assert shown == [1, 2, 3, 4, 4, 4]
