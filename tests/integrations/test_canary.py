"""Canaries tell seeing policies from blind ones, and find a trainer that loses a picture."""

import asyncio
import base64
import http.client
import io
import math
import random
import re
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

import openai
import pytest
from PIL import Image
from seer import Seer

from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError
from vlgym.integrations.agent import Task, play
from vlgym.integrations.canary import (
    ARRIVES,
    BLIND,
    CANARIES,
    CANNOT_TELL,
    SEES,
    CanaryItem,
    LogProb,
    canary_batch,
    judge_canary,
    sample_canaries,
    sight_gap,
)
from vlgym.integrations.canary_server import CanaryServer
from vlgym.intervals import binomial_p
from vlgym.play.policies import RandomPolicy
from vlgym.registry.making import make

COLOUR, DIGIT, MEMORY = CANARIES
EPISODES = 2
Change = Callable[[list[Any]], list[Any]]


def test_a_policy_that_sees_and_one_that_guesses_are_told_apart() -> None:
    for policy, verdict in ((Seer(), SEES), (Seer(bool), BLIND)):
        results = sample_canaries(policy, 14)
        assert {each.verdict for each in results} == {verdict}, policy.name
        assert [each.env_id for each in results] == list(CANARIES)
        assert [each.chance for each in results] == [1 / 8, 1 / 10, 1 / 12]
        assert all(each.right == 14 for each in results) == (verdict == SEES)


def test_another_environment_is_no_canary() -> None:
    with pytest.raises(UserError, match="SeeDigit-v0 is no canary"):
        sample_canaries(RandomPolicy(), 2, ["vlgym/SeeDigit-v0"])


def test_a_blind_policy_passes_for_a_seeing_one_in_at_most_half_a_percent_of_runs() -> None:
    for chance in (1 / 8, 1 / 12):
        for episodes in (5, 50):
            least = next(k for k in range(episodes + 1) if judge_canary(MEMORY, chance, k, episodes).verdict == SEES)
            assert binomial_p(least, episodes, chance) <= 0.005
            assert binomial_p(least - 1, episodes, chance) > 0.005
    assert [judge_canary(MEMORY, 1 / 12, k, 20).verdict for k in (0, 2, 20)] == [BLIND, BLIND, SEES]
    assert judge_canary(MEMORY, 1 / 12, 0, 2).verdict == CANNOT_TELL


class Trainer:
    """A client that changes the pictures of its requests."""

    def __init__(self, url: str, change: Change) -> None:
        self.client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        self.change = change
        self.chat = self.completions = self

    async def create(self, *, messages: list[dict[str, Any]], **more: Any) -> Any:
        places = [
            (content, index)
            for message in messages
            if isinstance(content := message["content"], list)
            for index, part in enumerate(content)
            if part["type"] == "image_url"
        ]
        changed = self.change([content[index]["image_url"]["url"] for content, index in places])
        for (content, index), url in reversed(list(zip(places, changed, strict=True))):
            content[index : index + 1] = [{"type": "image_url", "image_url": {"url": url}}] if url else []
        return await self.client.chat.completions.create(messages=messages, **more)


def write_again(url: str, form: str = "PNG", size: int = 224) -> str:
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
        buffer = io.BytesIO()
        picture.resize((size, size)).save(buffer, form)
    return f"data:image/{form.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def drop_third(urls: list[Any]) -> list[Any]:
    return [None if place == 2 else url for place, url in enumerate(urls)]


def play_through(change: Change, server: CanaryServer, **more: Any) -> list[float]:
    async def play_all() -> list[float]:
        trainer = Trainer(server.url, change)
        chosen = [Task(env_id, "train", number) for env_id in CANARIES for number in range(EPISODES)]
        played = await asyncio.gather(*(play(task, model="m", client=trainer, **more) for task in chosen))
        await trainer.client.close()
        return [episode.reward for episode in played]

    return asyncio.run(play_all())


def test_a_trainer_that_carries_all_pictures_passes_and_earns_all_rewards() -> None:
    with CanaryServer("train", EPISODES) as server:
        for history, change in ((None, list), (3, lambda urls: [write_again(url) for url in urls])):  # equal pixels
            assert play_through(change, server, history=history) == [1.0] * 3 * EPISODES
        assert server.problems == []
        assert server.passed
    assert server.finished == dict.fromkeys(CANARIES, EPISODES)
    assert server.requests == 2 * EPISODES * (1 + 3 + 4)


