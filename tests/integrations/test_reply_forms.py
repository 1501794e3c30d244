"""One reply is read alike by `env.step`, an evaluation, the agent function and integrations."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from integrations.test_agent import answering
from reply_forms import FORMS

from vlgym import make
from vlgym.env.seeding import episode_seed
from vlgym.env_groups import EnvGroup, open_group
from vlgym.evaluation.episodes import Player
from vlgym.evaluation.plan import Part, list_jobs
from vlgym.integrations.agent import Task, play
from vlgym.integrations.trl import make_factory
from vlgym.types import Reply, StepRecord, Turn

ENV = "vlgym/NumberLine-v1"
TEXTS = {f"{name}, {word}": write(word) for name, (_, write) in FORMS.items() for word in ("+", "fly")}
TEXTS |= {
    "placeholder": "I write <action>ACTION</action>. <action>+</action> <action>-</action>",
    "two claims": r"\boxed{+} or \boxed{-}",
    "thought": "<think><action>-</action></think><action>+</action>",
    "nothing": "",
}

Reading = tuple[str, tuple[str, ...], str | None]


@pytest.fixture(scope="module")
def expected() -> dict[str, Reading]:
    """How `env.step` reads each text at the beginning of the first test episode."""
    env, readings = make(ENV), {}
    for name, text in TEXTS.items():
        env.reset(seed=episode_seed(ENV, "test", 0))
        info = env.step(text)[-1]["vlgym"]
        readings[name] = (info["parse"], tuple(info["actions"]), info["form"])
    env.close()
    return readings


def read(record: StepRecord) -> Reading:
    return record.parse, record.actions, record.form


class Says:
    """Says the text of the episode's repeat, then nothing."""

    name = "says"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        return [Reply("" if turn.turn else [*TEXTS.values()][turn.repeat]) for turn in turns]


@pytest.fixture(params=["local", "processes:1"])
def group(request: pytest.FixtureRequest) -> Iterator[EnvGroup]:
    group = open_group(request.param)
    yield group
    group.close()


def test_an_evaluation_reads_as_env_step(group: EnvGroup, expected: dict[str, Reading]) -> None:
    played: list[list[StepRecord]] = []
    part = Part(ENV, episodes=1, repeats=len(TEXTS), arguments={"max_turns": 2})
    Player(list_jobs([part]), Says(), on_episode=played.append, group=group).play()
    assert {[*TEXTS][episode[0].repeat]: read(episode[0]) for episode in played} == expected


def test_the_agent_function_reads_as_env_step(expected: dict[str, Reading]) -> None:
    task = Task(ENV, "test", 0, {"max_turns": 1})
    episodes = {name: asyncio.run(play(task, client=answering(text or " "), model="m")) for name, text in TEXTS.items()}
    assert {name: read(episode.turns[0]) for name, episode in episodes.items()} == expected


def test_the_tool_of_trl_reads_the_same_actions(expected: dict[str, Reading], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym.integrations.trl.TRL_MODULES", ())
    tool = make_factory(ENV)()
    for name, text in TEXTS.items():
        tool.reset(seed=episode_seed(ENV, "test", 0))
        tool.act(text)
        assert tool.turns[0]["invalid"] == (expected[name][0] != "ok"), name
