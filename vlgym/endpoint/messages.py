"""What goes to an endpoint and what comes back: neutral messages become its JSON, its JSON becomes a reply's parts.

An answer that is none raises `BadAnswerError`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rendering import data_url
from ..types import Image, Message


class BadAnswerError(Exception):
    """What the server sent under status 200 is no chat completion."""


@dataclass(frozen=True)
class Answer:
    """What a chat completion says.

    Attributes:
        text: the model's text; empty where it wrote none. Where it refused in a field of its own, that text.
        cut: the limit of tokens ended it.
        refused: the model, or a filter before it, declined.
        prompt_tokens: as the server counts them; 0 where it does not say.
        completion_tokens: the same for the answer.
        model: what the server calls the model that answered; empty where it does not say.
    """

    text: str
    cut: bool = False
    refused: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""


def write_picture(image: Image) -> str:
    """Return `data:image/png;base64,...` of `[H, W, 3] uint8`; a picture of the history is encoded once."""
    return _write_picture(image.shape, image.tobytes())


@functools.lru_cache(maxsize=256)
def _write_picture(shape: tuple[int, ...], data: bytes) -> str:
    return data_url(np.frombuffer(data, np.uint8).reshape(shape))


def write_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages of the chat completions protocol, in the same order.

    What holds a picture is a list of parts; what holds none is a plain string, which every server takes.
    """
    return [{"role": message["role"], "content": _write_content(message["content"])} for message in messages]


def _write_content(parts: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image_url", "image_url": {"url": write_picture(part["image"])}}
        for part in parts
    ]


def read_answer(data: bytes) -> Answer:
    """Read a chat completion; only its first choice counts, and a text of reasoning beside the answer does not.

    Raises:
        BadAnswerError: it is no JSON, or none of this shape; the message shows how it begins.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise BadAnswerError(f"no JSON: {show(data)}") from None
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not {"message", "finish_reason"} & choice.keys():
        raise BadAnswerError(f"no chat completion: {show(data)}")
    message = choice.get("message") or {}
    if not isinstance(message, dict):
        raise BadAnswerError(f"no chat completion: {show(data)}")
    text, refusal = _read_content(message.get("content"), data), message.get("refusal")
    reason = choice.get("finish_reason")
    refusal = refusal if isinstance(refusal, str) else ""
    model, usage = body.get("model"), body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Answer(
        _without_surrogates(text or refusal),
        reason == "length",
        bool(refusal) or reason == "content_filter",
        _read_count(usage.get("prompt_tokens")),
        _read_count(usage.get("completion_tokens")),
        show(model) if isinstance(model, str) else "",
    )


def show(said: str | bytes, width: int = 240) -> str:
    """Return the beginning of what a server said as one line without control characters."""
    text = said[: 4 * width].decode("utf-8", "replace") if isinstance(said, bytes) else said[: 4 * width]
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= width and len(said) <= 4 * width else f"{line[: width - 3].rstrip()}..."


def _read_content(content: Any, data: bytes) -> str:
    """Return the text of a message's content: a string, nothing, or a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise BadAnswerError(f"no chat completion: {show(data)}")
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type", "text") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _without_surrogates(text: str) -> str:
    """Replace halves of characters, which JSON can hold and UTF-8 cannot: they could not be written to a record."""
    return text.encode("utf-8", "replace").decode()


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12 else 0
