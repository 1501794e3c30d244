"""Controls that cannot see: prompts with other pictures than their own."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..env.base import GREY_LEVEL
from ..types import Image, Message

SHOWN, GREY, SHUFFLED = "shown", "grey", "shuffled"
CONTROLS = (GREY, SHUFFLED)
PICTURES = (SHOWN, *CONTROLS)  # its own, plain grey ones of their size, or another episode's


def list_pictures(messages: Iterable[Message]) -> list[Image]:
    """Return the pictures of a prompt, in their order."""
    parts = [part for message in messages for part in message["content"]]
    return [part["image"] for part in parts if part["type"] == "image"]


def in_grey(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with plain grey pictures of the same sizes."""
    grey = [np.full_like(image, GREY_LEVEL) for image in list_pictures(messages)]
    return _replace_pictures(messages, grey)


def with_pictures_of(messages: Sequence[Message], others: Sequence[Message]) -> list[Message]:
    """Return the messages with the pictures of others, last for last, then their first."""
    own, foreign = list_pictures(messages), list_pictures(others)
    padded = foreign[:1] * len(own) + foreign
    return _replace_pictures(messages, padded[len(padded) - len(own) :] if foreign else own)


def map_pictures(message: Message, change: Callable[[Image], dict[str, Any]]) -> Message:
    """Return a message with the items of each part that is a picture changed."""
    parts = [
        {"type": "image", **change(part["image"])} if part["type"] == "image" else part for part in message["content"]
    ]
    return {"role": message["role"], "content": parts}


def _replace_pictures(messages: Sequence[Message], pictures: Sequence[Image]) -> list[Message]:
    rest = iter(pictures)
    return [map_pictures(message, lambda _: {"image": next(rest)}) for message in messages]
