"""The policy `openai:MODEL` against a real server on loopback: requests, answers, failures."""

from __future__ import annotations

import concurrent.futures
import logging
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from fault_server import Asked, Fault, FaultServer, choose_action, hash_pixels
from toys import make_walk

from vlgym.endpoint.policy import OpenAIPolicy, make_seed
from vlgym.env.prompts import PastTurn, PromptBuilder
from vlgym.errors import FailedError, UserError
from vlgym.evaluation.policy_names import make_policy
from vlgym.play.policies import AskingPolicy
from vlgym.play.rollout import Runner, run_episodes
from vlgym.types import Reply, Turn

SECRET = "sk-very-secret-123456"
AGAIN = ["drop", "half", "truncated", "json", "html", "shape", "error200", "429", "500", "502", "503", "408"]


def draw(size: tuple[int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def turn_of(text: str = "Legal actions: left, right", image: np.ndarray | None = None, **place: Any) -> Turn:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if image is not None:
        content.insert(0, {"type": "image", "image": image})
    return Turn([{"role": "user", "content": content}], None, **place)


def some_turns(count: int) -> list[Turn]:
    return [turn_of(f"Question {i}.\nLegal actions: left, right, up", draw((8, 8), i)) for i in range(count)]


def ask(server: FaultServer, *turns: Turn, **options: Any) -> list[Reply]:
    with closing(OpenAIPolicy("m", **{"base_url": server.url, **options})) as policy:
        return policy.reply(turns or [turn_of()])
        policy.close()


def test_a_history_arrives_in_its_order_with_its_replies_between() -> None:
    images = [draw((20, 30), i) for i in range(4)]
    past = [PastTurn(image, f"turn {i}", f"reply {i}") for i, image in enumerate(images[:3])]
    messages = PromptBuilder(3, 3).build("Play.", "turn 3", images[3], past)
    with FaultServer() as server:
        ask(server, Turn(messages, None))
    asked = server.asked[0]
    assert [hash_pixels(picture) for picture in asked.pictures] == [hash_pixels(image) for image in images[1:]]
    parts = [{"type": "image_url", "image_url": {"url": hash_pixels(image)}} for image in images]
    assert [(message["role"], message["content"]) for message in asked.body["messages"]] == [
        ("user", "Play.\n\n(image omitted)\nturn 0"), ("assistant", "reply 0"),
        ("user", [parts[1], {"type": "text", "text": "turn 1"}]), ("assistant", "reply 1"),
        ("user", [parts[2], {"type": "text", "text": "turn 2"}]), ("assistant", "reply 2"),
        ("user", [parts[3], {"type": "text", "text": "turn 3"}]),
    ]  # fmt: skip


def test_every_turn_is_asked_once_and_gets_its_own_answer() -> None:
    with FaultServer(spread=0.02) as server:
        policy = OpenAIPolicy("m", base_url=server.url, concurrency=5)
        builder = PromptBuilder(history_turns=3, history_images=3)
        episodes = list(run_episodes(Runner([make_walk() for _ in range(6)], episodes=12, builder=builder), policy))
        policy.close()
    records = [record for episode in episodes for record in episode]
    arrived = Counter(tuple(map(hash_pixels, asked.pictures)) for asked in server.asked)
    parts = [[part for message in record.messages for part in message["content"]] for record in records]
    drawn = Counter(tuple(hash_pixels(part["image"]) for part in each if part["type"] == "image") for each in parts)
    assert len(episodes) == 12
    assert arrived == drawn
    given = Counter(choose_action(asked.body["messages"], asked.digest) for asked in server.asked)
    assert given == Counter(record.reply for record in records)


def test_options_are_sent_only_where_they_were_given() -> None:
    with FaultServer() as server:
        ask(server)
        ask(server, turn_of(seed=3, env_id="a/B-v0"), temperature=0.5, max_tokens=77, seed=5)
    plain, full = (asked.body for asked in server.asked)
    assert set(plain) == {"model", "messages"}
    place = turn_of(seed=3, env_id="a/B-v0")
    assert (full["temperature"], full["max_tokens"], full["seed"]) == (0.5, 77, make_seed(5, place))


def test_further_options_are_sent_and_described_without_secrets() -> None:
    options = {
        "top_p": 0.9, "reasoning_effort": "low", "chat_template_kwargs.enable_thinking": False, "extra.top_k": 5,
        "extra.headers": {"Authorization": "Bearer hunter2"}, "extra.stop_token_ids": [1, 2],
    }  # fmt: skip
    with FaultServer() as server:
        policy = make_policy(f"openai:m@{server.url}", options)
        assert isinstance(policy, OpenAIPolicy)
        policy.reply([turn_of()])
        policy.close()
    sent = {name: value for name, value in server.asked[0].body.items() if name not in ("model", "messages")}
    assert sent == {
        "top_p": 0.9, "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}, "top_k": 5,
        "headers": {"Authorization": "Bearer hunter2"}, "stop_token_ids": [1, 2],
    }  # fmt: skip
    assert (policy.name, server.asked[0].body["model"]) == ("openai:m", "m")
    assert policy.describe()["options"] == {**sent, "headers": {"Authorization": "[secret]"}}
    assert policy.hide("Bearer hunter2 is wrong") == "[secret] is wrong"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"extra": 5}, "extra must be given as --policy-arg extra.NAME=VALUE, got 5"),
        ({"extra.stream": True}, "extra.stream cannot be set: answers are read as a whole"),
        ({"extra.temperature": 1}, "extra.temperature cannot be set: write --policy-arg temperature=VALUE"),
        ({"extra": {}, "extra.a": 1, "a.b": 2}, "no option a;"), ({"top_p": 2}, "top_p=2 must be >= 0 and <= 1"),
        ({"top_p": 1, "top-p.x": 1}, "--policy-arg top-p.x: top_p has a value already"),
        ({"reasoning_efort": "low"}, "Nearest: reasoning_effort"),
        ({"concurrency": 5000}, "--policy-arg concurrency 5000 must be >= 1 and <= 1024"),
        ({"requests_per_minute": 0}, "--policy-arg requests_per_minute 0 must be > 0"),
        ({"base_url": "http://u:hunter2@[x/v1"}, r"--base-url http://\[x/v1 is not a URL; it must look like http://"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_one_line(options: dict[str, Any], line: str) -> None:
    address = "m" if "base_url" in options else "m@http://me:hunter2@127.0.0.1:1/v1"
    with pytest.raises(UserError, match=line) as caught:
        make_policy(f"openai:{address}", options)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UserError, match="openai:MODEL"):
        OpenAIPolicy(" ")


