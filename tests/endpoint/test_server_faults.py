"""Faults of servers: what is asked again, what ends a run, and what stands in the record."""

import concurrent.futures
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import Output, invoke
from endpoint_asking import TURN, always, ask, ask_once, make_turn, make_turns, open_policy, refuse
from fault_server import Fault, FaultServer, Request
from toys import make_spec

from vlgym.endpoint.client import find_proxy, is_own
from vlgym.endpoint.policy import OpenAIPolicy
from vlgym.errors import FailedError, UserError
from vlgym.parsers import get_parser, read_reply
from vlgym.play.trajectory import read_trajectories
from vlgym.types import Turn

WALK = make_spec(max_turns=4)
INSTALLED = (WALK,)
pytestmark = pytest.mark.usefixtures("toys_installed")
LONG = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
TOO_LONG = refuse(LONG, code="context_length_exceeded")
ANSWERED = [  # fault, status, properties of the reply
    ("", "model", "read"), ("in_reasoning_content", "reasoning_only", "read thinks"),
    ("in_reasoning", "reasoning_only", "read thinks"), ("half_thought", "reasoning_only", "thinks"),
    ("cut_thought", "model", "thinks cut"), ("thoughts", "model", "read thinks"),
    ("tool_call", "tool_call", "read"), ("function_call", "tool_call", "read"),
    ("output_text", "model", "read"), ("thinking_part", "model", "read thinks"),
    ("responses", "model", "read thinks"), ("no_reason", "model", "read"),
    ("end_turn", "model", "read"), ("window", "model", "read cut"),
    ("repetition", "model", "read cut"), ("parts", "model", "read"), ("cut", "model", "cut"),
    ("reasoning", "model", "read thinks"), ("empty", "model", ""), ("null", "model", ""),
    ("refuse", "model", "refused"), ("filter", "filtered", "refused"),
    ("sensitive", "filtered", "refused"), ("shape", "refused", "refused"),
    ("error_too_long", "refused", "refused"), (TOO_LONG, "refused", "refused"),
    (refuse("no", code="data_inspection_failed"), "filtered", "refused"),
    (refuse("The prompt was filtered.", code="content_filter"), "filtered", "refused"),
    (Fault("422", body={"detail": "The prompt is too long"}), "refused", "refused"),
    *((refuse(words), "refused", "refused") for words in (
        LONG, "The decoder prompt (length 5000) is longer than the maximum model length of",
        "The input (5000 tokens) is longer than the model's context length (4096",
        "Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens).",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (5000) exceeds the maximum number of tokens allowed",
    )),
    (refuse("Input validation error: `inputs` must have less than 1024 tokens. Given", 422), "refused", "refused"),
    (refuse("Request Entity Too Large", 413), "refused", "refused"),
    (refuse("Content Exists Risk"), "filtered", "refused"),
    (refuse("Your chosen model requires moderation and your input was flagged", 403), "filtered", "refused"),
]  # fmt: skip
AGAIN = [
    "drop", "half", "truncated", "json", "html", "error200", "429", "500", "502", "503", "408",
    "choice_error", "error_beside", "responses_failed", "abort", "error", "network_error", "no_resource",
]  # fmt: skip
ONLY = {"stream": "This model only supports stream mode, please enable the stream parameter."}


def evaluate(out: Path, url: str, *more: str, status: int = 0) -> Output:
    """Evaluate what answers at an address on two episodes."""
    words = ["eval", "--policy", f"openai:m@{url}", "--env", WALK.id, "--episodes", "2", *more]
    options = ["--no-probe", "--out", out, "--policy-arg", "max_retries=1"]
    return invoke(*words, *options, status=status)


def ask_cleanly(turns: list[Turn]) -> list[str]:
    with FaultServer() as server:
        return [reply.text for reply in ask(server.url, *turns)]


@pytest.mark.parametrize(("fault", "status", "properties"), ANSWERED, ids=lambda each: str(each)[:24])
def test_an_answer_has_its_status(fault: Any, status: str, properties: str) -> None:
    with always(fault) as server:
        reply = ask_once(server.url, max_retries=1)
    assert reply.status == status
    failure = read_reply(get_parser("auto"), reply.text, ("left", "right")).failure
    flags = {"read": not failure, "thinks": reply.reasoning, "cut": reply.cut, "refused": reply.refused}
    assert {name for name, value in flags.items() if value} == {*properties.split()}
    if status in ("refused", "filtered"):
        assert reply.text == ""
    if status == "tool_call":
        call = json.loads(reply.text)
        assert (call["name"], list(call["arguments"])) == ("act", ["action"])


