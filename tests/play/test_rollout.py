"""The Runner: batches, episode numbers and seeds, records, history, endings, exact state."""

import json
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from toys import Coin, Walk, make_spec, make_walk

from vlgym.env.prompts import PromptBuilder
from vlgym.errors import UserError
from vlgym.play.controls import list_pictures
from vlgym.play.policies import OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.types import Reply, StepRecord, Turn

LEFT, RIGHT = "<action>left</action>", "<action>right</action>"


class Watcher:
    """Answers right and remembers the batches that it saw."""

    name = "watcher"

    def __init__(self) -> None:
        self.batches: list[list[Turn]] = []

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        self.batches.append(list(turns))
        return [Reply(RIGHT, extra={"place": place}) for place in range(len(turns))]


def plain(records: Sequence[StepRecord]) -> list[str]:
    """Return everything of the records that can be compared, prompts and images by their bytes."""
    pictures = [[image.tobytes() for image in list_pictures(record.messages)] for record in records]
    return [f"{record} {record.image.tobytes()!r} {each}" for record, each in zip(records, pictures, strict=True)]


def test_all_environments_are_answered_in_one_batch() -> None:
    policy = Watcher()
    records = Runner([make_walk() for _ in range(3)]).step(policy)
    assert len(policy.batches[0]) == len(records) == 3
    assert [record.extra for record in records] == [{"place": 0}, {"place": 1}, {"place": 2}]
    assert [record.episode for record in records] == [0, 1, 2]


def test_a_record_holds_what_the_policy_saw_and_what_happened() -> None:
    env = make_walk()
    runner = Runner([env])
    turn = runner.turns()[0]
    record = runner.step(ScriptedPolicy([f"so {RIGHT}"]))[0]
    assert record.messages == turn.messages
    assert record.messages[-1]["content"][1]["text"] == record.text
    assert np.array_equal(record.image, record.messages[-1]["content"][0]["image"])
    assert (record.reply, record.actions, record.parse, record.turn) == (f"so {RIGHT}", ("right",), "ok", 0)
    assert (record.reward, record.score, record.final_messages) == (0.0, None, None)
    assert not any((record.terminated, record.truncated, record.invalid, record.success))
    assert record.span is not None
    assert record.reply[slice(*record.span)] == "right"
    assert runner.step(ScriptedPolicy(["eh"]))[0].span is None
    (record,) = Runner([Coin(vlgym_spec=make_spec())]).step(ScriptedPolicy(["<action>heads</action>"]))
    assert record.score == pytest.approx(1 / 3)


def test_each_record_has_the_reward_of_its_own_environment() -> None:
    runner = Runner([make_walk() for _ in range(3)])
    for target, slot in enumerate(runner.slots):
        slot.env.target = target
    assert [record.reward for record in runner.step(ScriptedPolicy([RIGHT]))] == [0.0, 1.0, 0.0]


def test_exactly_the_wanted_number_of_episodes_is_played() -> None:
    runner = Runner([make_walk() for _ in range(4)], episodes=6, first_episode=10)
    played = list(run_episodes(runner, OraclePolicy()))
    assert sorted(episode[0].episode for episode in played) == [10, 11, 12, 13, 14, 15]
    for episode in played:
        assert episode[-1].success
        assert [record.turn for record in episode] == list(range(len(episode)))
    assert runner.done
    assert runner.turns() == runner.step(OraclePolicy()) == []
    assert len(Runner([make_walk() for _ in range(4)], episodes=2).turns()) == 2


def test_a_truncated_episode_alone_carries_the_prompt_that_would_have_come_next() -> None:
    *_, ended = next(run_episodes(Runner([make_walk()], episodes=1), OraclePolicy()))
    assert (ended.terminated, ended.final_messages) == (True, None)
    runner = Runner([make_walk(max_turns=2)], builder=PromptBuilder(2, 2))
    first, last = (runner.step(ScriptedPolicy([LEFT]))[0] for _ in range(2))
    assert (first.truncated, last.truncated) == (False, True)
    assert first.final_messages is None
    assert last.final_messages is not None
    assert [message["role"][0] for message in last.final_messages] == ["u", "a", "u", "a", "u"]
    assert last.final_messages[-1]["content"][-1]["text"].startswith("You are in cell -2.")


