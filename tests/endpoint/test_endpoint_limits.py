"""Limits of what a server can take or leave behind: memory, prompts for another host, keys."""

import gzip
import json
import re
import sys
import tracemalloc
import zlib
from pathlib import Path

import httpx2
import pytest
from commands import invoke
from endpoint_asking import TURN, always, ask_once, open_policy
from fault_server import Fault, FaultServer
from toys import installed, make_spec

from vlgym.endpoint.client import is_same_host
from vlgym.env.spaces import MAX_REPLY
from vlgym.errors import FailedError, UserError
from vlgym.evaluation.episodes import Player
from vlgym.evaluation.plan import Part, list_jobs
from vlgym.evaluation.run import write_command
from vlgym.play.policies import ScriptedPolicy
from vlgym.types import StepRecord

KEY = "sk-very-secret-123456"
PATH = "/v1/chat/completions"


def complete(text: str, model: str = "m") -> bytes:
    """A chat completion."""
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"model": model, "choices": [choice]}).encode()


def served(body: bytes, status: int = 200, **headers: str) -> Fault:
    """An answer with these bytes and headers."""
    return Fault(str(status), body=body, headers={name.replace("_", "-"): each for name, each in headers.items()})


def test_an_answer_is_read_up_to_a_limit_that_can_be_chosen() -> None:
    body = complete("x" * 50_000)
    with always(served(body)) as server:
        assert len(ask_once(server.url, max_answer_bytes=len(body)).text) == 50_000
        line = rf"longer than {len(body) - 1} bytes \(--policy-arg max_answer_bytes\)"
        with pytest.raises(FailedError, match=line):
            ask_once(server.url, max_answer_bytes=len(body) - 1)
    with always(served(b" " * 16_000_001)) as server, pytest.raises(FailedError, match="longer"):
        ask_once(server.url)


@pytest.mark.parametrize("status", [200, 302, 400, 500])
def test_no_answer_of_any_status_is_read_beyond_the_limit(status: int) -> None:
    answer = served(b" " * 5_000_000, status, Location=PATH, x_should_retry="false")
    line = "longer than 2000 bytes"
    with always(answer) as server, pytest.raises(FailedError, match=line):
        ask_once(server.url, max_answer_bytes=2000)
    assert len(server.requests) == 1


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, gzip", "gzip, identity"])
def test_a_packed_answer_is_unpacked_up_to_the_limit_and_never_held_as_a_whole(coding: str) -> None:
    def pack(body: bytes) -> Fault:
        for each in coding.split(", "):
            body = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}[each](body)
        return served(body, Content_Encoding=coding)

    with always(pack(complete("hello"))) as server:
        assert ask_once(server.url).text == "hello"

    # The text alone would take 20 MB.
    bomb = pack(complete("x" * 20_000_000))
    line = "longer than 1000000 bytes when unpacked"
    tracemalloc.start()
    try:
        with always(bomb) as server, pytest.raises(FailedError, match=line):
            ask_once(server.url, max_answer_bytes=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("coding", "body"), [("br", b"x"), ("gzip", b"x"), ("zstd", b"")])
def test_an_answer_that_cannot_be_unpacked_is_told_in_a_line(coding: str, body: bytes) -> None:
    with always(served(body, Content_Encoding=coding)) as server, pytest.raises(FailedError):
        ask_once(server.url)


@pytest.mark.parametrize(("text", "cut", "parse"), [
    (f"{'x' * 1_000_000}<action>right</action>", True, "no_action"),
    (f"<action>right</action>{'x' * 1_000_000}", False, "ok"),
    ("x" * MAX_REPLY, False, "no_action"),
], ids=["action last", "action first", "as long as can be"])  # fmt: skip
def test_a_reply_in_a_record_is_cut_where_the_parser_stops(text: str, cut: bool, parse: str) -> None:
    done: list[StepRecord] = []
    with installed(make_spec()):
        jobs = list_jobs([Part("vlgym/Walk-v0", episodes=1)])
        Player(jobs, ScriptedPolicy([text]), num_envs=1, on_episode=done.extend).play()
    assert {(len(each.reply) + len(each.after), each.cut, each.parse) for each in done} == {(MAX_REPLY, cut, parse)}
    parts = [part for record in done for each in record.messages for part in each["content"]]
    assert max(len(part.get("text", "")) for part in parts) <= MAX_REPLY


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_prompts_do_not_follow_to_another_host(status: int) -> None:
    with FaultServer() as other:
        same_machine = f"{other.url}/chat/completions"  # another port is another server
        for place in (same_machine, same_machine.replace("127.0.0.1", "localhost")):
            line = r"sends on to http://.*which gets no prompts.*--base-url"
            answer = served(b"", status, Location=place)
            with always(answer) as server, pytest.raises(UserError, match=line):
                ask_once(server.url)
    assert other.requests == []


