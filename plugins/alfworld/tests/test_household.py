"""Rewards, commands, templates, splits, levels, arguments, and the player that sees no picture."""

import random
import re
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from vlgym_alfworld.blind import Guesser, Searcher
from vlgym_alfworld.game import HEAT, LOOK
from vlgym_alfworld.household import TEMPLATES, ALFWorld, list_furniture_actions, match_template
from vlgym_alfworld.rl4vlm import SubstringParser
from vlgym_alfworld.rooms import load_room, scene_numbers

import vlgym  # noqa: F401
from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError

MIXED, TEMPLATED = "vlgym/ALFWorld-v0", "vlgym/ALFWorld-v1"


def make(env_id: str = "vlgym/ALFWorldHeat-v0", **kwargs: Any) -> Any:
    env = gymnasium.make(env_id, **kwargs).unwrapped
    assert isinstance(env, ALFWorld)
    return env


@pytest.fixture(scope="module")
def templated() -> Iterator[Any]:
    env = make(TEMPLATED)
    yield env
    env.close()


def say(env: Any, *commands: str) -> tuple[Any, ...]:
    for command in commands:
        result = env.step(env.parser.format([command]))
    return result


# ---- rewards and commands ----------------------------------------------------------------------


def test_heating_pays_1_for_the_heat_and_52_for_the_place_and_nothing_else():
    env, paid = make(), []
    env.reset(seed=2)
    while not env.success():
        command = env.oracle()
        _, reward, *_ = say(env, command)
        if reward:
            paid.append((command.split()[0], reward))
    assert paid == [("heat", 1.0), ("move", 52.0)]  # in place, hot and in place, success
    assert env.score() == 1.0


def test_a_condition_pays_only_the_first_time():
    env = make("vlgym/ALFWorldPick2-v0")
    env.reset(seed=1)
    while env.score() < 0.5:
        reward = env.step(env.solve())[1]
    assert reward == 1.0
    world, goal = env._backend.world, env._game.goal
    thing, place = next(
        (thing, place)
        for thing, place in world.holder.items()
        if world.object_kinds[thing] == goal.thing.lower() and world.receptacle_kinds[place] == goal.parent.lower()
    )
    for command in (f"take {thing} from {place}", f"move {thing} to {place}"):
        _, reward, _, _, info = say(env, command)
        assert (reward, info["invalid_action"]) == (0.0, False), command


def test_an_illegal_reply_costs_1_and_a_command_must_be_spelled_wholly():
    env = make()
    env.reset(seed=0, options={"scene": 9})
    assert {"go to cabinet 1", "go to cabinet 10"} <= set(env.legal_actions())
    before = env.state_text()
    for reply in ("", "no command at all", "<action>go to cabinet 1 please</action>"):
        _, reward, _, _, info = env.step(reply)
        assert (reward, info["invalid_action"]) == (-1.0, True)
    assert env.state_text() == before
    for spelled in ("go to cabinet 10", "Go to  Cabinet 1"):
        assert say(env, spelled)[4]["vlgym"]["actions"] == [" ".join(spelled.lower().split())]


# ---- the published forms -------------------------------------------------------------------------


@pytest.mark.parametrize(("compat", "success"), [("rl4vlm", 50), ("vldac", 1)])
def test_compat_pays_the_fraction_at_every_step_and_the_papers_success(compat: str, success: int):
    env = make("vlgym/ALFWorldHeat-v1", compat=compat)  # of templates nothing is left
    env.reset(seed=2)
    while not env.score():
        env.step(env.solve())
    third = pytest.approx(1 / 3)
    assert [env.step('{"action": "look"}')[1] for _ in range(2)] == [third, third]  # loitering pays
    before = env.episode_return
    assert env.step('{"action": "dance"}')[1] == pytest.approx(1 / 3 - 1)
    assert env.episode_return == pytest.approx(before + 1 / 3 - 1)
    assert env.step("")[1] == pytest.approx(env.score() - 1)
    assert env.step("dance")[4]["vlgym"]["actions"] == []
    assert env.image().shape == (300, 300, 3)
    terminated = False
    while not terminated:
        _, reward, terminated, _, _ = env.step(env.solve())
    assert reward == success + 1


