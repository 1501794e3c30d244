"""The policy `openai:MODEL` against a real server on loopback: requests, options, keys."""

import logging
import sys
import threading
import time
from contextlib import closing
from typing import Any

import pytest
from endpoint_asking import TURN, always, ask, draw, make_turn, make_turns, open_policy, refuse
from fault_server import FaultServer, hash_pixels

from vlgym.endpoint.policy import OpenAIPolicy, make_seed
from vlgym.env.prompts import PastTurn, PromptBuilder
from vlgym.errors import UserError
from vlgym.evaluation.policy_names import make_policy
from vlgym.play.policies import AskingPolicy
from vlgym.types import Turn

SECRET = "sk-very-secret-123456"


def test_a_history_arrives_in_its_order_with_its_replies_between() -> None:
    images = [draw((20, 30), i) for i in range(4)]
    past = [PastTurn(image, f"turn {i}", f"reply {i}") for i, image in enumerate(images[:3])]
    messages = PromptBuilder(3, 3).build("Play.", "turn 3", images[3], past)
    front = {"type": "text", "text": "front"}
    messages[-1]["content"].insert(0, front)
    messages[-2]["content"].insert(0, front)
    with FaultServer() as server:
        ask(server.url, Turn(messages, None))
    urls = [{"type": "image_url", "image_url": {"url": hash_pixels(image)}} for image in images]
    sent = server.requests[0].body["messages"]
    assert [(message["role"], message["content"]) for message in sent] == [
        ("user", "Play.\n\n(image omitted)\nturn 0"), ("assistant", "reply 0"),
        ("user", [urls[1], {"type": "text", "text": "turn 1"}]), ("assistant", "reply 1"),
        ("user", [urls[2], {"type": "text", "text": "turn 2"}]), ("assistant", "front\nreply 2"),
        ("user", [front, urls[3], {"type": "text", "text": "turn 3"}]),
    ]  # fmt: skip


def test_options_are_sent_and_described_only_where_they_were_given() -> None:
    place, options = make_turn(seed=3, env_id="a/B-v0"), {"temperature": 0.0, "max_tokens": 77, "seed": 5}
    with FaultServer() as server:
        ask(server.url)
        with closing(OpenAIPolicy("a/m:free", base_url=server.url, **options)) as policy:
            policy.reply([place])
    plain, full = (request.body for request in server.requests)
    assert set(plain) == {"model", "messages"}
    del full["messages"]
    assert full == {"model": "a/m:free", **options, "seed": make_seed(5, place)}
    assert policy.describe() == {"name": "openai:a/m:free", "model": "a/m:free", **options}
    assert isinstance(policy, AskingPolicy)


def test_further_options_are_sent_and_described_without_secrets() -> None:
    options = {
        "top_p": 0.9, "reasoning_effort": "low", "chat_template_kwargs.enable_thinking": False,
        "extra.top_k": 5, "extra.headers": {"Authorization": "Bearer hunter2"},
    }  # fmt: skip
    with FaultServer() as server:
        policy = make_policy(f"openai:m@{server.url}", options)
        assert isinstance(policy, OpenAIPolicy)
        policy.reply([TURN])
        policy.close()
    sent = server.requests[0].body
    assert (policy.name, sent.pop("model")) == ("openai:m", "m")
    del sent["messages"]
    assert sent == {
        "top_p": 0.9, "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False},
        "top_k": 5, "headers": {"Authorization": "Bearer hunter2"},
    }  # fmt: skip
    description = {**sent, "headers": {"Authorization": "[secret]"}}
    assert policy.describe()["options"] == description
    assert policy.hide("Bearer hunter2 is wrong") == "[secret] is wrong"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"extra": 5}, "extra must be given as --policy-arg extra.NAME=VALUE, got 5"),
        ({"extra.stream": True}, "extra.stream cannot be set: answers are read as a whole"),
        ({"extra.temperature": 1}, "extra.temperature cannot be set: write --policy-arg temp"),
        ({"extra": {}, "extra.a": 1, "a.b": 2}, "no option a;"),
        ({"top_p": 2}, "top_p=2 must be >= 0 and <= 1"),
        ({"top_p": 1, "top-p.x": 1}, "--policy-arg top-p.x: top_p has a value already"),
        ({"reasoning_efort": "low"}, "Nearest: reasoning_effort"),
        ({"concurrency": 5000}, "--policy-arg concurrency 5000 must be >= 1 and <= 1024"),
        ({"requests_per_minute": 0}, "--policy-arg requests_per_minute 0 must be > 0"),
        ({"base_url": "http://u:hunter2@[x/v1"}, r"--base-url http://\[x/v1 is not a URL; it must"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Any], line: str) -> None:
    address = "m" if "base_url" in options else "m@http://me:hunter2@127.0.0.1:1/v1"
    with pytest.raises(UserError, match=line) as caught:
        make_policy(f"openai:{address}", options)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UserError, match="openai:MODEL"):
        OpenAIPolicy(" ")


