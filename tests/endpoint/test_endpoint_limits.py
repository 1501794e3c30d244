"""Limits of what a server can take or leave behind: memory, prompts for another host, keys."""

from __future__ import annotations

import gzip
import json
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from commands import invoke
from toys import installed, make_spec, make_walk

from vlgym.endpoint.client import is_same_host
from vlgym.endpoint.policy import OpenAIPolicy
from vlgym.env.spaces import MAX_REPLY
from vlgym.errors import FailedError, UserError
from vlgym.evaluation.episodes import Player
from vlgym.evaluation.plan import Part, list_jobs
from vlgym.evaluation.run import write_command
from vlgym.play.policies import ScriptedPolicy
from vlgym.play.rollout import Runner
from vlgym.types import Reply, StepRecord, Turn

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
    asked: list[tuple[str, bytes]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextmanager
def serve(answer: Callable[[str], Answer]) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.asked.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
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
    server.asked = []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def ask(url: str, **options: Any) -> tuple[Reply, OpenAIPolicy]:
    """Ask once; the policy is closed."""
    messages = [{"role": "user", "content": [{"type": "text", "text": "Go."}]}]
    with closing(OpenAIPolicy("m", base_url=url, **{"max_retries": 0, **options})) as policy:
        return policy.reply([Turn(messages, None)])[0], policy


def test_an_answer_is_read_up_to_a_limit_that_can_be_chosen() -> None:
    body = complete("x" * 50_000)
    with serve(lambda _: (200, {}, body)) as server:
        assert len(ask(server.url, max_answer_bytes=len(body))[0].text) == 50_000
        with pytest.raises(FailedError, match=rf"longer than {len(body) - 1} bytes \(--policy-arg max_answer_bytes\)"):
            ask(server.url, max_answer_bytes=len(body) - 1)
    with serve(lambda _: (200, {}, b" " * 16_000_001)) as server, pytest.raises(FailedError, match="longer"):
        ask(server.url)


@pytest.mark.parametrize("status", [200, 302, 400, 500])
def test_no_answer_of_any_status_is_read_beyond_the_limit(status: int) -> None:
    with (
        serve(lambda _: (status, {"Location": PATH, "x-should-retry": "false"}, b" " * 5_000_000)) as server,
        pytest.raises(FailedError, match="longer than 2000 bytes"),
    ):
        ask(server.url, max_answer_bytes=2000)
    assert len(server.asked) == 1


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, gzip", "gzip, identity"])
def test_a_packed_answer_is_unpacked_up_to_the_limit(coding: str) -> None:
    def pack(body: bytes) -> Answer:
        for each in coding.split(", "):
            body = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}[each](body)
        return 200, {"Content-Encoding": coding}, body

    with serve(lambda _: pack(complete("hello"))) as server:
        assert ask(server.url)[0].text == "hello"
    bomb = pack(complete("x" * 3_000_000))
    assert len(bomb[2]) < 20_000
    with serve(lambda _: bomb) as server, pytest.raises(FailedError, match="longer than 1000000 bytes when unpacked"):
        ask(server.url, max_answer_bytes=1_000_000)


def test_a_packed_answer_is_never_held_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Unpack:
        def decompress(self, data: bytes, most: int = 0) -> bytes:
            made.append(most)
            return b""

    monkeypatch.setattr("vlgym.endpoint.client.zlib.decompressobj", lambda _: Unpack())
    with serve(lambda _: (200, {"Content-Encoding": "gzip"}, b"x")) as server, pytest.raises(FailedError):
        ask(server.url, max_answer_bytes=4000)
    assert made == [4001]


@pytest.mark.parametrize(("coding", "body"), [("br", b"x"), ("gzip", b"x"), ("zstd", b"")])
def test_an_answer_that_cannot_be_unpacked_is_told_in_a_line(coding: str, body: bytes) -> None:
    with serve(lambda _: (200, {"Content-Encoding": coding}, body)) as server, pytest.raises(FailedError):
        ask(server.url)


class Long:
    """Answers at great length: the action at the end, or at the beginning."""

    name = "long"

    def __init__(self, first: str = "") -> None:
        self.first = first

    def reply(self, turns: list[Turn]) -> list[Reply]:
        return [Reply(f"{self.first}{'x' * 1_000_000}<action>right</action>") for _ in turns]


def test_a_reply_in_a_record_is_cut_where_the_parser_stops_and_marked() -> None:
    runner = Runner([make_walk()], episodes=1)
    first, second = runner.step(Long())[0], runner.step(Long())[0]
    assert (first.reply, first.cut, first.parse) == ("x" * MAX_REPLY, True, "no_action")
    texts = [part.get("text", "") for message in second.messages for part in message["content"]]
    assert max(map(len, texts)) <= MAX_REPLY
    (whole,) = runner.step(ScriptedPolicy(["x" * MAX_REPLY]))
    assert not whole.cut


