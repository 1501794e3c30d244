"""The agent function plays what `vlgym eval` plays: equal requests, equal records."""

import asyncio
import dataclasses
import json
import traceback
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import openai
import pytest
from endpoint_asking import always, open_policy, refuse
from fault_server import Fault, FaultServer, hash_pixels
from toys import installed, make_spec

from vlgym.endpoint.completion import BadAnswerError
from vlgym.errors import UserError
from vlgym.evaluation.episodes import Player
from vlgym.evaluation.plan import list_jobs, plan_ids
from vlgym.integrations.agent import Task, play, tasks
from vlgym.types import StepRecord

COIN = make_spec("vlgym/Coin-v0", "toys:Coin", max_turns=30, image_size=(16, 16), history_turns=2, history_images=2)
OTHERS = ("vlgym/NumberLine-v1", "vlgym/CanaryMemory-v0")
EPISODES = 2


@pytest.fixture(autouse=True)
def toys_installed() -> Iterator[None]:
    with installed(COIN):
        yield


def evaluate(url: str, env_id: str, **arguments: Any) -> list[list[StepRecord]]:
    played: list[list[StepRecord]] = []
    with open_policy(url) as policy:
        parts = plan_ids([env_id], episodes=EPISODES, split="test", arguments=arguments)
        Player(list_jobs(parts), policy, on_episode=lambda episode: played.append(list(episode))).play()
    return sorted(played, key=lambda episode: episode[0].episode)


def plain(record: StepRecord) -> dict[str, Any]:
    """Return what must agree: all but the evaluation's part and the time of the answer."""
    data = {each.name: getattr(record, each.name) for each in dataclasses.fields(record)}
    usage = data.pop("usage")
    data.pop("part")
    data["tokens"] = usage.prompt_tokens, usage.completion_tokens
    data["image"] = hash_pixels(data["image"])
    data["messages"] = json.dumps(data["messages"], default=hash_pixels)
    return data


def requests(server: FaultServer) -> list[str]:
    return sorted(request.digest for request in server.requests)


@pytest.mark.parametrize("env_id", [COIN.id, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in OTHERS)])
def test_records_and_requests_equal_those_of_an_evaluation(env_id: str) -> None:
    arguments = {"max_turns": 6} if "Line" in env_id else {}
    faults = {2: Fault("cut"), 4: Fault("parts"), 5: Fault("refuse")}

    def fail(request: Any) -> Fault | None:
        return faults.get(int(request.digest[:2], 16) % 9)

    async def play_all(url: str) -> list[Any]:
        chosen = tasks(env_id, "test", EPISODES, **arguments)
        return await asyncio.gather(*(play(task, base_url=url, model="m") for task in chosen))

    with FaultServer(fail) as server, FaultServer(fail) as other:
        expected, episodes = evaluate(server.url, env_id, **arguments), asyncio.run(play_all(other.url))
    assert requests(server) == requests(other)
    for episode, records in zip(episodes, expected, strict=True):
        assert list(map(plain, episode.turns)) == list(map(plain, records))
        assert episode.reward == sum(record.reward for record in records)
        assert episode.success == records[-1].success
        assert episode.info["seed"] == records[0].seed
        assert episode.messages[-1] == {"role": "assistant", "content": records[-1].reply}


def test_an_episode_goes_on_after_a_refused_prompt_or_an_action_in_thoughts() -> None:
    for fault, status in (("in_reasoning", "reasoning_only"), (refuse("The prompt is too long."), "refused")):
        with always(fault) as server:
            episode = asyncio.run(play(Task(COIN.id), base_url=server.url, model="m"))
        assert {record.status for record in episode.turns} == {status}


def returning(answer: Any) -> Any:
    """Return a client whose answer is always this one."""

    async def create(**_: Any) -> Any:
        return answer

    completions = SimpleNamespace(create=create)
    return SimpleNamespace(chat=SimpleNamespace(completions=completions), api_key="sk-abc")