def test_history_is_shown_within_an_episode_and_not_across() -> None:
    runner = Runner([make_walk(max_turns=3)], builder=PromptBuilder(history_turns=2, history_images=2))
    lengths = [len(runner.step(ScriptedPolicy([LEFT]))[0].messages) for _ in range(5)]
    assert lengths == [1, 3, 5, 1, 3]


SCRIPT = ScriptedPolicy([LEFT, "eh", RIGHT, "<action>fly</action>"])


@pytest.mark.parametrize(
    ("history", "pictures", "policy"),
    [(0, "shown", SCRIPT), (2, "shown", RandomPolicy()), (2, "shuffled", SCRIPT)],
)
def test_a_restored_runner_goes_on_exactly(history: int, pictures: str, policy: Any) -> None:
    def make(index: int) -> Walk:
        return make_walk(max_turns=3 + index, invalid_action="random")

    runner, other = (
        Runner(
            [make(index) for index in range(3)], builder=PromptBuilder(history, 2), pictures=pictures,
            remake=make, episodes=20,
        )
        for _ in range(2)
    )  # fmt: skip
    for _ in range(7):
        runner.step(policy)
    other.step(policy)
    other.set_state(json.loads(json.dumps(runner.get_state())))
    while not runner.done:
        assert plain(runner.step(policy)) == plain(other.step(policy))
    assert other.done


def test_a_state_of_another_size_is_refused() -> None:
    with pytest.raises(UserError, match="has 1 environments, this one 2"):
        Runner([make_walk(), make_walk()]).set_state(Runner([make_walk()]).get_state())


def test_wrapped_environments_run_too() -> None:
    env = gymnasium.wrappers.RecordEpisodeStatistics(make_walk())
    assert len(list(run_episodes(Runner([env], episodes=2), OraclePolicy()))) == 2


def test_no_environments_and_strange_ones_are_refused() -> None:
    with pytest.raises(UserError, match="at least one environment"):
        Runner([])
    with pytest.raises(UserError, match="is not a VLEnv"):
        Runner([gymnasium.make("CartPole-v1")])
    with pytest.raises(UserError, match="give twins, or remake"):
        Runner([make_walk()], pictures="shuffled")


def test_without_an_end_every_environment_plays_numbers_of_its_own() -> None:
    runner = Runner([make_walk(max_turns=1), make_walk(max_turns=2)], first_episode=4)
    records = [record for _ in range(4) for record in runner.step(ScriptedPolicy(["eh"]))]
    assert [r.episode for r in records] == [4, 5, 6, 5, 8, 7, 10, 7]
    shared = Runner([make_walk(max_turns=1)], first_episode=1, stride=3)
    assert [shared.step(ScriptedPolicy(["eh"]))[0].episode for _ in range(3)] == [1, 4, 7]


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        (["go right"], r"'odd' gave str; .*one vlgym.types.Reply for each .* Wrap .*: Reply\(text\)"),
        ("go right", "gave str; its reply.. returns a list"),
        (None, "gave NoneType; its reply.. returns a list"),
        ([Reply(None)], r"gave Reply\(NoneType\)"),  # type: ignore[arg-type]
        ([{"text": RIGHT}], "gave dict"),
        ([], "gave 0 replies to 1 prompts"),
        ([Reply(RIGHT), Reply(RIGHT)], "gave 2 replies to 1 prompts"),
    ],
)
def test_a_policy_that_does_not_reply_to_each_prompt_is_told_so(replies: Any, words: str) -> None:
    policy = Watcher()
    policy.name, policy.reply = "odd", lambda turns: replies  # type: ignore[method-assign]
    with pytest.raises(UserError, match=words):
        Runner([make_walk()]).step(policy)
