"""One player for all seats of a game: `opponents="self"`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from toy_games import Listener, Meet

import vlgym
from vlgym.env.prompts import PromptBuilder
from vlgym.errors import UserError
from vlgym.evaluation.plan import plan_ids
from vlgym.evaluation.run import run_evaluation
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.play.trajectory import read_header, read_trajectories

MEETING = "vlgym/Meet-v0"


def say(action: str) -> str:
    return f"<action>{action}</action>"


def begin(places: list[int], **arguments: Any) -> Meet:
    """Return a meeting that all seats play, with its agents in some cells."""
    env = vlgym.make(MEETING, opponents="self", **arguments)
    assert isinstance(env, Meet)
    env.reset(seed=1)
    env.places = places
    return env


def test_seats_answer_in_turn_and_a_round_is_executed_with_its_last_move_and_pays_the_mean() -> None:
    env = begin([0, 1, 2])
    seats, rewards = [env.seat_now], []
    for action in ("right", "stay", "left"):
        assert env.places == [0, 1, 2]  # no seat sees a move of the round that is not over
        _, reward, terminated, truncated, info = env.step(say(action))
        seats.append(info["seat"])
        rewards.append(reward)
        assert (terminated, truncated) == (False, False)
    assert (seats, rewards, env.places) == ([0, 1, 2, 0], [0.0, 0.0, 1.0], [1, 1, 1])


def test_a_game_has_as_many_rounds_as_where_others_play() -> None:
    env = begin([0, 1, 2])
    while not env._ended:
        env.step(say("stay"))
    assert env._table.turns == [env.max_turns] * 3


@pytest.mark.parametrize("invalid_action", ["noop", "random"])
def test_a_round_with_an_unreadable_reply_pays_no_gain_and_the_next_one_does(invalid_action: str) -> None:
    env = begin([1, 1, 1], invalid_action=invalid_action)
    env.moves = lambda seat: ["stay"]  # so that the random action is this one, too
    env.step("?")
    env.step(say("stay"))
    assert env.step(say("stay"))[1] == 0.0
    assert [env.step(say("stay"))[1] for _ in range(3)] == [0.0, 0.0, 1.0]


def test_a_state_in_the_middle_of_a_round_is_restored() -> None:
    env = begin([0, 1, 2])
    env.reset(seed=4)
    env.step(say("left"))
    other = vlgym.make(MEETING, opponents="self")
    other.set_state(json.loads(json.dumps(env.get_state())))
    for action in ("right", "stay", "left"):
        mine, its = env.step(say(action)), other.step(say(action))
        assert (mine[0]["text"], mine[1:]) == (its[0]["text"], its[1:])
        assert (mine[0]["image"] == its[0]["image"]).all()


@pytest.mark.parametrize(
    ("env_id", "arguments", "message"),
    [
        ("vlgym/Nim-v0", {}, "opponents='self' gives one player all seats of vlgym/Nim-v0: its seats play against"),
        (MEETING, {"seat": 1}, "opponents='self' gives one player all seats of vlgym/Meet-v0: leave out seat=1."),
    ],
)
def test_where_one_player_cannot_hold_all_seats_it_is_said(
    env_id: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        vlgym.make(env_id, opponents="self", **arguments)


def test_the_history_of_a_prompt_holds_the_turns_of_its_own_seat_alone() -> None:
    env, policy = vlgym.make(MEETING, opponents="self"), Listener()
    runner = Runner([env], episodes=1, builder=PromptBuilder(history_turns=2, history_images=3))
    pictures: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    while not runner.done:
        seat = env.seat_now
        pictures[seat].append(env.image())
        runner.step(policy)
        shown = [part["image"] for said in policy.heard[-1].messages for part in said["content"] if "image" in part]
        expected = pictures[seat][-3:]
        assert len(shown) == len(expected)
        assert all((one == other).all() for one, other in zip(shown, expected, strict=True))


def test_an_evaluation_records_it_by_name_and_every_seat_replies(tmp_path: Path) -> None:
    parts = plan_ids([MEETING], episodes=2, arguments={"opponents": "self", "max_turns": 2})
    run_evaluation(parts, RandomPolicy(), tmp_path, num_envs=1)
    assert read_header(tmp_path)["parts"][MEETING]["arguments"]["opponents"] == "self"
    assert [len(episode) for episode in read_trajectories(tmp_path)] == [3 * 2] * 2