def test_compat_reads_the_first_admissible_command_after_the_marker_or_in_the_last_30_characters():
    legal = ["go to cabinet 1", "go to cabinet 10", "look"]
    parse = SubstringParser().parse
    first = parse('{"thoughts": "look", "action": "go to cabinet 10"}', legal)
    assert first.actions == ("go to cabinet 1",)
    assert parse("LOOK " + "x" * 30, legal).failure == "no_action"
    assert parse("x" * 30 + " LOOK", legal).actions == ("look",)


def test_with_compat_an_empty_reply_plays_a_random_admissible_command_which_replays_exactly():
    env, other = make(compat="rl4vlm"), make(compat="rl4vlm")
    env.reset(seed=2)
    played = []
    for _ in range(6):
        legal = env.legal_actions()
        _, reward, _, _, info = env.step("")
        details = info["vlgym"]
        assert (reward, info["invalid_action"], details["parse"]) == (-1.0, True, "empty_reply")
        assert details["actions"][0] in legal
        played += details["actions"]
    assert len(set(played)) > 3
    other.reset(seed=2)
    assert [other.step("")[4]["vlgym"]["actions"][0] for _ in range(6)] == played
    other.reset(seed=5)
    other.set_state(env.get_state())
    assert np.array_equal(other.image(), env.image())
    for _ in range(3):
        assert other.step("")[4]["vlgym"]["actions"] == env.step("")[4]["vlgym"]["actions"]
    strict = make(compat="rl4vlm", invalid_action="terminate")
    strict.reset(seed=2)
    assert strict.step("")[2]


# ---- templates ---------------------------------------------------------------------------------


def test_the_list_names_furniture_alone_and_templates_take_only_what_the_engine_admits():
    commands = [
        "close cabinet 1", "examine cabinet 1", "go to desk 1", "inventory", "look", "open drawer 2",
        "move mug #37 to cabinet 1", "take pen #12 from cabinet 1", "put mug #37 in/on desk 1",
    ]  # fmt: skip
    doors = ["open cabinet 1", "close cabinet 1", "open drawer 2", "close drawer 2"]
    assert list_furniture_actions(commands) == ["go to desk 1", *doors]
    taken = {
        "Take  PEN #12 from cabinet 1": "take pen #12 from cabinet 1",
        "take pen 12 from cabinet 1": "take pen #12 from cabinet 1",
        "put mug #37 in/on desk 1": "put mug #37 in/on desk 1",
    }
    assert {wanted: match_template(wanted, commands) for wanted in taken} == taken
    refused = ("pen #1 from cabinet 1", "pen from cabinet 1", "pen #12", "OBJECT from RECEPTACLE")
    for wanted in ("look", "inventory", "examine cabinet 1", *(f"take {rest}" for rest in refused)):
        assert match_template(wanted, commands) is None


def test_no_text_and_no_legal_action_names_a_thing_wherever_the_player_goes(templated: Any):
    observation, _ = templated.reset(seed=0)
    names, ended = set(templated._backend.world.object_kinds), False
    while not ended:
        words = f"{observation['text']} {templated.legal_actions()}"
        assert not [name for name in names if name in words]
        assert "#" not in observation["text"].split("Legal actions:")[1]
        observation, _, terminated, truncated, _ = say(templated, templated.oracle())
        ended = terminated or truncated
    assert all(template in observation["text"] for template in TEMPLATES)


def test_words_tell_neither_what_is_behind_a_door_nor_what_is_held(templated: Any):
    """Go to a closed piece of furniture with something in it, and compare what is told."""

    def told(result: tuple[Any, ...]) -> Any:
        observation, reward, terminated, truncated, info = result
        counts = ("turn", "turn_text", "span")
        details = {name: value for name, value in info["vlgym"].items() if name not in counts}
        text = re.sub(r"Turn \d+", "", observation["text"])
        return text, reward, terminated, truncated, {**info, "vlgym": details}

    templated.reset(seed=1)
    world = templated._backend.world
    things = [thing for thing in sorted(world.takeable) if world.holder[thing] in world.openable]
    thing, place = things[0], world.holder[things[0]]
    say(templated, f"go to {place}")
    hidden = say(templated, f"take {thing} from {place}")
    nowhere = say(templated, f"take {thing.split()[0]} #9 from {place}")
    assert told(hidden) == told(nowhere)
    assert (hidden[4]["invalid_action"], hidden[1]) == (True, -1.0)
    assert np.array_equal(hidden[0]["image"], nowhere[0]["image"])
    doing = (f"open {place}", f"take {thing} from {place}", f"move {thing} to {place}", f"close {place}")
    results = [told(say(templated, command)) for command in doing]
    assert not any(result[4]["invalid_action"] for result in results)
    assert len({result[0] for result in results}) == 1
    legal = [result[4]["vlgym"]["legal_actions"] for result in results]
    assert legal == [hidden[4]["vlgym"]["legal_actions"]] * len(results)