@pytest.mark.parametrize("first", ["", "<action>right</action>"])
def test_an_evaluation_keeps_no_more_of_a_reply_either(first: str) -> None:
    done: list[StepRecord] = []
    spec = make_spec()
    with installed(spec):
        Player(list_jobs([Part(spec.id, episodes=1)]), Long(first), num_envs=1, on_episode=done.extend).play()
    assert all(len(record.reply) + len(record.after) == MAX_REPLY for record in done)
    assert all((record.cut, record.parse) == ((False, "ok") if first else (True, "no_action")) for record in done)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_prompts_do_not_follow_to_another_host(status: int) -> None:
    with serve(lambda _: (200, {}, complete("taken"))) as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost") + "/chat/completions"
        with (
            serve(lambda _: (status, {"Location": elsewhere}, b"")) as server,
            pytest.raises(UserError, match=r"sends on to http://localhost:.*which gets no prompts.*--base-url"),
        ):
            ask(server.url)
        with serve(lambda _: (status, {"Location": f"{other.url}/"}, b"")) as server, pytest.raises(UserError):
            ask(server.url)  # another port is another server
    assert other.asked == []


@pytest.mark.parametrize(
    ("place", "same"), [("http://h:8000/x", True), ("https://h/x", True), ("http://h/x", False),
                        ("http://g:8000/x", False), ("https://g/x", False), ("https://h:8000/x", False)],
)  # fmt: skip
def test_the_same_host_is_the_same_name_and_port_or_its_https(place: str, same: bool) -> None:
    assert is_same_host(httpx2.URL("http://h:8000/v1"), httpx2.URL(place)) == same


def test_a_redirect_of_the_same_host_is_followed_and_a_circle_ends() -> None:
    def answer(path: str) -> Answer:
        return (307, {"Location": f"{PATH}/"}, b"") if path == PATH else (200, {}, complete("here"))

    with serve(answer) as server:
        assert ask(server.url)[0].text == "here"
        assert server.asked[0][1] == server.asked[1][1]
    with serve(lambda path: (307, {"Location": path}, b"")) as server, pytest.raises(UserError, match="sends on"):
        ask(server.url)
    assert len(server.asked) < 20


def test_secrets_are_hidden_before_shortening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answers: list[Answer] = []
    with serve(lambda _: answers[-1]) as server:
        for front in (*("." * count for count in (212, 226, 236)), " " * 950):  # blanks are shown as one
            said = front + KEY + "." * 300
            shape = json.dumps({"choices": said})
            answers += [(200, {}, said.encode()), (200, {}, shape.encode()), (400, {}, said.encode())]
            while answers:
                with pytest.raises(UserError) as caught:
                    ask(server.url)
                assert KEY[:6] not in str(caught.value), (front, answers[-1][0])
                answers.pop()


def test_the_served_model_is_named_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve(lambda _: (200, {}, complete("x", f"m-{KEY}-{'p%40ss word'}"))) as server:
        url = server.url.replace("://", "://user:p%40ss%20word@")
        _, policy = ask(url)
    assert policy.served_model == "m-[secret]-p%40ss word"
    with serve(lambda _: (200, {}, complete("x", "." * 228 + KEY))) as server:
        assert KEY[:4] not in ask(server.url)[1].describe_session()["served_model"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--base-url", "http://user:p/w@h:80/v1?key=abc#x"], "--base-url http://h:80/v1"),
        (["--base-url=https://user:pw@h/v1"], "--base-url=https://h/v1"),
        (["--policy-arg", "m.api_key=abc", "apiKey=abc"], "--policy-arg 'm.api_key=[secret]' 'apiKey=[secret]'"),
        (["--accesskey", "abc", "--dbpassword", "abc"], "--accesskey '[secret]' --dbpassword '[secret]'"),
        (["--my-secret-value", "abc", "me:pw@h:80"], "--my-secret-value '[secret]' h:80"),
        (["openai:m@http://u:pw@h/v1", "openai:m@https://h/v1"], "openai:m@http://h/v1 openai:m@https://h/v1"),
        (["--policy-arg", "extra.api_key=abc", "extra.top_k=5"], "--policy-arg 'extra.api_key=[secret]' extra.top_k=5"),
        (["--token", "abc", "--api-key", "abc"], "--token '[secret]' --api-key '[secret]'"),
        (['headers={"Authorization": "Bearer abc"}'], """'headers={"Authorization":[secret]'"""),
        ([f"model={KEY}"], "'model=[secret]'"),
        (["x=hunter2hunter2", "y=z"], "'x=[secret]' y=z"),
        (
            ["--api-key-env", "NAME", "--max-tokens", "9", "monkey=1", "--envs", "ray://h:1", "hf:Qwen/Qwen2.5-VL-7B"],
            "--api-key-env NAME --max-tokens 9 monkey=1 --envs ray://h:1 hf:Qwen/Qwen2.5-VL-7B",
        ),
    ],
)
def test_a_command_is_written_down_without_its_secrets(words: list[str], expected: str) -> None:
    assert write_command(words, {"MY_PASSWORD": "hunter2hunter2", "KEY": "9", "HOME": "NAME"}) == expected


def test_a_record_holds_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "correct-horse-battery")
    with serve(lambda _: (200, {}, complete("<action>left</action>", "m-correct-horse-battery"))) as server:
        url = server.url.replace("://", "://user:staple@") + "?sig=zebra"
        words = [
            "eval", "--policy", "openai:m", "--base-url", url, "--policy-arg", "api_key_env=MINE",
            "--env", "vlgym/NumberLine-v1", "--episodes", "1", "--no-probe",
            "--out", str(tmp_path / "correct-horse-battery"),
        ]  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["vlgym", *words])
        invoke(*words)
    record = (tmp_path / "correct-horse-battery" / "run.json").read_text()
    assert f"--base-url http://127.0.0.1:{server.server_port}/v1 --policy-arg api_key_env=MINE" in record
    assert [each for each in ("horse", "staple", "zebra") if each in record] == []
