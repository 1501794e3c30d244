"""Controls that cannot see: prompts with other pictures than their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..env.base import GREY_LEVEL
from ..types import Message

SHOWN, GREY, SHUFFLED = "shown", "grey", "shuffled"
CONTROLS = (GREY, SHUFFLED)
PICTURES = (SHOWN, *CONTROLS)
"""What a prompt shows: the environment's own pictures, plain grey ones of their size, or those of another episode."""


def in_grey(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with plain grey pictures of the same sizes."""
    return _replace_pictures(messages, lambda image, _: np.full_like(image, GREY_LEVEL))


def with_pictures_of(messages: Sequence[Message], others: Sequence[Message]) -> list[Message]:
    """Return the messages with the pictures of others, last for last; where those have fewer, with their first."""
    pictures = [part["image"] for message in others for part in message["content"] if part["type"] == "image"]
    count = sum(part["type"] == "image" for message in messages for part in message["content"])

    def choose(image: Any, index: int) -> Any:
        return pictures[max(0, len(pictures) - count + index)] if pictures else image

    return _replace_pictures(messages, choose)


def _replace_pictures(messages: Sequence[Message], choose: Callable[[Any, int], Any]) -> list[Message]:
    index, result = 0, []
    for message in messages:
        content = []
        for part in message["content"]:
            if part["type"] == "image":
                part = {"type": "image", "image": choose(part["image"], index)}
                index += 1
            content.append(part)
        result.append({"role": message["role"], "content": content})
    return result
