"""The schema of a worker's answers: each is checked once, before anything reads it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..env.spaces import MAX_TEXT
from ..errors import UserError
from ..play.trajectory import check_record_values
from .wire import MOST_TEXT, NonsenseError, pack

MOST_LINE = 100_000  # characters of a plan, a thought or a system message


def check_answer(answer: Mapping[str, Any], do: str, shape: tuple[int, ...] | None = None) -> None:
    """Raise `NonsenseError` where no environment answers `do` so; `shape` is of its pictures."""
    good = answer.keys() in ({"n", "env", "value"}, {"n", "env", "error"})
    _demand(good, f"an answer of {len(answer)} other keys")
    if "error" in answer:
        _require(answer["error"], "error", type=str, user=bool, line=str)
        return

    # Each request has its own form of answer; those that are not named here answer with a text.
    value: Any = answer["value"]
    if do == "make":
        _require(value, "card", parser=dict, vlgym=str, spec=(dict, type(None)), image_size=list)
        _require(value["parser"], "parser", name=str, version=int, format=str)
        size = value["image_size"]
        good = len(size) == 2 and all(type(side) is int and side > 0 for side in size)
        _demand(good, f"a picture of size {size}")
    elif do in ("reset", "step"):
        outcome = {"reward": (int, float), "terminated": bool, "truncated": bool}
        paid: dict[str, Any] = outcome if do == "step" else {}
        _require(value, "turn", observation=dict, info=dict, system=str, legal=list, **paid)
        _require(value["observation"], "observation", image=np.ndarray, text=str)
        _check_turn(value, shape)
        _check_info(value["info"], {name: value[name] for name in paid})
    elif do == "describe":
        _demand(isinstance(value, dict), "the description is no dict")
    elif do == "close":
        _demand(value is None, "closing has an answer")
    else:
        none = value is None and do in ("solve", "match", "point")
        _demand(none or isinstance(value, str), f"{do} is no text")
        _demand(len(value or "") <= MOST_LINE, f"{do} is longer than {MOST_LINE} characters")


def _check_turn(value: Mapping[str, Any], shape: tuple[int, ...] | None) -> None:
    image, text = value["observation"]["image"], value["observation"]["text"]
    rgb = image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3 and image.size > 0
    _demand(rgb, "no RGB image")
    _demand(shape is None or image.shape == shape, f"a picture of shape {image.shape} instead of {shape}")
    _demand(len(text) <= MAX_TEXT and len(value["system"]) <= MOST_LINE, "a text is too long")
    _demand(all(type(action) is str for action in value["legal"]), "a legal action is no text")


def _check_info(info: Mapping[str, Any], paid: Mapping[str, Any]) -> None:
    """Check `info` by the schema of records; `paid` is the outcome of a step, empty at a reset."""
    details: Any = info.get("vlgym")
    _require(
        details, "info", turn=int, actions=list, parse=str, span=(tuple, type(None)),
        form=(str, type(None)), point=(tuple, type(None)), legal_actions=list, feedback=str,
        instructions=str, turn_text=str,
    )  # fmt: skip
    _demand(all(type(action) is str for action in details["legal_actions"]), "a legal action is no text")
    _demand(type(info.get("seat", 0)) is int, "the seat is no number")

    # A record's values have its types.
    record = {name: details[name] for name in ("actions", "span", "point")}
    record |= {"success": info.get("success"), "score": info.get("score"), "invalid": info.get("invalid_action")}
    try:
        check_record_values({**paid, **record})
        _demand(len(pack(info)) <= MOST_TEXT, f"info is longer than {MOST_TEXT} bytes")
    except (ValueError, UserError) as error:
        raise NonsenseError(str(error)) from None
    _demand(not (paid and paid["terminated"] and paid["truncated"]), "an episode both terminated and truncated")


def _require(data: Any, what: str, /, **kinds: Any) -> None:
    """Check that a dict has exactly these items, with these types; a flag is no number."""
    _demand(isinstance(data, dict) and data.keys() == kinds.keys(), f"the {what} is no dict of {', '.join(kinds)}")
    for key, kind in kinds.items():
        good = isinstance(data[key], kind) and (kind is bool or not isinstance(data[key], bool))
        _demand(good, f"{key} of the {what} is {type(data[key]).__name__}")


def _demand(good: bool, what: str) -> None:
    if not good:
        raise NonsenseError(what)