def test_each_request_has_its_own_seed_in_any_order_of_play() -> None:
    places = [
        {"env_id": "a/B-v0", "seed": 1}, {"env_id": "a/C-v0", "seed": 1}, {"env_id": "a/B-v0", "seed": 2},
        {"env_id": "a/B-v0", "seed": 1, "turn": 1}, {"env_id": "a/B-v0", "seed": 1, "repeat": 1},
    ]  # fmt: skip
    turns = [turn_of(f"{i}. Legal actions: a, b", **place) for i, place in enumerate(places)]
    with FaultServer() as server:
        ask(server, *turns, seed=7)
        ask(server, *reversed(turns), seed=7, concurrency=2)
        ask(server, *turns, seed=8)
    seeds = [asked.body["seed"] for asked in server.asked]
    assert set(seeds[:5]) == set(seeds[5:10])
    assert len(set(seeds)) == 10
    assert all(0 <= seed < 2**31 for seed in seeds)
    by_text = {asked.body["messages"][0]["content"]: asked.body["seed"] for asked in server.asked[5:10]}
    assert [by_text[asked.body["messages"][0]["content"]] for asked in server.asked[:5]] == seeds[:5]


@pytest.mark.parametrize(
    ("kind", "text", "cut", "refused"),
    [
        ("", "I choose", False, False), ("refuse", "I will not help with that.", False, True),
        ("filter", "", False, True), ("empty", "", False, False), ("null", "", False, False),
        ("cut", "I choose", True, False), ("parts", "I choose", False, False), ("reasoning", "I choose", False, False),
    ],
)  # fmt: skip
def test_odd_replies_have_their_kind(kind: str, text: str, cut: bool, refused: bool) -> None:
    with FaultServer(lambda asked: Fault(kind)) as server:
        (reply,) = ask(server)
        whole = choose_action(server.asked[0].body["messages"], server.asked[0].digest)
    assert (reply.cut, reply.refused, reply.text[: len(text)]) == (cut, refused, text)
    assert (reply.text == whole) == (kind in ("", "parts", "reasoning"))
    assert server.counts["requests"] == 1
    assert (reply.text == "") == (not text)