@pytest.mark.parametrize(
    ("place", "same"), [("http://h:8000/x", True), ("https://h/x", True), ("http://h/x", False),
                        ("http://g:8000/x", False), ("https://g/x", False), ("https://h:8000/x", False)],
)  # fmt: skip
def test_the_same_host_is_the_same_name_and_port_or_its_https(place: str, same: bool) -> None:
    assert is_same_host(httpx2.URL("http://h:8000/v1"), httpx2.URL(place)) == same


def test_a_redirect_of_the_same_host_is_followed_and_a_circle_ends() -> None:
    answer = served(b"", 307, Location=f"{PATH}?again")
    with FaultServer({0: answer}) as server:
        assert ask_once(server.url).status == "model"
        assert server.requests[0].body == server.requests[1].body
    with always(answer) as server, pytest.raises(UserError, match="sends on"):
        ask_once(server.url)
    assert len(server.requests) < 20


def test_secrets_are_hidden_before_shortening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answers: list[Fault] = []
    with FaultServer(lambda request: answers.pop()) as server:
        for front in ("." * 212, "." * 226, "." * 236, " " * 950):  # blanks are shown as one
            text = front + KEY + "." * 300
            shape = json.dumps({"choices": text}).encode()
            answers += [served(text.encode()), served(shape), served(text.encode(), 400)]
            while answers:
                with pytest.raises(UserError) as caught:
                    ask_once(server.url)
                assert KEY[:6] not in str(caught.value), front


@pytest.mark.parametrize(
    ("model", "pattern"),
    [(f"m-{KEY}-p%40ss word", r"m-\[secret\]-p%40ss word"), ("." * 228 + KEY, r"\.+.{0,8}")],
    ids=["short", "long"],
)
def test_the_served_model_is_named_without_the_key(monkeypatch: pytest.MonkeyPatch, model: str, pattern: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer, login = served(complete("x", model)), "://user:p%40ss%20word@"
    with always(answer) as server, open_policy(server.url.replace("://", login)) as policy:
        policy.reply([TURN])
    assert re.fullmatch(pattern, policy.describe_session()["served_model"])
    assert KEY[:4] not in policy.describe_session()["served_model"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--base-url", "http://user:p/w@h:80/v1?key=abc#x"], "--base-url http://h:80/v1"),
        (["--base-url=https://user:pw@h/v1"], "--base-url=https://h/v1"),
        (["m.api_key=abc", "apiKey=abc"], "'m.api_key=[secret]' 'apiKey=[secret]'"),
        (["--accesskey", "abc"], "--accesskey '[secret]'"),
        (["--dbpassword", "abc"], "--dbpassword '[secret]'"),
        (["--my-secret-value", "abc", "me:pw@h:80"], "--my-secret-value '[secret]' h:80"),
        (["openai:m@http://u:pw@h/v1"], "openai:m@http://h/v1"),
        (["--token", "abc", "extra.top_k=5"], "--token '[secret]' extra.top_k=5"),
        (['headers={"Authorization": "Bearer abc"}'], """'headers={"Authorization":[secret]'"""),
        ([f"model={KEY}"], "'model=[secret]'"),
        (["x=hunter2hunter2", "y=z"], "'x=[secret]' y=z"),
        (["--api-key-env", "NAME", "--max-tokens", "9"], "--api-key-env NAME --max-tokens 9"),
        (["monkey=1", "ray://h:1", "hf:Qwen/Qwen2.5-VL"], "monkey=1 ray://h:1 hf:Qwen/Qwen2.5-VL"),
    ],
)
def test_a_command_is_written_down_without_its_secrets(words: list[str], expected: str) -> None:
    variables = {"MY_PASSWORD": "hunter2hunter2", "KEY": "9", "HOME": "NAME"}
    assert write_command(words, variables) == expected


def test_a_record_holds_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "correct-horse-battery")
    body, out = complete("<action>left</action>", "m-correct-horse-battery"), tmp_path / "correct-horse"
    with always(served(body)) as server:
        url = server.url.replace("://", "://user:staple@") + "?sig=zebra"
        options = ["--base-url", url, "--policy-arg", "api_key_env=MINE", "--out", str(out)]
        words = ["eval", "--policy", "openai:m", "--env", "vlgym/NumberLine-v1", "--episodes", "1"]
        monkeypatch.setattr(sys, "argv", ["vlgym", *words, "--no-probe", *options])
        invoke(*words, "--no-probe", *options)
    record = (out / "run.json").read_text()
    assert f"--base-url {server.url} --policy-arg api_key_env=MINE" in record
    assert [word for word in ("horse-battery", "staple", "zebra") if word in record] == []
