"""The parts of the policy `openai:MODEL` that need no server: answers and secrets."""

import contextlib
import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlgym.endpoint.completion import BadAnswerError, find_status, read_answer
from vlgym.endpoint.secrets import make_hide
from vlgym.env.spaces import MAX_REPLY
from vlgym.types import Reply, Status


def read(body: Any) -> Reply:
    return read_answer(json.dumps(body).encode())


def read_message(**message: Any) -> Reply:
    return read({"choices": [{"message": message}]})


@pytest.mark.parametrize("data", [
    b"", b"null", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{}]}', b'{"choices": [null]}',
    b'{"choices": {"0": {}}}', b'{"choices": [{"message": "hi"}]}', b"<html>", b"\xff\xfe",
    b'{"choices": [{"message": {"content": 7}}]}', b"[" * 200_000, b'{"choices": 1' + b"0" * 5000 + b"}",
], ids=range(14))  # fmt: skip
def test_another_json_is_a_bad_answer(data: bytes) -> None:
    with pytest.raises(BadAnswerError, match=r"^no (JSON|chat completion): "):
        read_answer(data)


def test_an_answer_without_a_message_is_what_its_end_says() -> None:
    assert read_answer(b'{"choices": [{"finish_reason": "length"}]}').cut
    assert read_answer(b'{"choices": [{"finish_reason": "content_filter", "message": null}]}').refused


@pytest.mark.parametrize("count", [-1, 1.5, "7", None, True, [], 10**15])
def test_a_count_of_tokens_that_is_none_is_zero(count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 3}
    answer = read({"choices": [{"message": {"content": "x"}}], "usage": usage})
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (0, 3)


def test_several_calls_are_a_list_and_their_arguments_may_be_a_text() -> None:
    arguments = ('{"action": "左"}', "left", {"a": 1})
    calls = [{"function": {"name": "act", "arguments": each}} for each in arguments]
    text = read_message(content="I go.", tool_calls=[*calls, None, {}]).text
    front, _, made = text.partition("\n")
    assert (front, "左" in made) == ("I go.", True)
    assert [each["arguments"] for each in json.loads(made)] == [{"action": "左"}, "left", {"a": 1}]


def test_calls_in_pieces_are_joined() -> None:
    pieces = [
        {"content": None, "tool_calls": [{"index": 0, "function": {"name": "act", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"act'}}, {"index": 1, "function": {"name": "b"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'ion": "left"}'}}, None, {"index": None}]},
        None,
    ]
    chunks = [{"choices": [{"delta": piece}]} for piece in pieces] + [{"choices": []}, None, 7]
    events = "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks)
    text = read_answer(f": heartbeat\r\n\r\n{events}data: [DONE]\r\n".encode()).text
    calls = json.loads(text)
    assert calls[0] == {"name": "act", "arguments": {"action": "left"}}


def test_thoughts_keep_beginning_and_end_and_a_choice_with_an_error_is_none() -> None:
    reply = read_message(content="x\ud800", reasoning=f"A{'b' * 99_999}Z\ud800")
    assert (reply.reasoning[0], reply.reasoning[-2:]) == ("A", "Z?")
    assert len(reply.reasoning) <= MAX_REPLY
    assert reply.text == "x?"  # a record holds no half of a character
    error = {"message": "upstream died", "code": 502}
    with pytest.raises(BadAnswerError, match="an error: upstream died 502") as caught:
        read({"choices": [{"message": {"content": "x"}, "error": error}]})
    assert (caught.value.status, find_status(caught.value)) == ("provider_error", "provider_error")


@pytest.mark.parametrize("depth", [900, 3000, 9000])
def test_deep_nesting_is_no_traceback(depth: int) -> None:
    for field in ("content", "tool_calls", "reasoning", "refusal"):
        deep = "[" * depth + "]" * depth
        with contextlib.suppress(BadAnswerError):
            data = f'{{"choices": [{{"message": {{"{field}": {deep}}}}}]}}'
            assert read_answer(data.encode()).text == ""


def test_an_error_inside_an_answer_hides_the_key_in_any_nesting() -> None:
    key = """sk-'a"b\\c-123456"""
    for error in ({"message": {"x": [key]}}, [key], {"message": key}, key, {"code": [key]}):
        data = json.dumps({"choices": [{"message": {}, "error": error}]}).encode()
        with pytest.raises(BadAnswerError) as caught:
            read_answer(data, make_hide("", key))
        assert "123456" not in str(caught.value)
        assert "[secret]" in str(caught.value)


def test_a_short_secret_is_hidden_as_a_word_alone() -> None:
    for key in ("x", "e", "se", "4x"):
        hide = make_hide("http://127.0.0.1:8000/v1?v=x2", key)
        text = "an unexpected secret 14x, text-{} 9"
        assert hide(text.format("x2")) == text.format("[secret]")
        assert hide(f"Incorrect key: {key}.") == "Incorrect key: [secret]."
    assert make_hide("", "")("abc") == "abc"
    assert make_hide("", "long-key")("xlong-keyx") == "x[secret]x"


WORDS = """choices message content refusal finish_reason usage prompt_tokens model type text delta reasoning thinking
    summary tool_calls function function_call name arguments error output status index incomplete_details reason"""
NAMES = st.sampled_from(WORDS.split())
WORD = st.sampled_from(["thinking", "refusal", "tool_use", "output_text", "error", "length", "sensitive", "message"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
CHOICE = st.fixed_dictionaries({"message": st.dictionaries(NAMES, JSON, max_size=5), "finish_reason": JSON})
BODIES = JSON | st.fixed_dictionaries(
    {"choices": st.lists(st.dictionaries(NAMES, JSON, max_size=4) | CHOICE, max_size=2)},
    optional={"usage": JSON, "model": JSON, "error": st.none(), "output": st.lists(JSON)},
)


@given(BODIES, st.lists(BODIES, max_size=3))
def test_any_json_is_an_answer_or_a_bad_one(body: Any, chunks: list[Any]) -> None:
    stream = "".join(f"data: {json.dumps(each).replace('message', 'delta')}\n\n" for each in chunks)
    for data in (json.dumps(body), f": wait\n{stream}data: [DONE]\n"):
        try:
            answer = read_answer(data.encode())
        except BadAnswerError:
            continue
        (answer.text + answer.reasoning + str(answer.extra)).encode()
        assert answer.status in get_args(Status)
        assert answer.usage is not None
        assert answer.usage.prompt_tokens >= 0