def test_usage_is_the_servers_count_and_our_own_attempts() -> None:
    with FaultServer({0: Fault("500"), 1: Fault("drop")}) as server:
        policy = OpenAIPolicy("m", base_url=server.url)
        (first,) = policy.reply([turn_of()])
        (second,) = policy.reply([turn_of("Legal actions: stay", draw((4, 4)))])
        policy.close()
    assert first.usage is not None
    assert second.usage is not None
    assert (first.usage.attempts, second.usage.attempts) == (3, 1)
    assert first.usage.seconds > 0
    text_only, with_picture = first.usage.prompt_tokens, second.usage.prompt_tokens
    assert with_picture >= 64 > text_only > 0
    assert second.usage.completion_tokens == len(second.text.split())
    assert policy.served_model == "m-0001"


def clean_replies(turns: list[Turn]) -> list[str]:
    with FaultServer() as server:
        return [reply.text for reply in ask(server, *turns)]


def test_what_never_answers_is_asked_again_after_the_timeout() -> None:
    turns = some_turns(4)
    with FaultServer({1: Fault("hang")}) as server:
        replies = ask(server, *turns, timeout=0.5)
    assert [reply.text for reply in replies] == clean_replies(turns)
    assert sorted(reply.usage.attempts for reply in replies if reply.usage) == [1, 1, 1, 2]


def test_an_answer_that_drips_beyond_the_timeout_is_none() -> None:
    with (
        FaultServer(lambda asked: Fault("drip", seconds=0.05)) as server,
        pytest.raises(FailedError, match=r"no answer within 0.2 s \(--policy-arg timeout\)"),
    ):
        ask(server, timeout=0.2, max_retries=1)


def test_a_storm_of_faults_loses_no_turn() -> None:
    turns, faults = some_turns(12), [Fault(kind) for kind in 2 * AGAIN]

    def choose(asked: Asked) -> Fault | None:
        return None if asked.before > 1 else faults.pop()

    with FaultServer(choose, spread=0.02) as server:
        replies = ask(server, *turns, concurrency=4)
    assert [reply.text for reply in replies] == clean_replies(turns)
    assert sum(reply.usage.attempts for reply in replies if reply.usage) == len(server.asked) == 36
    answered = Counter(asked.digest for asked in server.asked if asked.answered)
    assert sorted(answered.values()) == [1] * 12
    assert {*AGAIN} <= server.counts.keys()


def test_when_all_retries_failed_the_line_says_what_the_server_said_last() -> None:
    with (
        FaultServer({0: Fault("drop"), 1: Fault("500"), 2: Fault("503")}) as server,
        pytest.raises(FailedError, match=r"failed 3 time\(s\) in a row, last: 503 trouble 503\. Go on later"),
    ):
        ask(server, max_retries=2)
    assert server.counts["requests"] == 3


