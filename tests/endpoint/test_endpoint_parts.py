"""The parts of the policy `openai:MODEL` that need no server: messages and answers."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlgym.endpoint.completion import BadAnswerError, read_answer
from vlgym.endpoint.messages import encode_messages
from vlgym.env.rendering import data_url
from vlgym.types import Status


def test_a_message_keeps_the_order_of_its_parts_and_is_plain_text_without_pictures() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    text: list[dict[str, Any]] = [{"type": "text", "text": letter} for letter in "ab"]
    parts = [text[0], {"type": "image", "image": picture}, text[1]]
    written = encode_messages([{"role": "user", "content": parts}, {"role": "assistant", "content": text}])
    sent = [text[0], {"type": "image_url", "image_url": {"url": data_url(picture)}}, text[1]]
    assert written == [{"role": "user", "content": sent}, {"role": "assistant", "content": "a\nb"}]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"null", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{}]}', b'{"choices": [null]}',
        b'{"choices": {"0": {}}}', b'{"choices": [{"message": "hi"}]}', b'{"choices": [{"message": {"content": 7}}]}',
        b"[" * 200_000, b"\xff\xfe", b'{"choices": 1' + b"0" * 5000 + b"}", b"<html>",
    ],
    ids=lambda data: repr(data[:30]),
)  # fmt: skip
def test_another_json_is_a_bad_answer(data: bytes) -> None:
    with pytest.raises(BadAnswerError, match=r"^no (JSON|chat completion): "):
        read_answer(data)


def test_an_answer_without_a_message_is_what_its_end_says() -> None:
    assert read_answer(b'{"choices": [{"finish_reason": "length"}]}').cut
    assert read_answer(b'{"choices": [{"finish_reason": "content_filter", "message": null}]}').refused


@pytest.mark.parametrize("count", [-1, 1.5, "7", None, True, [], 10**15])
def test_a_count_of_tokens_that_is_none_is_zero(count: Any) -> None:
    body = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": count, "completion_tokens": 3}}
    answer = read_answer(json.dumps(body).encode())
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (0, 3)


WORDS = """choices message content refusal finish_reason usage prompt_tokens model type text delta reasoning thinking
    summary tool_calls function function_call name arguments error output status index incomplete_details reason"""
NAMES = st.sampled_from(WORDS.split())
WORD = st.sampled_from(["thinking", "refusal", "tool_use", "output_text", "error", "length", "sensitive", "message"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
BODIES = JSON | st.fixed_dictionaries(
    {"choices": st.lists(st.dictionaries(NAMES, JSON, max_size=4) | st.fixed_dictionaries(
        {"message": st.dictionaries(NAMES, JSON, max_size=5), "finish_reason": JSON}), max_size=2)},
    optional={"usage": JSON, "model": JSON, "error": st.none(), "output": st.lists(JSON)},
)  # fmt: skip


@settings(max_examples=max(60, settings().max_examples))
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