@pytest.mark.parametrize(("change", "problem"), [
    (drop_third, r"CanaryMemory-v0, turn 3: pictures due 1, 2, 3; arrived 1, 2$"),
    (lambda urls: urls[::-1], r"CanaryMemory-v0, turn 2: pictures due 1, 2; arrived 2, 1"),
    (lambda urls: [None] * (len(urls) - 1) + urls[-1:], r"turn 4: .* due 1, 2, 3, 4; arrived 4"),
    (lambda urls: urls[:1] * len(urls), r"turn 2: pictures due 1, 2; arrived 1, 1"),
    (lambda urls: [*urls[:-1], write_again(urls[-1], size=112)] if len(urls) > 1 else urls,
     r"turn 2: pictures due 1, 2; arrived 1, changed \(112 x 112\)"),
    (lambda urls: [write_again(url, "JPEG") for url in urls], r"turn 1: no picture .*: 224 x 224"),
    (lambda urls: [None] * len(urls), r"turn 3: no picture .*; pictures: none"),
    (lambda urls: ["http://127.0.0.1/a.png"] * len(urls), r"turn 1: no picture .*: unreadable"),
], ids=["third dropped", "reversed", "last", "repeated", "smaller", "lossy", "dropped", "links"])  # fmt: skip
def test_a_trainer_that_loses_or_changes_a_picture_is_caught(change: Change, problem: str) -> None:
    lines = []
    with CanaryServer("train", EPISODES, on_request=lambda number, line: lines.append(line)) as server:
        play_through(change, server)
        assert not server.passed
    assert any(re.search(problem, line) for line in server.problems), server.problems[:6]
    assert [line for line in lines if line] == server.problems


def test_an_endpoint_that_heard_nothing_or_only_one_canary_has_not_passed() -> None:
    with CanaryServer("train", 1) as server:
        assert not server.passed
        client = openai.OpenAI(base_url=server.url, api_key="none")
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello?"}])
        assert (server.requests, server.others) == (0, 1)
        assert asyncio.run(play(Task(COLOUR), base_url=server.url, model="m")).success
        assert not server.passed
    assert server.problems == []


def test_an_endpoint_answers_what_is_no_chat_request_with_a_status() -> None:
    with CanaryServer("train", 1, env_ids=[COLOUR]) as server:
        host = server.url.split("/")[2]
        for path, body, status in (
            ("/v1/chat/completions", b"{", 400), ("/v1/chat/completions", b"[]", 400),
            ("/v1/chat/completions", b'{"messages": [], "stream": true}', 400),
            ("/v1/chat/completions", b'{"messages": 3}', 400), ("/v1/embeddings", b"{}", 404),
        ):  # fmt: skip
            connection = http.client.HTTPConnection(host, timeout=10)
            connection.request("POST", path, body)
            assert connection.getresponse().status == status, (path, body)
            connection.close()
        assert server.requests == 0


@pytest.fixture(scope="module")
def batch() -> list[CanaryItem]:
    return canary_batch(6)


def score_by_sight(gain: float) -> LogProb:
    """Give an answer more where its last picture has any contrast."""

    def score(messages: Sequence[Any], replies: Sequence[str]) -> list[float]:
        images = [[part["image"] for part in prompt[-1]["content"] if "image" in part] for prompt in messages]
        return [-3.0 + gain * (pictures[-1].std() > 0) for pictures in images]

    return score


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (2.0, f"{ARRIVES}, and make right answers likelier (gap +2.000 nats [+2.000 to +2.000]"),
        (-2.0, f"{ARRIVES}, and make right answers less likely (gap -2.000 nats [-2.000 to -2.000]"),
        (0.0, "blind (gap +0.000 nats [+0.000 to +0.000]"),
    ],
)
def test_the_gap_of_a_score_that_drops_pictures_is_0_and_of_one_that_reads_them_is_not(gain, words, batch):
    gap = sight_gap(score_by_sight(gain), batch)
    assert (gap.mean, gap.verdict) == (gain, ARRIVES if gain else BLIND)
    assert str(gap) == f"{words}, 6 episodes)"


def test_a_score_with_as_much_noise_as_effect_is_unclear(batch: list[CanaryItem]) -> None:
    noise = random.Random(0)
    unclear = sight_gap(lambda messages, replies: [noise.gauss(0, 2) for _ in replies], batch)
    assert unclear.verdict == CANNOT_TELL


def test_a_batch_holds_all_canaries_with_right_replies(batch: list[CanaryItem]) -> None:
    other = canary_batch(6, seed=1)
    assert [item.env_id for item in other] == [*CANARIES, *CANARIES]
    for number, item in enumerate(other):
        assert item.seed == episode_seed(item.env_id, "val", 6 + number)
        env: Any = make(item.env_id)
        env.reset(seed=item.seed)
        assert item.answer == f"<action>{env.shown[env.asked - 1]}</action>"
        parts = [part["type"] for each in item.messages for part in each["content"]]
        assert parts.count("image") == env.vlgym_spec.history_images
    assert not {item.seed for item in batch} & {item.seed for item in other}


def test_a_score_that_is_no_number_is_named(batch: list[CanaryItem]) -> None:
    for wrong in ([math.nan] * 6, [0.0]):
        with pytest.raises(UserError, match="6 finite numbers"):
            sight_gap(lambda messages, replies, wrong=wrong: wrong, batch)
    with pytest.raises(UserError):
        sight_gap(score_by_sight(1), batch[:1])


def test_a_client_that_leaves_is_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    with CanaryServer("train", 1) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 10\r\n\r\n{")
        assert asyncio.run(play(Task(COLOUR), base_url=server.url, model="m")).success
    assert capfd.readouterr().err == ""