@pytest.mark.parametrize(
    "said",
    [
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "This model does not support images.", "this model is missing data required for image input",
        "Unsupported content type: image_url",
    ],
)  # fmt: skip
def test_a_lasting_500_is_tried_once_more_and_says_what_to_change(said: str) -> None:
    with (
        FaultServer(lambda asked: Fault("500", body={"error": {"message": said}})) as server,
        pytest.raises(UserError, match=rf"refuses the request: 500 {said}.*--history-images 0") as caught,
    ):
        ask(server, max_retries=6)
    assert type(caught.value) is UserError
    assert server.counts["requests"] == 2


def test_earlier_answers_survive_a_failure_and_later_turns_are_not_sent() -> None:
    turns = some_turns(6)
    with FaultServer(lambda asked: Fault("500") if asked.number else None) as server:
        policy = OpenAIPolicy("m", base_url=server.url, max_retries=1, concurrency=1)
        futures = [policy.submit(turn) for turn in turns]
        done, _ = concurrent.futures.wait(futures, timeout=10)
        policy.close()
    assert len(done) == 6
    assert futures[0].result().text == clean_replies(turns)[0]
    assert [type(future.exception()) for future in futures[1:]] == [FailedError] * 5
    assert server.counts["requests"] == 3


def test_a_missing_server_ends_the_run_at_once() -> None:
    with FaultServer() as server:
        url = server.url
    with pytest.raises(UserError, match=rf"^No server answers at {url} \(.*\)\. Start it, or correct"):
        ask(server)


def test_a_server_that_went_away_later_is_waited_for() -> None:
    with FaultServer() as server:
        policy = OpenAIPolicy("m", base_url=server.url, max_retries=5)
        policy.reply([turn_of()])
    with closing(policy), pytest.raises(FailedError, match=r"failed 6 time\(s\) in a row, last: "):
        policy.reply([turn_of()])


def test_an_unknown_model_and_a_wrong_address_are_one_line() -> None:
    with FaultServer(model="gpt-tiny") as server, closing(OpenAIPolicy("gpt-tinny", base_url=server.url)) as policy:
        with pytest.raises(UserError, match=r"404 The model `gpt-tinny` does not exist\. Check the model's name and"):
            policy.check()
        with pytest.raises(UserError, match=r"for m: 404 .*Not Found.*Check .* --base-url \(most end"):
            ask(server, base_url=server.url.removesuffix("/v1"))
    assert server.counts["requests"] == 1


def test_a_refused_request_ends_at_once_and_names_the_options() -> None:
    said = "'temperature' does not support 0.5 with this model"
    with (
        FaultServer(refuses={"temperature": said}) as server,
        pytest.raises(UserError, match=f"400 {said}.*--temperature"),
    ):
        ask(server, temperature=0.5)
    assert server.counts["requests"] == 1


def test_a_servers_words_are_one_short_line_without_control_characters() -> None:
    said = "\x1b[31mred\nline\u202e " + "x" * 5000
    with (
        FaultServer({0: Fault("400", body={"error": {"message": said}})}) as server,
        pytest.raises(UserError) as caught,
    ):
        ask(server)
    line = str(caught.value)
    assert "400 [31mred line x" in line
    assert line.isprintable()
    assert len(line) < 500


def test_the_other_name_of_the_token_limit_is_learnt_once() -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with FaultServer(refuses={"max_tokens": said}) as server:
        policy = OpenAIPolicy("m", base_url=server.url, max_tokens=9)
        for turn in some_turns(3):
            policy.reply([turn])
        policy.close()
    names = [sorted(asked.body.keys() - {"model", "messages"}) for asked in server.asked]
    assert names == [["max_tokens"], *[["max_completion_tokens"]] * 3]


@pytest.mark.parametrize("limit", [1, 4])
def test_the_number_of_requests_at_once_is_the_option(limit: int) -> None:
    with FaultServer(latency=0.05) as server:
        ask(server, *some_turns(12), concurrency=limit)
    assert server.most_at_once == limit


def test_the_rate_spaces_requests_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    with FaultServer() as server:
        policy = OpenAIPolicy("m", base_url=server.url, requests_per_minute=30)
        monkeypatch.setattr("vlgym.endpoint.policy.asyncio.sleep", sleep)
        policy.reply(some_turns(3))
        policy.close()
    assert [round(seconds) for seconds in naps if seconds > 1] == [2, 4]