# ---- splits, levels, options, arguments --------------------------------------------------------


def test_levels_bound_types_receptacles_and_objects_and_splits_bound_rooms(templated: Any):
    for level, arguments in enumerate(templated.level_arguments):
        split = ("train", "test", "val")[level % 3]
        seed = episode_seed(TEMPLATED, split, level)
        _, info = templated.reset(seed=seed, options={"level": level})
        assert info["task_type"] in arguments["types"]
        assert info["scene"] in scene_numbers(seen=split != "test")
        low, high = arguments["places"]
        assert low <= len(load_room(info["scene"]).places) <= high
        assert templated.max_turns == arguments.get("max_turns", 50)
        most = arguments.get("things", (12, 22))[1]
        assert len(templated._backend.world.holder) <= most + 1  # a lamp
    heat = make("vlgym/ALFWorldHeat-v1")
    assert heat.reset(seed=0, options={"level": 4})[1]["task_type"] == HEAT
    usual, again = templated.reset(seed=5)[0], make(TEMPLATED).reset(seed=5)[0]
    assert (usual["image"] == again["image"]).all()


def test_the_mixed_environment_plays_all_types_and_reset_can_choose():
    env = make(MIXED)
    assert len({env.reset(seed=seed)[1]["task_type"] for seed in range(6)}) >= 3
    info = env.reset(seed=1, options={"task": LOOK, "scene": 303})[1]
    assert (info["task_type"], info["scene"]) == (LOOK, 303)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tasks": ["pick_heat"]}, "task type='pick_heat' is not one of"),
        ({"compat": "rl4vl"}, "Nearest: rl4vlm"),
        ({"split": "valid"}, "valid_seen"),
        ({"backend": "unity"}, "drawn, thor"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_choices(wrong: dict[str, Any], message: str):
    with pytest.raises(UserError, match=message):
        make(MIXED, **wrong)


def test_the_blind_searcher_fetches_treats_and_brings_what_the_commands_name():
    player = Searcher(random.Random(0))
    text = "Your task is to: heat some egg and put it in diningtable 1.\nTurn 1 of 50."
    cabinet, table, microwave = "go to cabinet 1", "go to diningtable 1", "go to microwave 1"
    take, move = "take egg 2 from diningtable 1", "move egg 2 to diningtable 1"
    heat = "heat egg 2 with microwave 1"
    for legal, command in (
        ((cabinet, table, microwave), cabinet),
        ((table, microwave, "open cabinet 1", "examine cabinet 1"), "open cabinet 1"),
        ((table, microwave, "close cabinet 1", "take cup 1 from cabinet 1"), table),
        ((cabinet, microwave, take), take),
        ((cabinet, microwave, move), microwave),
        ((cabinet, table, "open microwave 1", heat), heat),
        ((cabinet, table, heat), table),
        ((cabinet, move), move),
        ((cabinet, table, take), cabinet),  # not what it has placed
    ):
        assert player.choose(text, (*legal, "look", "inventory", "help")) == command


def test_the_blind_searcher_lights_the_lamp_where_the_task_says_examine():
    player, text = Searcher(random.Random(0)), "Your task is to: examine the pen with the desklamp."
    legal = ("go to desk 1", "take pen 1 from bed 1", "use desklamp 1")
    assert [player.choose(text, legal) for _ in range(2)] == [*legal[1:]]


def test_the_blind_guesser_shares_the_turns_that_the_text_states_among_its_stages():
    text = "Your task is to: examine the egg with the desklamp.\nYou have 10 turns."
    player, legal = Guesser(random.Random(0)), ("go to desk 1", "go to bed 1")
    played = [re.sub(r"#\d+", "#", player.choose(text, legal)) for _ in range(8)]
    stages = (["take egg # from desk 1"] * 3, ["use desklamp #"] * 3)
    assert played == [command for stage in stages for command in ("go to desk 1", *stage)]
