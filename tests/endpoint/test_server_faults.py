"""Faults of servers in `vlgym eval`: fault, status in the record, and the report's words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest
from commands import Output, invoke
from fault_server import Fault, FaultServer
from toys import installed, make_spec

from vlgym.endpoint.client import find_proxy, is_own
from vlgym.endpoint.completion import BadAnswerError, find_status, read_answer
from vlgym.endpoint.policy import OpenAIPolicy
from vlgym.endpoint.secrets import make_hide
from vlgym.env.spaces import MAX_REPLY
from vlgym.errors import FailedError, UserError
from vlgym.integrations.agent import Task, play
from vlgym.parsers import get_parser, read_reply
from vlgym.play.trajectory import read_trajectories
from vlgym.types import Reply, Turn

WALK = make_spec(max_turns=4)
LONG = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
TOO_LONG = Fault("400", body={"error": {"message": LONG, "code": "context_length_exceeded"}})
INSPECTED = Fault("400", body={"error": {"message": "no", "code": "data_inspection_failed"}})
TURN = Turn([{"role": "user", "content": [{"type": "text", "text": "Legal actions: left, right"}]}], None)


@pytest.fixture(autouse=True)
def walk() -> Iterator[None]:
    with installed(WALK):
        yield


def evaluate(out: Path, url: str, *more: str, status: int = 0) -> Output:
    """Evaluate what answers at an address on two episodes."""
    words = ["eval", "--policy", f"openai:m@{url}", "--env", WALK.id, "--episodes", "2", "--no-probe", "--out", out]
    return invoke(*words, "--policy-arg", "max_retries=1", *more, status=status)


def ask(url: str, turn: Turn = TURN, **options: Any) -> Reply:
    with closing(OpenAIPolicy("m", base_url=url, **{"max_retries": 0, **options})) as policy:
        return policy.reply([turn])[0]


FILTERED = Fault("400", body={"error": {"message": "The prompt was filtered.", "code": "content_filter"}})
TOO_LONG_422 = Fault("422", body={"detail": "The prompt is too long"})
ANSWERED = [  # fault, status, whether the action is read
    ("", "model", True), ("in_reasoning_content", "reasoning_only", True), ("in_reasoning", "reasoning_only", True),
    ("half_thought", "reasoning_only", False), ("cut_thought", "model", False), ("thoughts", "model", True),
    ("tool_call", "tool_call", True), ("function_call", "tool_call", True), ("output_text", "model", True),
    ("thinking_part", "model", True), ("responses", "model", True), ("no_reason", "model", True),
    ("end_turn", "model", True), ("window", "model", True), ("repetition", "model", True),
    ("filter", "filtered", False), ("sensitive", "filtered", False), (INSPECTED, "filtered", False),
    (FILTERED, "filtered", False), ("shape", "refused", False), ("error_too_long", "refused", False),
    (TOO_LONG, "refused", False), (TOO_LONG_422, "refused", False),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "status", "read"), ANSWERED, ids=lambda value: str(value)[:24])
def test_an_answer_has_its_status(fault: Any, status: str, read: bool) -> None:
    fault = fault if isinstance(fault, Fault) else Fault(fault)
    with FaultServer(lambda asked: fault) as server:
        reply = ask(server.url, max_retries=1)
    assert reply.status == status
    assert (read_reply(get_parser("auto"), reply.text, ("left", "right")).failure is None) == read
    kind = fault.kind
    thinks = "thought" in kind or kind.startswith("in_reasoning") or kind in ("thinking_part", "responses")
    assert bool(reply.reasoning) == thinks
    assert reply.cut == (kind in ("cut_thought", "window", "repetition"))
    assert reply.refused == (status in ("filtered", "refused"))
    if status == "tool_call":
        call = json.loads(reply.text)
        assert (call["name"], list(call["arguments"])) == ("act", ["action"])


@pytest.mark.parametrize(
    ("fault", "status"),
    [("in_reasoning", "reasoning_only"), ("tool_call", "tool_call"), (TOO_LONG, "refused"), ("cut_thought", "model")],
    ids=lambda value: str(value)[:24],
)
def test_a_status_stands_in_the_record(fault: Any, status: str, tmp_path: Path) -> None:
    fault = fault if isinstance(fault, Fault) else Fault(fault)
    with FaultServer(lambda asked: fault if asked.number else None) as server:
        said = evaluate(tmp_path, server.url).out
    records = [record for episode in read_trajectories(tmp_path) for record in episode]
    count, own = len(records), status in ("model", "tool_call")
    assert count >= 4
    assert {record.status for record in records} == {status}
    assert {record.cut for record in records} == {fault.kind == "cut_thought"}
    assert ("not the model's" in said) == (not own)
    assert own or f"{count} of {count} replies are not the model's: {status} {count}." in said
    (part,) = json.loads((tmp_path / "report.json").read_text())["parts"].values()
    assert part["invalid"]["rate"] == float(fault.kind == "cut_thought")
    assert part.get("statuses", {}) == ({} if status == "model" else {status: count})
    assert (status in (tmp_path / "report.html").read_text()) or status == "model"
    lines = [json.loads(line) for line in (tmp_path / "metadata.jsonl").read_text().splitlines()]
    assert {"status" in line for line in lines} == {status != "model"}


@pytest.mark.parametrize(
    "kind",
    ["choice_error", "error_beside", "error200", "responses_failed", "abort", "error", "network_error", "no_resource"],
)
def test_an_error_in_an_answer_is_asked_again(kind: str) -> None:
    with (
        FaultServer(lambda asked: Fault(kind)) as server,
        pytest.raises(FailedError, match=r"failed 2 time\(s\) in a row, last: its answer is "),
    ):
        ask(server.url, max_retries=1)
    assert server.counts[kind] == 2


def test_repeated_failures_break_the_episode_off_and_in_the_end_the_run(tmp_path: Path) -> None:
    broken = (6, 7)  # two attempts at one turn
    with FaultServer(lambda asked: Fault("abort") if asked.number in (1, 3, *broken) else None) as server:
        said = evaluate(tmp_path / "again", server.url, "--num-envs", "1").err
    (failure,) = (tmp_path / "again" / "failures.jsonl").read_text().splitlines()
    assert json.loads(failure)["reply"] is None
    records = [record for episode in read_trajectories(tmp_path / "again") for record in episode]
    assert {(record.parse, record.status) for record in records} == {("ok", "model")}
    assert json.loads((tmp_path / "again" / "report.json").read_text())["overall"]["episodes"] == 2
    assert "the endpoint failed: EndpointError: " in said
    with FaultServer(lambda asked: Fault("abort") if asked.number > 1 else None) as server:
        said = evaluate(tmp_path / "all", server.url, "--num-envs", "1", status=1).err
    assert server.counts["abort"] == 3 * 2
    assert "failed 2 time(s) in a row, last: its answer is " in said
    assert "0 of 2 episodes are kept" in said
    assert len((tmp_path / "all" / "failures.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("empty", r'finish_reason "stop", role "assistant", content ""'), ("null", "content null"),
        ("cut_thought", r'finish_reason "length".*content null, refusal null, reasoning of length \d+'),
        ("filter", "content_filter"),
        ("shape", r'its answer is no chat completion: \{"object": "chat.completion", "choices": \[\]\}'),
    ],
)  # fmt: skip
def test_an_empty_first_answer_is_a_line_with_the_fields_that_came(kind: str, told: str) -> None:
    words = f"answers the first question without a text; it sent: .*{told}"
    with FaultServer(lambda asked: Fault(kind)) as server:
        policy = OpenAIPolicy("m", base_url=server.url, max_retries=0)
        with closing(policy), pytest.raises(UserError, match=words) as caught:
            policy.check()
    assert "\n" not in str(caught.value)


def test_a_comparison_warns_of_replies_that_are_not_the_models(tmp_path: Path) -> None:
    for name, fault in (("whole", None), ("refused", TOO_LONG)):
        with FaultServer(lambda asked, fault=fault: fault if asked.number == 3 else None) as server:
            evaluate(tmp_path / name, server.url)
    compared = invoke("compare", tmp_path / "whole", tmp_path / "refused").out
    (warning,) = [line for line in compared.splitlines() if line.startswith("warning")]
    assert warning.startswith("warning: refused: 1 of ")
    assert warning.endswith("replies are not the model's: refused 1.")


def test_the_agent_function_reads_alike_and_ends_in_spite_of_a_refused_prompt() -> None:
    for fault in ("in_reasoning", TOO_LONG):
        fault = fault if isinstance(fault, Fault) else Fault(fault)
        with FaultServer(lambda asked, fault=fault: fault) as server:
            wanted = ask(server.url)
            episode = asyncio.run(play(Task(WALK.id), base_url=server.url, model="m"))
        assert {record.status for record in episode.turns} == {wanted.status}
    with FaultServer(lambda asked: Fault("abort")) as server, pytest.raises(openai.APIConnectionError) as caught:
        asyncio.run(play(Task(WALK.id), base_url=server.url, model="m"))
    assert "sk-" not in repr(caught.value)


def read(body: Any) -> Reply:
    return read_answer(json.dumps(body).encode())


def test_several_calls_are_a_list_and_their_arguments_may_be_a_text() -> None:
    calls = [{"function": {"name": "act", "arguments": given}} for given in ('{"action": "左"}', "left", {"a": 1})]
    text = read({"choices": [{"message": {"content": "I go.", "tool_calls": [*calls, None, {}]}}]}).text
    assert text.startswith("I go.\n")
    assert "左" in text
    assert [each["arguments"] for each in json.loads(text.partition("\n")[2])] == [{"action": "左"}, "left", {"a": 1}]


def test_thoughts_keep_beginning_and_end_and_a_choice_with_an_error_is_none() -> None:
    reply = read({"choices": [{"message": {"content": "x\ud800", "reasoning": f"A{'b' * 99_999}Z\ud800"}}]})
    assert (len(reply.reasoning) <= MAX_REPLY, reply.reasoning[0], reply.reasoning[-2:]) == (True, "A", "Z?")
    assert reply.text == "x?"  # a record holds no half of a character
    with pytest.raises(BadAnswerError, match="an error: upstream died 502") as caught:
        read({"choices": [{"message": {"content": "x"}, "error": {"message": "upstream died", "code": 502}}]})
    assert (caught.value.status, find_status(caught.value)) == ("provider_error", "provider_error")


@pytest.mark.parametrize("depth", [900, 3000, 9000])
def test_deep_nesting_is_no_traceback(depth: int) -> None:
    for field in ("content", "tool_calls", "reasoning", "refusal"):
        data = f'{{"choices": [{{"message": {{"{field}": {"[" * depth}{"]" * depth}}}}}]}}'
        with contextlib.suppress(BadAnswerError):
            assert read_answer(data.encode()).text == ""


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (400, LONG, "refused"),
        (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", "refused"),
        (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", "refused"),
        (400, "Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens).", "refused"),
        (400, "the request exceeds the available context size, try increasing it", "refused"),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 5000", "refused"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "refused"),
        (400, "The input token count (5000) exceeds the maximum number of tokens allowed (4096).", "refused"),
        (413, "Request Entity Too Large", "refused"),
        (400, "Content Exists Risk", "filtered"),
        (403, "Your chosen model requires moderation and your input was flagged", "filtered"),
        (400, "At most 1 image(s) may be provided in one prompt.", None),
        (400, "'temperature' does not support 0.5 with this model", None),
        (429, "Request too large: too many tokens per minute", None),
        (500, "upstream died", None),
    ],
)
def test_words_of_servers_on_a_refused_prompt(status: int, said: str, expected: str | None) -> None:
    with FaultServer(lambda asked: Fault(str(status), body={"error": {"message": said}})) as server:
        if expected is None:
            with pytest.raises(UserError):
                ask(server.url)
        else:
            reply = ask(server.url)
            assert (reply.text, reply.refused, reply.status) == ("", True, expected)


def test_an_error_for_all_turns_stays_one() -> None:
    faults = {1: Fault("401"), 2: Fault("abort")}
    with FaultServer(faults, latency=0.1) as server:
        policy = OpenAIPolicy("m", base_url=server.url, max_retries=0, concurrency=3)
        futures = [policy.submit(TURN) for _ in range(3)]
        failed = [type(future.exception(10)) for future in futures]
        assert sorted(each.__name__ for each in failed) == ["EndpointError", "NoneType", "UserError"]
        with pytest.raises(UserError, match="refuses access"):
            policy.reply([TURN])
        policy.close()
    assert len(server.asked) == 3


def test_an_error_inside_an_answer_hides_the_key_in_any_nesting() -> None:
    key = """sk-'a"b\\c-123456"""
    for error in ({"message": {"x": [key]}}, [key], {"message": key}, key, {"code": [key]}):
        data = json.dumps({"choices": [{"message": {}, "error": error}]}).encode()
        with pytest.raises(BadAnswerError) as caught:
            read_answer(data, make_hide("", key))
        assert "123456" not in str(caught.value)
        assert "[secret]" in str(caught.value)


