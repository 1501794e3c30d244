"""The schema of a worker's answers: each is checked once, before anything reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..env.spaces import MAX_TEXT
from .wire import NonsenseError

MOST_LINE = 100_000
"""Longest text of an answer that is not an observation: a plan, a thought, a system message."""


def check_answer(answer: Mapping[str, Any], do: str, shape: tuple[int, ...] | None = None) -> None:
    """Check an answer to the request `do`; `shape` is that of the environment's pictures, where it is known.

    Raises:
        NonsenseError: it is not what an environment of this package answers.
    """
    if "error" in answer:
        _require(answer["error"], "error", type=str, user=bool, line=str)
        return
    value: Any = answer.get("value")
    if do == "make":
        _require(value, "card", parser=dict, vlgym=str, spec=(dict, type(None)), image_size=list)
        _require(value["parser"], "parser", name=str, version=int, format=str)
        size = value["image_size"]
        _demand(len(size) == 2 and all(type(side) is int and side > 0 for side in size), f"a picture of size {size}")
    elif do in ("reset", "step"):
        _require(value, "turn", observation=dict, info=dict, system=str, legal=list)
        _require(value["observation"], "observation", image=np.ndarray, text=str)
        _check_turn(value, shape)
        if do == "step":
            _check_outcome(value)
    elif do == "describe":
        _demand(isinstance(value, dict), "the description is no dict")
    elif do == "close":
        _demand(value is None, "closing has an answer")
    else:
        _demand(isinstance(value, str) or (value is None and do == "solve"), f"{do} is no text")
        _demand(len(value or "") <= MOST_LINE, f"{do} is longer than {MOST_LINE} characters")


def _check_turn(value: Mapping[str, Any], shape: tuple[int, ...] | None) -> None:
    image, text = value["observation"]["image"], value["observation"]["text"]
    _demand(image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3 and image.size > 0, "no RGB image")
    _demand(shape is None or image.shape == shape, f"a picture of shape {image.shape} instead of {shape}")
    _demand(len(text) <= MAX_TEXT and len(value["system"]) <= MOST_LINE, "a text is too long")
    _demand(all(type(action) is str for action in value["legal"]), "a legal action is no text")


def _check_outcome(value: Mapping[str, Any]) -> None:
    _require(value, "outcome", reward=(int, float), terminated=bool, truncated=bool)
    _demand(math.isfinite(value["reward"]), f"the reward is {value['reward']!r}")
    _demand(not (value["terminated"] and value["truncated"]), "an episode both terminated and truncated")


def _require(data: Any, what: str, /, **kinds: Any) -> None:
    """Check that a dict has items of these types; a flag is no number."""
    _demand(isinstance(data, dict), f"the {what} is no dict")
    for key, kind in kinds.items():
        held = data.get(key)
        good = isinstance(held, kind) and (kind is bool or not isinstance(held, bool))
        _demand(key in data and good, f"{key} of the {what} is {type(held).__name__}")


def _demand(good: bool, what: str) -> None:
    if not good:
        raise NonsenseError(what)
