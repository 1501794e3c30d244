"""Action templates: what is held, open and seen is told by the picture alone, and a refusal tells nothing."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from vlgym_alfworld.blind import Guesser, Searcher
from vlgym_alfworld.household import TEMPLATES, list_furniture_actions, match_template

from vlgym.env.seeding import episode_seed
from vlgym.registry.making import make
from vlgym.sight import blind
from vlgym.sight.blind import BlindPlayer

COMMANDS = [
    "close cabinet 1", "examine cabinet 1", "go to desk 1", "go to fridge 1", "inventory", "look",
    "move mug #37 to cabinet 1", "open drawer 2", "take pen #12 from cabinet 1", "use desklamp #55",
]  # fmt: skip


@pytest.fixture(scope="module")
def env() -> Any:
    made: Any = make("vlgym/ALFWorld-v1")
    yield made
    made.close()


def say(env: Any, *commands: str) -> tuple[Any, ...]:
    for command in commands:
        result = env.step(env.parser.format([command]))
    return result


def open_a_place_with_things(env: Any) -> tuple[str, str]:
    """Go to a closed piece of furniture with something in it, open it, and return a thing and the place."""
    for seed in range(20):
        env.reset(seed=seed)
        world = env._backend.world
        for thing, place in sorted(world.holder.items()):
            if place in world.openable and thing in world.takeable:
                say(env, f"go to {place}")
                return thing, place
    raise AssertionError("no game with something behind a door")


def test_the_list_names_furniture_alone_and_both_ways_of_each_door() -> None:
    assert list_furniture_actions(COMMANDS) == [
        "go to desk 1", "go to fridge 1", "open cabinet 1", "close cabinet 1", "open drawer 2", "close drawer 2",
    ]  # fmt: skip


def test_a_template_takes_only_what_the_engine_admits_now() -> None:
    assert match_template("Take  PEN #12 from cabinet 1", COMMANDS) == "take pen #12 from cabinet 1"
    assert match_template("take pen 12 from cabinet 1", COMMANDS) == "take pen #12 from cabinet 1"
    assert match_template("use desklamp #55", COMMANDS) == "use desklamp #55"
    refused = ("take pen #1 from cabinet 1", "take pen from cabinet 1", "take pen #12", "look", "inventory",
               "examine cabinet 1", "take OBJECT from RECEPTACLE", "take pen #12 from cabinet 11")  # fmt: skip
    assert [match_template(wanted, COMMANDS) for wanted in refused] == [None] * len(refused)
    assert match_template("put mug #37 in/on desk 1", ["put mug #37 in/on desk 1"]) == "put mug #37 in/on desk 1"


def test_no_text_and_no_legal_action_names_a_thing_wherever_the_player_goes(env: Any) -> None:
    for seed in range(2):
        observation, _ = env.reset(seed=seed)
        names = set(env._backend.world.object_kinds)
        ended = False
        while not ended:
            words = f"{observation['text']} {env.legal_actions()}"
            assert not [name for name in names if name in words]
            assert "#" not in observation["text"].split("Legal actions:")[1]
            observation, _, terminated, truncated, _ = say(env, env.oracle())
            ended = terminated or truncated
        assert all(template in observation["text"] for template in TEMPLATES)


def test_text_and_legal_actions_are_the_same_whether_a_door_is_open_and_something_held(env: Any) -> None:
    thing, place = open_a_place_with_things(env)
    before = env.legal_actions()
    texts = []
    for command in (f"open {place}", f"take {thing} from {place}", f"move {thing} to {place}", f"close {place}"):
        observation, _, _, _, info = say(env, command)
        assert not info["invalid_action"], command
        texts.append(re.sub(r"Turn \d+", "", observation["text"]))
        assert env.legal_actions() == before
    assert len(set(texts)) == 1


def test_what_is_behind_a_door_is_refused_like_what_is_nowhere(env: Any) -> None:
    thing, place = open_a_place_with_things(env)
    hidden = say(env, f"take {thing} from {place}")
    nowhere = say(env, f"take {thing.split()[0]} #9 from {place}")
    assert hidden[4]["vlgym"].pop("turn") + 1 == nowhere[4]["vlgym"].pop("turn")
    answers = []
    for observation, reward, terminated, truncated, info in (hidden, nowhere):
        assert info["invalid_action"]
        details = {name: value for name, value in info["vlgym"].items() if name not in ("turn_text", "span")}
        text = re.sub(r"Turn \d+", "", observation["text"])
        answers.append((text, reward, terminated, truncated, {**info, "vlgym": details}))
    assert answers[0] == answers[1]
    assert np.array_equal(hidden[0]["image"], nowhere[0]["image"])
    assert hidden[1] == -1.0
    assert not say(env, f"open {place}", f"take {thing} from {place}")[4]["invalid_action"]


@pytest.mark.parametrize(
    "player", [Guesser, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (Searcher, blind.Searcher))]
)
def test_a_player_without_the_picture_wins_at_most_15_in_100(env: Any, player: type[BlindPlayer]) -> None:
    won, episodes = 0, 10
    for index in range(episodes):
        observation, info = env.reset(seed=episode_seed("vlgym/ALFWorld-v1", "test", index))
        one, ended = player(random.Random(index)), False
        while not ended:
            command = one.choose(observation["text"], tuple(info["vlgym"]["legal_actions"]))
            observation, _, terminated, truncated, info = say(env, command)
            ended = terminated or truncated
        won += info["success"]
    assert won / episodes <= 0.15
