"""Limits of what a server can take or leave behind: memory, prompts for another host, keys."""

import gzip
import json
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from commands import invoke
from endpoint_asking import TURN, ask_once, open_policy
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
Answer = tuple[int, dict[str, str], bytes]


def complete(text: str, model: str = "m") -> bytes:
    """A chat completion."""
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json.dumps({"model": model, "choices": [choice]}).encode()


class Server(ThreadingHTTPServer):
    """Answers by a function of the path (status, headers, body) and records requests."""

    daemon_threads = True
    calls: list[tuple[str, bytes]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextmanager
def serve(answer: Callable[[str], Answer]) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.calls.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:  # whoever asked has read enough
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.calls = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def test_an_answer_is_read_up_to_a_limit_that_can_be_chosen() -> None:
    body = complete("x" * 50_000)
    with serve(lambda _: (200, {}, body)) as server:
        assert len(ask_once(server.url, max_answer_bytes=len(body)).text) == 50_000
        line = rf"longer than {len(body) - 1} bytes \(--policy-arg max_answer_bytes\)"
        with pytest.raises(FailedError, match=line):
            ask_once(server.url, max_answer_bytes=len(body) - 1)
    body = b" " * 16_000_001
    with serve(lambda _: (200, {}, body)) as server, pytest.raises(FailedError, match="longer"):
        ask_once(server.url)


@pytest.mark.parametrize("status", [200, 302, 400, 500])
def test_no_answer_of_any_status_is_read_beyond_the_limit(status: int) -> None:
    answer = (status, {"Location": PATH, "x-should-retry": "false"}, b" " * 5_000_000)
    line = "longer than 2000 bytes"
    with serve(lambda _: answer) as server, pytest.raises(FailedError, match=line):
        ask_once(server.url, max_answer_bytes=2000)
    assert len(server.calls) == 1


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, gzip", "gzip, identity"])
def test_a_packed_answer_is_unpacked_up_to_the_limit(coding: str) -> None:
    def pack(body: bytes) -> Answer:
        for each in coding.split(", "):
            body = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}[each](body)
        return 200, {"Content-Encoding": coding}, body

    with serve(lambda _: pack(complete("hello"))) as server:
        assert ask_once(server.url).text == "hello"
    bomb = pack(complete("x" * 3_000_000))
    assert len(bomb[2]) < 20_000
    line = "longer than 1000000 bytes when unpacked"
    with serve(lambda _: bomb) as server, pytest.raises(FailedError, match=line):
        ask_once(server.url, max_answer_bytes=1_000_000)


def test_a_packed_answer_is_never_held_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Unpack:
        def decompress(self, data: bytes, most: int = 0) -> bytes:
            made.append(most)
            return b""

    monkeypatch.setattr("vlgym.endpoint.client.zlib.decompressobj", lambda _: Unpack())
    answer = (200, {"Content-Encoding": "gzip"}, b"x")
    with serve(lambda _: answer) as server, pytest.raises(FailedError):
        ask_once(server.url, max_answer_bytes=4000)
    assert made == [4001]


@pytest.mark.parametrize(("coding", "body"), [("br", b"x"), ("gzip", b"x"), ("zstd", b"")])
def test_an_answer_that_cannot_be_unpacked_is_told_in_a_line(coding: str, body: bytes) -> None:
    answer = (200, {"Content-Encoding": coding}, body)
    with serve(lambda _: answer) as server, pytest.raises(FailedError):
        ask_once(server.url)


@pytest.mark.parametrize(
    ("text", "cut", "parse"),
    [
        (f"{'x' * 1_000_000}<action>right</action>", True, "no_action"),
        (f"<action>right</action>{'x' * 1_000_000}", False, "ok"),
        ("x" * MAX_REPLY, False, "no_action"),
    ],
    ids=["action last", "action first", "as long as can be"],
)
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
    with serve(lambda _: (200, {}, complete("taken"))) as other:
        named = other.url.replace("127.0.0.1", "localhost") + "/chat/completions"
        for place in (named, f"{other.url}/"):  # another port is another server
            line = r"sends on to http://.*which gets no prompts.*--base-url"
            answer = (status, {"Location": place}, b"")
            with serve(lambda _, answer=answer: answer) as server, pytest.raises(UserError, match=line):
                ask_once(server.url)
    assert other.calls == []


@pytest.mark.parametrize(
    ("place", "same"), [("http://h:8000/x", True), ("https://h/x", True), ("http://h/x", False),
                        ("http://g:8000/x", False), ("https://g/x", False), ("https://h:8000/x", False)],
)  # fmt: skip
def test_the_same_host_is_the_same_name_and_port_or_its_https(place: str, same: bool) -> None:
    assert is_same_host(httpx2.URL("http://h:8000/v1"), httpx2.URL(place)) == same


def test_a_redirect_of_the_same_host_is_followed_and_a_circle_ends() -> None:
    def answer(path: str) -> Answer:
        here = (200, {}, complete("here"))
        return (307, {"Location": f"{PATH}/"}, b"") if path == PATH else here

    with serve(answer) as server:
        assert ask_once(server.url).text == "here"
        assert server.calls[0][1] == server.calls[1][1]
    with serve(lambda path: (307, {"Location": path}, b"")) as server, pytest.raises(UserError, match="sends on"):
        ask_once(server.url)
    assert len(server.calls) < 20


def test_secrets_are_hidden_before_shortening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answers: list[Answer] = []
    with serve(lambda _: answers.pop()) as server:
        for front in ("." * 212, "." * 226, "." * 236, " " * 950):  # blanks are shown as one
            text = front + KEY + "." * 300
            shape = json.dumps({"choices": text}).encode()
            answers += [(200, {}, text.encode()), (200, {}, shape), (400, {}, text.encode())]
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
    answer, login = (200, {}, complete("x", model)), "://user:p%40ss%20word@"
    with serve(lambda _: answer) as server, open_policy(server.url.replace("://", login)) as policy:
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
    with serve(lambda _: (200, {}, body)) as server:
        url = server.url.replace("://", "://user:staple@") + "?sig=zebra"
        options = ["--base-url", url, "--policy-arg", "api_key_env=MINE", "--out", str(out)]
        words = ["eval", "--policy", "openai:m", "--env", "vlgym/NumberLine-v1", "--episodes", "1"]
        monkeypatch.setattr(sys, "argv", ["vlgym", *words, "--no-probe", *options])
        invoke(*words, "--no-probe", *options)
    record = (out / "run.json").read_text()
    assert f"--base-url {server.url} --policy-arg api_key_env=MINE" in record
    assert [word for word in ("horse-battery", "staple", "zebra") if word in record] == []
