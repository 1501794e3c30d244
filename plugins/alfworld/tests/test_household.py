"""Rewards, commands, splits and arguments of the environment."""

import gymnasium
import numpy as np
import pytest
from vlgym_alfworld.household import ALFWorld
from vlgym_alfworld.rl4vlm import SubstringParser
from vlgym_alfworld.rooms import scene_numbers

import vlgym  # noqa: F401
from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError

HEAT = "vlgym/ALFWorldHeat-v0"


def make(env_id: str = HEAT, **kwargs: object) -> ALFWorld:
    env = gymnasium.make(env_id, **kwargs).unwrapped
    assert isinstance(env, ALFWorld)
    return env


def say(command: str) -> str:
    return f"<action>{command}</action>"


def solve(env: ALFWorld) -> list[tuple[str, float]]:
    """Play the oracle to the end; return commands and rewards."""
    played, ended = [], False
    while not ended:
        command = env.oracle()
        assert command is not None
        _, reward, terminated, truncated, _ = env.step(env.parser.format([command]))
        played.append((command, reward))
        ended = terminated or truncated
    return played


def test_heating_pays_1_for_the_heat_and_52_for_the_place_and_nothing_else():
    env = make()
    env.reset(seed=2)
    played = solve(env)
    assert env.success()
    rewards = [reward for _, reward in played]
    heat = next(index for index, (command, _) in enumerate(played) if command.startswith("heat "))
    assert rewards[heat] == 1.0
    assert rewards[-1] == 52.0  # in place for the first time, hot and in place for the first time, success
    assert sum(rewards) == 53.0
    assert env.score() == 1.0


def test_a_condition_pays_only_the_first_time():
    env = make("vlgym/ALFWorldPick2-v0")
    env.reset(seed=1)
    while env._met != (True, False):
        _, reward, *_ = env.step(env.solve() or "")
    assert reward == 1.0
    thing, place = next(
        (thing, place)
        for thing, place in env._backend.world.holder.items()
        if thing.startswith(env._game.goal.thing.lower() + " ")
        and env._backend.world.receptacle_kinds[place] == env._game.goal.parent.lower()
    )
    for command, paid in ((f"take {thing} from {place}", 0.0), (f"move {thing} to {place}", 0.0)):
        _, reward, _, _, info = env.step(say(command))
        assert not info["invalid_action"], command
        assert reward == paid


def test_an_illegal_reply_costs_1_and_changes_nothing():
    env = make()
    env.reset(seed=1)
    before = env.state_text()
    for reply in ("", "no command at all", say("fly to the moon"), say("heat the moon with microwave 1")):
        _, reward, _, _, info = env.step(reply)
        assert reward == -1.0
        assert info["invalid_action"]
    assert env.state_text() == before


def test_cabinet_1_is_never_read_as_cabinet_10():
    env = make()
    env.reset(seed=0, options={"scene": 9})
    assert {"go to cabinet 1", "go to cabinet 10"} <= set(env.legal_actions())
    _, _, _, _, info = env.step(say("go to cabinet 10"))
    assert info["vlgym"]["actions"] == ["go to cabinet 10"]
    _, _, _, _, info = env.step(say("Go to  Cabinet 1"))
    assert info["vlgym"]["actions"] == ["go to cabinet 1"]
    _, _, _, _, info = env.step(say("go to cabinet 1 please"))
    assert info["invalid_action"]


def test_compat_pays_the_fraction_of_met_conditions_at_every_step_and_for_illegal_replies():
    env = make(compat="rl4vlm")
    env.reset(seed=2)
    while env._met[1] is False:
        env.step(env.parser.format([env.oracle()]))
    third = pytest.approx(1 / 3)
    assert env.step('{"action": "look"}')[1] == third
    assert env.step('{"action": "look"}')[1] == third  # loitering pays, as published
    before = env.episode_return
    assert env.step('{"action": "dance"}')[1] == pytest.approx(1 / 3 - 1)
    assert env.episode_return == pytest.approx(before + 1 / 3 - 1)
    assert env.image().shape == (300, 300, 3)


@pytest.mark.parametrize(("compat", "success"), [("rl4vlm", 50), ("vldac", 1)])
def test_compat_pays_the_papers_success_on_top_of_the_fraction(compat, success):
    env = make(compat=compat)
    env.reset(seed=2)
    assert env.step('{"action": "dance"}')[1] == pytest.approx(env.score() - 1)
    reward, terminated = 0.0, False
    while not terminated:
        _, reward, terminated, _, _ = env.step(env.solve())
    assert reward == success + 1


def test_compat_reads_the_first_admissible_command_after_the_first_marker_or_in_the_last_30_characters():
    legal = ["go to cabinet 1", "go to cabinet 10", "look"]
    parse = SubstringParser().parse
    assert parse('{"thoughts": "look", "action": "go to cabinet 10"}', legal).actions == ("go to cabinet 1",)
    assert parse("LOOK " + "x" * 30, legal).failure == "no_action"
    assert parse("x" * 30 + " LOOK", legal).actions == ("look",)
    assert parse("", legal).failure == "empty_reply"


def test_with_compat_an_empty_reply_plays_a_random_admissible_command_which_replays_exactly():
    env, other = make(compat="rl4vlm"), make(compat="rl4vlm")
    env.reset(seed=2)
    played = []
    for _ in range(6):
        legal = env.legal_actions()
        _, reward, _, _, info = env.step("")
        assert (reward, info["invalid_action"], info["vlgym"]["parse"]) == (-1.0, True, "empty_reply")
        assert info["vlgym"]["actions"][0] in legal
        played += info["vlgym"]["actions"]
    assert len(set(played)) > 3
    other.reset(seed=2)
    assert [other.step("")[4]["vlgym"]["actions"][0] for _ in range(6)] == played
    other.reset(seed=5)
    other.set_state(env.get_state())
    assert np.array_equal(other.image(), env.image())
    assert [other.step("")[4]["vlgym"]["actions"] for _ in range(3)] == [
        env.step("")[4]["vlgym"]["actions"] for _ in range(3)
    ]


def test_test_seeds_play_in_unseen_rooms_and_train_and_val_seeds_in_seen_ones():
    env = make("vlgym/ALFWorld-v0")
    for split, seen in (("train", True), ("val", True), ("test", False)):
        scenes = {env.reset(seed=episode_seed("vlgym/ALFWorld-v0", split, i))[1]["scene"] for i in range(3)}
        assert scenes <= set(scene_numbers(seen)), split


def test_the_mixed_environment_plays_all_six_types_and_reset_can_choose():
    env = make("vlgym/ALFWorld-v0")
    assert len({env.reset(seed=seed)[1]["task_type"] for seed in range(15)}) >= 4
    info = env.reset(seed=1, options={"task": "look_at_obj_in_light", "scene": 303})[1]
    assert (info["task_type"], info["scene"]) == ("look_at_obj_in_light", 303)
    with pytest.raises(UserError, match="affords no"):
        env.reset(seed=1, options={"task": "pick_heat_then_place_in_recep", "scene": 401})
    with pytest.raises(UserError, match="floor plan number"):
        env.reset(seed=1, options={"scene": "kitchen"})


def test_a_wrong_argument_is_refused_with_the_choices():
    for wrong, message in (
        ({"tasks": ["pick_heat"]}, "task type='pick_heat' is not one of"),
        ({"compat": "rl4vl"}, "Nearest: rl4vlm"),
        ({"split": "valid"}, "valid_seen"),
        ({"backend": "unity"}, "drawn, thor"),
    ):
        with pytest.raises(UserError, match=message):
            make("vlgym/ALFWorld-v0", **wrong)