@pytest.mark.parametrize(("fault", "status"), [
    ("in_reasoning", "reasoning_only"), (TOO_LONG, "refused"),
    *(pytest.param(*each, marks=pytest.mark.exhaustive)
      for each in (("tool_call", "tool_call"), ("cut_thought", "model"))),
], ids=lambda value: str(value)[:24])  # fmt: skip
def test_a_status_stands_in_the_record(fault: Any, status: str, tmp_path: Path) -> None:
    fault = fault if isinstance(fault, Fault) else Fault(fault)
    with FaultServer(lambda request: fault if request.number else None) as server:
        output = evaluate(tmp_path, server.url).out
    records = [record for episode in read_trajectories(tmp_path) for record in episode]
    count, cut = len(records), fault.kind == "cut_thought"
    assert count >= 4
    assert {(record.status, record.cut) for record in records} == {(status, cut)}
    warning = f"{count} of {count} replies are not the model's: {status} {count}."
    assert (warning in output) == (status not in ("model", "tool_call"))
    (part,) = json.loads((tmp_path / "report.json").read_text())["parts"].values()
    assert part["invalid"]["rate"] == float(cut)
    assert part.get("statuses", {}) == ({} if status == "model" else {status: count})
    assert (status in (tmp_path / "report.html").read_text()) or status == "model"
    lines = (tmp_path / "metadata.jsonl").read_text().splitlines()
    assert {"status" in json.loads(line) for line in lines} == {status != "model"}


def test_a_storm_of_faults_loses_no_turn() -> None:
    turns, faults = make_turns(len(AGAIN)), [Fault(kind) for kind in 2 * AGAIN]

    def choose(request: Request) -> Fault | None:
        return None if request.before > 1 else faults.pop()

    with FaultServer(choose, spread=0.02) as server:
        replies = ask(server.url, *turns, concurrency=4)
    assert [reply.text for reply in replies] == ask_cleanly(turns)
    usages = [reply.usage for reply in replies if reply.usage]
    assert sum(usage.attempts for usage in usages) == len(server.requests) == 3 * len(turns)
    words = [len(reply.text.split()) for reply in replies]
    assert [usage.completion_tokens for usage in usages] == words
    assert min(usage.prompt_tokens for usage in usages) >= 64  # of a picture
    assert min(usage.seconds for usage in usages) > 0
    digests = Counter(request.digest for request in server.requests if request.answered)
    assert {*AGAIN} <= server.counts.keys()
    assert len(digests) == len(turns)


def test_what_never_answers_is_asked_again_after_the_timeout() -> None:
    turns = make_turns(4)
    with FaultServer({1: Fault("hang")}) as server:
        replies = ask(server.url, *turns, timeout=0.5)
    assert [reply.text for reply in replies] == ask_cleanly(turns)
    assert sorted(reply.usage.attempts for reply in replies if reply.usage) == [1, 1, 1, 2]


TEMPERATURE = "'temperature' does not support 0.5 with this model"
NO_PICTURES = [
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    "This model does not support images.", "Unsupported content type: image_url",
    "this model is missing data required for image input",
]  # fmt: skip
LAST = r"failed 3 time\(s\) in a row, last: "