def answering(text: str) -> Any:
    """Return a client whose server always says the same."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    data = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}

    return returning(openai.types.chat.ChatCompletion.model_validate(data))


def test_what_stands_after_the_action_is_not_read() -> None:
    client = answering("<action>heads</action> or tails")
    turn = asyncio.run(play(Task(COIN.id, "val"), client=client, model="m")).turns[0]
    assert (turn.reply, turn.after, turn.actions) == ("<action>heads</action>", " or tails", ("heads",))


def test_a_row_is_a_task_and_a_longer_history_holds_the_whole_episode() -> None:
    task = tasks("vlgym/CanaryMemory-v0", "train", 2, first=5, image_size=(32, 32))[1]
    row = {**json.loads(json.dumps(task.to_row())), "images": None, "prompt": "of the trainer"}
    assert (row["number"], Task.from_row(row).seed) == (6, task.seed)
    assert Task("vlgym/CanaryMemory-v0").to_row() == {
        "env_id": "vlgym/CanaryMemory-v0", "split": "train", "number": 0,
    }  # fmt: skip
    assert Task.from_row({"env_id": "vlgym/CanaryMemory-v0", "arguments": None}).arguments == {}
    for history, counts in ((None, [1, 2, 3, 4]), (0, [1, 1, 1, 1]), (1, [1, 2, 2, 2])):
        with FaultServer() as server:
            episode = asyncio.run(play(row, base_url=server.url, model="m", history=history, temperature=0.5))
        assert [len(request.pictures) for request in server.requests] == counts
        assert server.requests[0].body["temperature"] == 0.5
        assert np.array_equal(server.requests[-1].pictures[-1], episode.turns[-1].image)
        assert episode.turns[-1].image.shape == (32, 32, 3)


def test_environments_are_closed_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    import toys

    closed = []
    monkeypatch.setattr(toys.Coin, "close", lambda self: closed.append(self))
    task = Task(COIN.id)
    with FaultServer(lambda request: Fault("400")) as server:
        for _ in range(2):
            with pytest.raises(openai.BadRequestError):
                asyncio.run(play(task, base_url=server.url, model="m"))
    assert len(closed) == 2
    with FaultServer(lambda request: Fault("held", seconds=30)) as server:

        async def leave() -> None:
            playing = asyncio.create_task(play(task, base_url=server.url, model="m"))
            while not server.requests:
                await asyncio.sleep(0.01)
            playing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await playing

        asyncio.run(leave())
        server.release()
    assert len(closed) == 3


@pytest.mark.parametrize("own", [False, True], ids=["address", "client"])
@pytest.mark.parametrize("fault", ["400", "401", "drop", "error200", "abort"])
def test_what_fails_names_no_key_and_no_password(fault: str, own: bool) -> None:
    key, password = 'sk-a/key+of "this', "pass:word"
    body = {"error": {"message": f"{key} and {password} are wrong", "code": key}}
    with FaultServer(lambda request: Fault(fault, body=body)) as server:
        url = server.url.replace("://", f"://me:{password}@")

        async def fail() -> None:
            if own:
                async with openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0) as client:
                    await play(Task(COIN.id), model="m", client=client)
            await play(Task(COIN.id), model="m", base_url=url, api_key=key)

        with pytest.raises((openai.OpenAIError, BadAnswerError)) as caught:
            asyncio.run(fail())
    fields = {name: value for name, value in vars(caught.value).items() if name not in ("request", "response")}
    text = "".join(traceback.format_exception(caught.value)) + repr(fields)
    assert server.requests
    assert key not in text
    assert json.dumps(key)[1:-1] not in text
    assert password not in text
    assert ("[secret] and [secret] are wrong" in text) == (fault in ("400", "401"))


def test_an_answer_of_a_trainers_client_that_is_none_names_no_key() -> None:
    answer = SimpleNamespace(model_dump=lambda **how: {"choices": [], "note": "Bearer sk-abc"})
    with pytest.raises(BadAnswerError, match=r"Bearer \[secret\]"):
        asyncio.run(play(Task(COIN.id), model="m", client=returning(answer)))


def test_wrong_tasks_are_named() -> None:
    with pytest.raises(UserError, match="base_url or client"):
        asyncio.run(play(Task(COIN.id), model="m"))
    for wrong in ({"split": "trian"}, {"n": 0}):
        with pytest.raises(UserError):
            tasks(COIN.id, **wrong)
    with pytest.raises(UserError, match="no argument"):
        tasks(COIN.id, smell=3)