@pytest.mark.parametrize("key", ["x", "e", "se", "4x"])
def test_a_short_secret_is_hidden_as_a_word_alone(key: str) -> None:
    hide = make_hide("http://127.0.0.1:8000/v1?v=x2", key)
    assert hide("an unexpected secret 14x, text-x2 9") == "an unexpected secret 14x, text-[secret] 9"
    assert hide(f"Incorrect key: {key}.") == "Incorrect key: [secret]."
    assert make_hide("", "")("abc") == "abc"
    assert make_hide("", "long-key")("xlong-keyx") == "x[secret]x"


ONLY = {"stream": "This model only supports stream mode, please enable the stream parameter."}


@pytest.mark.parametrize("refusal", [400, 422])
def test_a_model_that_only_streams_is_read_and_learnt_once(refusal: int) -> None:
    with FaultServer() as server:
        wanted = ask(server.url)
    options = {"stream_options": "Unknown field stream_options", "max_tokens": "Use max_completion_tokens."}
    with FaultServer(demands=ONLY, refuses=options, refusal=refusal) as server:
        policy = OpenAIPolicy("m", base_url=server.url, max_retries=0, max_tokens=9)
        replies = [policy.reply([TURN])[0] for _ in range(2)]
        policy.close()
    assert [reply.text for reply in replies] == [wanted.text] * 2
    assert replies[0].usage
    assert wanted.usage
    assert replies[0].usage.prompt_tokens == wanted.usage.prompt_tokens
    assert server.counts["answered"] == 2
    assert len(server.asked) == 5
    with FaultServer(demands=ONLY) as server:
        ask(server.url)
    assert [asked.body.get("stream_options") for asked in server.asked] == [None, {"include_usage": True}]