def test_each_request_has_its_own_seed_in_any_order_of_play() -> None:
    first = {"env_id": "a/B-v0", "seed": 1}
    changes = ({}, {"env_id": "a/C-v0"}, {"seed": 2}, {"turn": 1}, {"repeat": 1})
    turns = [make_turn(f"{i}.", **{**first, **change}) for i, change in enumerate(changes)]
    with FaultServer() as server:
        ask(server.url, *turns, seed=7)
        ask(server.url, *reversed(turns), seed=7, concurrency=2)
        ask(server.url, *turns, seed=8)
    sent = [(request.digest, request.body["seed"]) for request in server.requests]
    assert set(sent[:5]) == set(sent[5:10])
    seeds = {seed for _, seed in sent}
    assert len(seeds) == 10
    assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.parametrize("limit", [1, 4])
def test_the_number_of_requests_at_once_is_the_option(limit: int) -> None:
    with FaultServer(latency=0.05) as server:
        ask(server.url, *make_turns(8), concurrency=limit)
    assert server.most_at_once == limit


def test_the_rate_spaces_requests_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        naps.append(seconds)

    with FaultServer() as server, open_policy(server.url, requests_per_minute=30) as policy:
        monkeypatch.setattr("vlgym.endpoint.policy.asyncio.sleep", sleep)
        policy.reply(make_turns(3))
    assert [round(seconds) for seconds in naps if seconds > 1] == [2, 4]


def test_an_address_may_end_as_requests_do() -> None:
    with FaultServer() as server:
        for end in ("/chat/completions", "/chat/completions/", "/"):
            ask(server.url + end)
    assert server.counts["answered"] == 3


def test_a_key_is_that_of_the_named_variable_or_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    with FaultServer() as server:
        ask(server.url)
        ask(server.url, api_key_env="MY_KEY")
        with pytest.raises(UserError, match="environment variable NO_KEY holds no key"):
            ask(server.url, api_key_env="NO_KEY")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ask(None)
    assert [each.authorization.split()[1] for each in server.requests] == ["none", SECRET, "none"]
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(UserError, match="environment variable OPENAI_API_KEY holds no key"):
        OpenAIPolicy("m")
    line = r"401 .*No key was sent: OPENAI_API_KEY is not set\.$"
    with FaultServer(key=SECRET) as server, pytest.raises(UserError, match=line):
        ask(server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-“quoted”")
    with pytest.raises(UserError, match="OPENAI_API_KEY holds no valid key") as caught:
        OpenAIPolicy("m")
    assert "quoted" not in str(caught.value)


def test_a_wrong_key_ends_at_once_and_stands_in_no_line_record_or_log(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    line = r"refuses access: 401 Incorrect API key provided: \[secret\]\. Check the key in OPENAI_"
    with FaultServer(key="another") as server, open_policy(server.url) as policy:
        with pytest.raises(UserError, match=line) as caught:
            policy.check()
        with pytest.raises(UserError, match="refuses access"):
            policy.reply(make_turns(3))
    texts = [str(caught.value), repr(caught.getrepr(style="long")), caplog.text]
    texts += [str(policy.describe()), str(policy.describe_session())]
    assert not [text for text in texts if SECRET in text]
    assert len(caplog.text) > 100
    assert server.counts["requests"] == 0


def test_an_addresss_password_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with FaultServer({1: refuse("no pa ss, abc!")}) as server:
        url = server.url.replace("//", "//ann:pa%20ss@") + "?token=abc"
        with open_policy(url) as policy:
            policy.reply([TURN])
            with pytest.raises(UserError, match=r"400 no \[secret\], \[secret\]!") as caught:
                policy.reply([TURN])
    assert server.requests[0].authorization == "Basic YW5uOnBhIHNz"
    described = f"{policy.describe()} {policy.describe_session()}"
    text = f"{caught.value} {described} {caplog.text}"
    assert [word for word in ("pa%20ss", "pa ss", "ann:") if word in text] == []
    assert policy.describe_session()["base_url"] == server.url


def test_without_the_package_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UserError, match=r"needs the package openai: pip install .*\[eval\]"):
        OpenAIPolicy("m", base_url="http://127.0.0.1:1/v1")


def test_closing_cancels_what_is_under_way_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with always("hang") as server, open_policy(server.url, concurrency=2) as policy:
        futures = [policy.submit(turn) for turn in make_turns(5)]
        while len(server.requests) < 2:
            time.sleep(0.01)
        policy.close()
    assert all(future.cancelled() for future in futures)
    assert set(threading.enumerate()) <= before
    with pytest.raises(RuntimeError, match="was closed"):
        policy.submit(TURN)
