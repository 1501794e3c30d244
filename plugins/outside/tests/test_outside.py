"""Missions, their bot and the blind player."""

import random

import pytest
from minigrid.core.world_object import Box
from vlgym_outside.blind import Rover
from vlgym_outside.plugin import BABYAI, CRAFTER

import vlgym
from vlgym.testing import CHECKS, EnvConformance

SWEPT = ("floor", "blind", "history", "parser_time", "resources", "values", "processes")
WORDS = {"goto": "go to ", "pickup": "pick up ", "open": "open ", "putnext": "put ", "pick_up_seq_go_to": ""}


class TestMission(EnvConformance):
    """Without the longest checks, which are the sweep's."""

    env_id = BABYAI[0].id
    checks = tuple(name for name in CHECKS if name not in SWEPT)
    garbage = 100


def test_no_environment_has_a_train_split() -> None:
    assert {spec.splits for spec in (*BABYAI, CRAFTER)} == {("val", "test")}


@pytest.mark.parametrize("spec", BABYAI, ids=lambda spec: spec.title)
def test_the_bot_wins_after_moves_of_another(spec: vlgym.EnvSpec) -> None:
    env, rng = vlgym.make(spec.id), random.Random(0)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        mission = env.unwrapped.task().removeprefix("Your mission: ")
        assert mission.startswith(WORDS[env.unwrapped.kind])
        assert ("pick up" in mission and "go to" in mission) == (env.unwrapped.kind == "pick_up_seq_go_to")
        for _ in range(6):
            move = rng.choice(("turn left", "turn right", "go forward", "pick up", "drop"))
            if not info["success"]:
                _, _, _, _, info = env.step(env.parser.format([move]))
        while not info["success"]:
            _, _, _, truncated, info = env.step(env.solve())
            assert not truncated


def test_the_bot_is_silent_after_a_box_was_opened() -> None:
    env = vlgym.make("vlgym/BabyAIGoTo-v0")
    env.reset(seed=0)
    grid = env.unwrapped.inner
    grid.put_obj(Box("red"), *grid.front_pos)
    for action in ("turn left", "turn right", "toggle"):
        assert env.solve() is not None
        env.step(env.parser.format([action], ""))
    assert env.solve() is None


@pytest.mark.parametrize(
    ("mission", "deeds"), [("go to a key", set()), ("pick up a key", {"pick up"}), ("open a door", {"toggle"})]
)
def test_the_rover_does_what_the_verb_asks_for(mission: str, deeds: set[str]) -> None:
    rover = Rover(random.Random(0))
    moves = {rover.choose(f"toggle acts ahead. Your mission: {mission}.", ()) for _ in range(100)}
    assert moves == {"turn left", "turn right", "go forward", *deeds}
