"""Write neutral messages as an endpoint's JSON."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..env.rendering import data_url
from ..types import Image, Message


@functools.lru_cache(maxsize=256)  # a picture of the history is encoded once
def _write_picture(shape: tuple[int, ...], data: bytes) -> str:
    return data_url(np.frombuffer(data, np.uint8).reshape(shape))


def encode_turn(image: Image, text: str) -> dict[str, Any]:
    """Return a user's message of the chat completions protocol."""
    content = [{"type": "image", "image": image}, {"type": "text", "text": text}]
    return encode_messages([{"role": "user", "content": content}])[0]


def encode_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages of the chat completions protocol.

    A message without a picture is a plain string, which every server takes.
    """
    return [{"role": each["role"], "content": _write_content(each["content"])} for each in messages]


def _write_content(parts: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    content: list[dict[str, Any]] = []
    for part in parts:
        if part["type"] == "text":
            content.append({"type": "text", "text": part["text"]})
        else:
            url = _write_picture(part["image"].shape, part["image"].tobytes())
            content.append({"type": "image_url", "image_url": {"url": url}})
    return content