STREAMED = ["tool_call", "thoughts", "thinking_part", "sensitive", "parts", "refuse", "repetition"]


@pytest.mark.parametrize("kind", STREAMED)
def test_a_streamed_answer_is_read_as_a_whole_one(kind: str) -> None:
    with FaultServer(lambda asked: Fault(kind)) as server:
        whole = ask(server.url)
    with FaultServer(lambda asked: Fault(kind), demands=ONLY) as server:
        streamed = ask(server.url)
    for name in ("text", "status", "cut", "refused", "reasoning"):
        assert getattr(streamed, name) == getattr(whole, name), name
    assert whole.cut == (kind == "repetition")


def test_a_stream_is_read_up_to_the_limits_and_to_its_end() -> None:
    endless = FaultServer(lambda asked: Fault("endless"), demands=ONLY)
    with endless as server, pytest.raises(FailedError, match="a stream without its end"):
        ask(server.url)
    long = Turn([{"role": "user", "content": [{"type": "text", "text": f"Legal actions: {'left' * 500}"}]}], None)
    with FaultServer(demands=ONLY) as server, pytest.raises(FailedError, match="longer than 1000 bytes"):
        ask(server.url, long, max_answer_bytes=1000)
    drip = FaultServer(lambda asked: Fault("drip", seconds=0.2), demands=ONLY)
    with drip as server, pytest.raises(FailedError, match=r"no answer within 0\.5 s"):
        ask(server.url, timeout=0.5)
    with FaultServer(lambda asked: Fault("choice_error"), demands=ONLY) as server, pytest.raises(FailedError):
        ask(server.url)