@pytest.mark.parametrize(
    ("faults", "options", "error", "line", "requests"),
    [
        ("drop 500 503", {}, FailedError, rf"{LAST}503 trouble 503\. Go on later", 3),
        ("abort abort abort", {}, FailedError, rf"{LAST}its answer is ", 3),
        ("drip drip drip", {"timeout": 0.2}, FailedError, r"no answer within 0.2 s \(--policy-arg", 3),
        (refuse(TEMPERATURE), {"temperature": 0.5}, UserError, f"400 {TEMPERATURE}.*--temperature", 1),
        *((refuse(words, 500), {}, UserError, f"500 {words}.*--history-images 0", 2) for words in NO_PICTURES),
        (refuse("At most 1 image(s) may be provided in one prompt."), {}, UserError, "At most 1 image", 1),
        (refuse("Request too large: too many tokens per minute", 429), {}, FailedError, "too many", 3),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_lasting_fault_is_a_line_that_says_what_the_server_said_last(faults, options, error, line, requests):
    if isinstance(faults, str):
        faults = [Fault(kind, seconds=0.05) for kind in faults.split()]
    else:
        faults = [faults] * 3
    with FaultServer(dict(enumerate(faults))) as server, pytest.raises(UserError, match=line) as caught:
        ask(server.url, max_retries=2, **options)
    assert isinstance(caught.value, FailedError) == (error is FailedError)
    assert server.counts["requests"] == requests


def test_a_servers_words_are_one_short_line_without_control_characters() -> None:
    words = "\x1b[31mred\nline\u202e " + "x" * 5000
    with always(refuse(words)) as server, pytest.raises(UserError) as caught:
        ask(server.url)
    line = str(caught.value)
    assert "400 [31mred line x" in line
    assert line.isprintable()
    assert len(line) < 500


def test_earlier_answers_survive_a_failure_and_later_turns_are_not_sent() -> None:
    turns = make_turns(6)
    options = {"max_retries": 1, "concurrency": 1}
    server = FaultServer(lambda request: Fault("500") if request.number else None)
    with server, open_policy(server.url, **options) as policy:
        futures = [policy.submit(turn) for turn in turns]
        concurrent.futures.wait(futures, timeout=10)
    assert futures[0].result().text == ask_cleanly(turns)[0]
    assert [type(future.exception()) for future in futures[1:]] == [FailedError] * 5
    assert server.counts["requests"] == 3


def test_an_error_for_all_turns_stays_one() -> None:
    server = FaultServer({1: Fault("401"), 2: Fault("abort")}, latency=0.1)
    with server, open_policy(server.url, max_retries=0, concurrency=3) as policy:
        futures = [policy.submit(TURN) for _ in range(3)]
        failed = sorted(type(future.exception(10)).__name__ for future in futures)
        assert failed == ["EndpointError", "NoneType", "UserError"]
        with pytest.raises(UserError, match="refuses access"):
            policy.reply([TURN])
    assert len(server.requests) == 3


def test_a_missing_server_ends_the_run_and_one_that_went_away_is_waited_for() -> None:
    with FaultServer() as server:
        policy = OpenAIPolicy("m", base_url=server.url, max_retries=2)
        policy.reply([TURN])
    with closing(policy), pytest.raises(FailedError, match=LAST):
        policy.reply([TURN])
    line = rf"^No server answers at {server.url} \(.*\)\. Start it, or correct"
    with pytest.raises(UserError, match=line):
        ask(server.url)


def test_an_unknown_model_and_a_wrong_address_are_one_line() -> None:
    with FaultServer(model="gpt-tiny") as server, open_policy(server.url) as policy:
        with pytest.raises(UserError, match=r"404 The model `m` does not exist\. Check the model's name"):
            policy.check()
        with pytest.raises(UserError, match=r"for m: 404 .*Not Found.*Check .* --base-url \(most end"):
            ask(server.url.removesuffix("/v1"))
    assert server.counts["requests"] == 1


def test_repeated_failures_break_the_episode_off_and_in_the_end_the_run(tmp_path: Path) -> None:
    faults = dict.fromkeys((1, 3, 6, 7), Fault("abort"))  # 6 and 7 are two attempts at one turn
    with FaultServer(faults) as server:
        errors = evaluate(tmp_path / "again", server.url, "--num-envs", "1").err
    (failure,) = (tmp_path / "again" / "failures.jsonl").read_text().splitlines()
    assert json.loads(failure)["reply"] is None
    records = [record for episode in read_trajectories(tmp_path / "again") for record in episode]
    assert {(record.parse, record.status) for record in records} == {("ok", "model")}
    report = json.loads((tmp_path / "again" / "report.json").read_text())
    assert report["overall"]["episodes"] == 2
    assert "the endpoint failed: EndpointError: " in errors
    with FaultServer(lambda request: Fault("abort") if request.number > 1 else None) as server:
        errors = evaluate(tmp_path / "all", server.url, "--num-envs", "1", status=1).err
    assert server.counts["abort"] == 3 * 2
    assert "failed 2 time(s) in a row, last: its answer is " in errors
    assert "0 of 2 episodes are kept" in errors
    assert len((tmp_path / "all" / "failures.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(("kind", "words"), [
    ("empty", r'finish_reason "stop", role "assistant", content ""'), ("null", "content null"),
    ("cut_thought", r'"length".*content null, refusal null, reasoning of length \d+'),
    ("filter", "content_filter"),
    ("shape", r'no chat completion: \{"object": "chat.completion", "choices": \[\]\}'),
])  # fmt: skip
def test_an_empty_first_answer_is_a_line_with_the_fields_that_came(kind: str, words: str) -> None:
    line = f"answers the first question without a text; it sent: .*{words}"
    with (
        always(kind) as server,
        open_policy(server.url, max_retries=0) as policy,
        pytest.raises(UserError, match=line) as caught,
    ):
        policy.check()
    assert "\n" not in str(caught.value)


def test_a_comparison_warns_of_replies_that_are_not_the_models(tmp_path: Path) -> None:
    for name, faults in (("whole", {}), ("refused", {3: TOO_LONG})):
        with FaultServer(faults) as server:
            evaluate(tmp_path / name, server.url)
    lines = invoke("compare", tmp_path / "whole", tmp_path / "refused").out.splitlines()
    (warning,) = [line for line in lines if line.startswith("warning")]
    assert warning.startswith("warning: refused: 1 of ")
    assert warning.endswith("replies are not the model's: refused 1.")


@pytest.mark.parametrize("refusal", [400, 422])
def test_a_model_that_only_streams_is_read_and_learnt_once(refusal: int) -> None:
    refuses = {"stream_options": "Unknown field stream_options", "max_tokens": "Use max_completion_tokens."}
    server = FaultServer(demands=ONLY, refuses=refuses, refusal=refusal)
    with server, open_policy(server.url, max_retries=0, max_tokens=9) as policy:
        for _ in range(2):
            policy.reply([TURN])
    assert server.counts["answered"] == 2
    assert len(server.requests) == 5
    assert server.requests[-1].body["max_completion_tokens"] == 9
    with FaultServer(demands=ONLY) as server:
        ask(server.url)
    options = [request.body.get("stream_options") for request in server.requests]
    assert options == [None, {"include_usage": True}]


@pytest.mark.parametrize(
    "kind",
    ["", "tool_call", "thoughts", "thinking_part", "sensitive", "parts", "refuse", "repetition"],
)
def test_a_streamed_answer_is_read_as_a_whole_one(kind: str) -> None:
    with always(kind) as server:
        whole = ask_once(server.url)
    with always(kind, demands=ONLY) as server:
        streamed = ask_once(server.url)
    for name in ("text", "status", "cut", "refused", "reasoning"):
        assert getattr(streamed, name) == getattr(whole, name), name
    assert streamed.usage
    assert whole.usage
    assert streamed.usage.prompt_tokens == whole.usage.prompt_tokens


@pytest.mark.parametrize(("fault", "text", "options", "line"), [
    (Fault("endless"), "", {}, "a stream without its end"),
    (Fault(""), "left" * 500, {"max_answer_bytes": 1000}, "longer than 1000 bytes"),
    (Fault("drip", seconds=0.2), "", {"timeout": 0.5}, r"no answer within 0\.5 s"),
    (Fault("choice_error"), "", {}, "its answer is "),
], ids=range(4))  # fmt: skip
def test_a_stream_is_read_up_to_the_limits_and_to_its_end(fault, text, options, line):
    turn = make_turn(f"Legal actions: {text}")
    with always(fault, demands=ONLY) as server, pytest.raises(FailedError, match=line):
        ask_once(server.url, turn, **options)


def test_a_proxy_is_named_where_its_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer() as proxy:
        place = f"127.0.0.1:{proxy.port}"
        monkeypatch.setenv("HTTP_PROXY", f"http://me:hunter2@{place}")
        words = f"through the environment's proxy http://{place} "
        with pytest.raises(UserError, match=words) as caught:
            ask_once("http://model.invalid/v1")
        assert "hunter2" not in str(caught.value)
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@{place}")
        with pytest.raises(FailedError, match=f"{words}failed 1 .* last: 404 Not Found"):
            ask_once("https://model.invalid/v1")
        monkeypatch.setenv("NO_PROXY", "model.invalid")
        with pytest.raises(UserError) as caught:
            ask_once("http://model.invalid/v1")
        assert "proxy" not in str(caught.value)
    monkeypatch.setenv("ALL_PROXY", "socks9://me:hunter2@127.0.0.1:1")
    words = r"The environment's proxy .* cannot be used: Unknown scheme"
    with pytest.raises(UserError, match=words) as caught:
        ask_once("http://example.invalid/v1")
    assert "hunter2" not in str(caught.value)


def test_this_machines_addresses_go_through_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with FaultServer() as server:
        ask_once(server.url)
    own = ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.10", "0.0.0.0", "::1"]
    own.append(socket.gethostname())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        own.append(probe.getsockname()[0])
    assert [host for host in own if not is_own(host)] == []
    others = ("192.0.2.1", "example.com", "localhost.example.com", "")
    assert [host for host in others if is_own(host)] == []
    assert find_proxy("http://example.com/v1") == "http://127.0.0.1:1"


@pytest.mark.exhaustive
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_whose_output_is_closed_ends_with_status_0(closed: str, tmp_path: Path) -> None:
    words = f"eval --policy random --env vlgym/NumberLine-v1 --episodes 1 --out {tmp_path / 'run'}"
    command = ["bash", "-c", f"{sys.executable} -m vlgym {words} {closed}"]
    env = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "run" / "report.html").is_file()
