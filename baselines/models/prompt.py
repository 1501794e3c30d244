"""A prompt as the model reads it, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from vlgym.types import Message


@dataclass(frozen=True, eq=False)
class ImageInput:
    """A resized image, ready for the vision tower."""

    digest: bytes
    pixels: np.ndarray  # [h, w, 3] uint8; the sides are what the family asks for
    grid: tuple[int, int, int]  # (1, h, w) in patches
    tokens: int  # tokens in the prompt


@dataclass(frozen=True, eq=False)
class Prompt:
    """A prompt as the model reads it. Equal prompts have equal keys."""

    ids: Tensor  # [P] int64
    positions: Tensor  # [3, P] int64; the three rows are equal where a family has one-dimensional positions
    next_position: int  # position of the first reply token, in all three dimensions
    image_slots: Tensor  # [tokens of all images] int64, indices into ids
    images: tuple[ImageInput, ...]
    key: bytes

    def __len__(self) -> int:
        return len(self.ids)


Piece = str | int | ImageInput
"""A part of a prompt: text, the id of a special token, or an image."""


def join_system(own: str | None, messages: Sequence[Message]) -> tuple[str | None, list[Message]]:
    """Return the system message of a conversation, and the conversation without it: the model's own, then what the
    prompt begins with; `None` where neither says anything."""
    messages = list(messages)
    if not messages or messages[0]["role"] != "system":
        return own, messages
    said = [part["text"] for part in messages[0]["content"]]
    return "\n\n".join([*([own] if own else []), *said]), messages[1:]
