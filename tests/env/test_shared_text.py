"""Texts in the shared memory of asynchronous vector environments."""

from __future__ import annotations

import copy

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory

from vlgym.env import spaces as shared_text
from vlgym.env.spaces import MessageSpace


def test_a_view_shows_what_was_written_after_it_was_taken() -> None:
    space = spaces.Dict({"image": spaces.Box(0, 255, (2, 2, 3), np.uint8), "text": MessageSpace(37)})
    memory = create_shared_memory(space, n=2)
    view = read_from_shared_memory(space, memory, n=2)
    assert list(view["text"]) == ["", ""]
    image = np.full((2, 2, 3), 7, np.uint8)
    write_to_shared_memory(space, 1, {"image": image, "text": "Target: 3\nCurrent: 1"}, memory)
    write_to_shared_memory(space, 0, {"image": image, "text": "x" * 37}, memory)
    assert list(view["text"]) == ["x" * 37, "Target: 3\nCurrent: 1"]
    write_to_shared_memory(space, 0, {"image": image, "text": "shorter"}, memory)
    assert view["text"][0] == "shorter"


def test_a_copy_is_a_plain_tuple_that_later_writes_do_not_change() -> None:
    space = MessageSpace(8)
    memory = create_shared_memory(space, n=1)
    write_to_shared_memory(space, 0, "before", memory)
    view = read_from_shared_memory(space, memory, n=1)
    assert isinstance(view, shared_text.SharedTexts)
    kept = copy.deepcopy(view)
    write_to_shared_memory(space, 0, "after", memory)
    assert kept == ("before",)
    assert view[:1] == ("after",)