def test_without_a_key_a_local_server_gets_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer() as server:
        ask(server)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ask(server, base_url=None)
    assert [asked.authorization for asked in server.asked] == ["Bearer none"] * 2
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(UserError, match="environment variable OPENAI_API_KEY holds no key"):
        OpenAIPolicy("m")
    with pytest.raises(UserError, match="environment variable MY_KEY holds no key"):
        OpenAIPolicy("m", base_url=server.url, api_key_env="MY_KEY")


def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    with FaultServer(key=SECRET) as server:
        ask(server, api_key_env="MY_KEY")
        assert server.counts["answered"] == 1
        with pytest.raises(UserError, match=r"401 .*No key was sent: OPENAI_API_KEY is not set\.$"):
            ask(server)


def test_a_wrong_key_ends_at_once_and_stands_in_no_line_record_or_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with FaultServer(key="another") as server, closing(OpenAIPolicy("m", base_url=server.url)) as policy:
        with pytest.raises(UserError, match=r"refuses access: 401 Incorrect API key provided: \[secret\]\. Check "
                                            r"the key in OPENAI_API_KEY") as caught:  # fmt: skip
            policy.check()
        with pytest.raises(UserError, match="refuses access"):
            policy.reply(some_turns(3))
    shown = [str(caught.value), repr(caught.getrepr(style="long")), caplog.text]
    shown += [str(policy.describe()), str(policy.describe_session())]
    assert not [text for text in shown if SECRET in text]
    assert len(caplog.text) > 100
    assert server.counts["requests"] == 0


def test_an_addresss_password_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with FaultServer({1: Fault("400", body={"error": {"message": "no pa ss, abc!"}})}) as server:
        url = server.url.replace("//", "//ann:pa%20ss@") + "?token=abc"
        policy = OpenAIPolicy("m", base_url=url)
        policy.reply([turn_of()])
        with pytest.raises(UserError, match=r"400 no \[secret\], \[secret\]!") as caught:
            policy.reply([turn_of()])
        policy.close()
    assert server.asked[0].authorization == "Basic YW5uOnBhIHNz"
    shown = [str(caught.value), str(policy.describe()), str(policy.describe_session()), caplog.text]
    assert not [text for text in shown for word in ("pa%20ss", "pa ss", "ann:") if word in text]
    assert policy.describe_session()["base_url"] == server.url


def test_the_description_holds_what_replies_depend_on_and_nothing_else() -> None:
    policy = OpenAIPolicy("a/m:free", base_url="http://127.0.0.1:1/v1", temperature=0.0, max_tokens=5, seed=3)
    policy.close()
    assert policy.describe() == {
        "name": "openai:a/m:free", "model": "a/m:free", "temperature": 0.0, "max_tokens": 5, "seed": 3,
    }  # fmt: skip
    assert isinstance(policy, AskingPolicy)


def test_a_malformed_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-“quoted”")
    with pytest.raises(UserError, match="OPENAI_API_KEY holds no valid key") as caught:
        OpenAIPolicy("m")
    assert "quoted" not in str(caught.value)


def test_without_the_package_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UserError, match=r"needs the package openai: pip install .*\[eval\]"):
        OpenAIPolicy("m", base_url="http://127.0.0.1:1/v1")


def test_closing_cancels_what_is_under_way_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with FaultServer(lambda asked: Fault("hang")) as server:
        policy = OpenAIPolicy("m", base_url=server.url, concurrency=2)
        futures = [policy.submit(turn) for turn in some_turns(5)]
        while len(server.asked) < 2:
            time.sleep(0.01)
        policy.close()
        policy.close()
    assert all(future.cancelled() for future in futures)
    assert set(threading.enumerate()) <= before
    with pytest.raises(RuntimeError, match="was closed"):
        policy.submit(turn_of())