def test_calls_in_pieces_are_joined() -> None:
    pieces = [
        {"content": None, "tool_calls": [{"index": 0, "function": {"name": "act", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"act'}}, {"index": 1, "function": {"name": "b"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'ion": "left"}'}}, None, {"index": None}]}, None,
    ]  # fmt: skip
    chunks = [{"choices": [{"delta": piece}]} for piece in pieces] + [{"choices": []}, None, 7]
    events = "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks)
    calls = json.loads(read_answer(f": heartbeat\r\n\r\n{events}data: [DONE]\r\n".encode()).text)
    assert calls[0] == {"name": "act", "arguments": {"action": "left"}}


def test_an_address_may_end_as_requests_do() -> None:
    with FaultServer() as server:
        for end in ("/chat/completions", "/chat/completions/", "/"):
            assert ask(server.url + end).text
    assert server.counts["answered"] == 3


def test_a_proxy_is_named_where_its_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:hunter2@127.0.0.1:{proxy.port}")
        words = rf"through the environment's proxy http://127.0.0.1:{proxy.port} "
        with pytest.raises(UserError, match=words) as caught:
            ask("http://model.invalid/v1")
        assert "hunter2" not in str(caught.value)
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@127.0.0.1:{proxy.port}")
        with pytest.raises(FailedError, match=r"through the environment's proxy .* failed 1 .* last: 404 Not Found"):
            ask("https://model.invalid/v1")
        monkeypatch.setenv("NO_PROXY", "model.invalid")
        with pytest.raises(UserError) as caught:
            ask("http://model.invalid/v1")
        assert "proxy" not in str(caught.value)
    monkeypatch.setenv("ALL_PROXY", "socks9://me:hunter2@127.0.0.1:1")
    with pytest.raises(UserError, match=r"The environment's proxy .* cannot be used: Unknown scheme") as caught:
        ask("http://example.invalid/v1")
    assert "hunter2" not in str(caught.value)


def test_this_machines_addresses_go_through_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with FaultServer() as server:
        assert ask(server.url).text
    own = ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.10", "0.0.0.0", "::1", socket.gethostname()]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        own.append(probe.getsockname()[0])
    assert [host for host in own if not is_own(host)] == []
    assert [host for host in ("192.0.2.1", "example.com", "localhost.example.com", "") if is_own(host)] == []
    assert find_proxy("http://example.com/v1") == "http://127.0.0.1:1"


CLOSED = [*(pytest.param(each, marks=pytest.mark.exhaustive) for each in (">&-", "2>&-")), "<&- >&- 2>&-"]


@pytest.mark.parametrize("closed", CLOSED)
def test_a_run_whose_output_is_closed_ends_with_status_0(closed: str, tmp_path: Path) -> None:
    words = f"eval --policy random --env vlgym/NumberLine-v1 --episodes 1 --out {tmp_path / 'run'}"
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m vlgym {words} {closed}"], capture_output=True, text=True, timeout=100,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "run" / "report.html").is_file()
