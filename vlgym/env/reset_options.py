"""The options of `reset`: environments declare them, and `VLEnv.start` gets their read values."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UserError, check_choice, nearest

WRONG_FOR_ALL = ({"no such": "value"}, float("nan"))  # values that no option may take
LEVEL = "level"  # the option that every environment with levels takes


@dataclass(frozen=True)
class ResetOption:
    """One option of `reset`; `whole_number` and `one_of` make the usual ones.

    Attributes:
        meaning: what it chooses, in a few words.
        valid: which values are valid, in words that go on after "must be".
        read: gets the environment and the value; returns the value that `start` gets. It changes
            nothing, and raises `UserError` (with the reason), `ValueError` or `TypeError` where the
            value is not valid.
        wrong: some values that are not valid, for the conformance check.
    """

    meaning: str
    valid: str
    read: Callable[[Any, Any], Any]
    wrong: tuple[Any, ...] = ()


def whole_number(meaning: str, low: int, high: int | Callable[[Any], int], valid: str = "") -> ResetOption:
    """An integer from `low` to `high`, which may be a function of the environment: give `valid`."""

    def read(env: Any, value: Any) -> int:
        most = high(env) if callable(high) else high
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= most:
            raise UserError(f"must be an integer from {low} to {most}.")
        return value

    wrong = (low - 1, low + 0.5, True, "x")
    return ResetOption(meaning, valid or f"an integer from {low} to {high}", read, wrong)


def one_of(meaning: str, choices: Iterable[str]) -> ResetOption:
    """One of a few words."""
    words = tuple(choices)

    def read(env: Any, value: Any) -> str:
        if value not in words:
            raise UserError(f"must be one of {', '.join(words)}.{nearest(str(value), words)}")
        return str(value)

    return ResetOption(meaning, f"one of {', '.join(words)}", read, ("no such choice", 1))


def level_option(count: int) -> ResetOption:
    """The difficulty level of one episode."""
    valid, wrong = f"an integer from 0 to {count - 1}", (-1, count, 0.5, True, "x")
    return ResetOption("the difficulty level", valid, read_level, wrong)


def read_level(env: Any, value: Any) -> int:
    """Return a level of an environment; raise `UserError` for an unknown level."""
    count = len(env.level_arguments)
    if not count:
        raise UserError(f"level={value!r}: {type(env).__name__} has no levels.")
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 0 <= value < count:
        levels = f"an integer from 0 to {count - 1}: there are {count} levels"
        raise UserError(f"level={value!r} must be {levels}.")
    return int(value)


def read_reset_options(env: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that `start` gets.

    Raises:
        UserError: there is no such option, or the value is not valid; the message says what is.
    """
    declared: Mapping[str, ResetOption] = env.reset_options
    checked = {}
    for name, value in options.items():
        if not declared:
            raise UserError(f"reset option {name!r}: {type(env).__name__} takes no options.")
        option = declared[check_choice("reset option", name, declared)]
        try:
            checked[name] = option.read(env, value)
        except UserError as error:
            raise UserError(_explain(name, value, str(error))) from error
        except (TypeError, ValueError):
            raise UserError(_explain(name, value, f"must be {option.valid}.")) from None
    return checked


def begin_level(env: Any, rng: np.random.Generator, options: dict[str, Any]) -> None:
    """Take the level out of options, and go to its part of the generator's sequence."""
    level = options.pop(LEVEL) if env.level_arguments else None
    if level is not None:
        rng.bit_generator.advance((1 + level) << 64)  # type: ignore[attr-defined] # no two begin alike


def plain_options(options: Any) -> dict[str, Any]:
    """Return the options of a call of `reset` as a new dict, with Python's numbers for numpy's."""
    options = options or {}
    if not isinstance(options, Mapping):
        raise UserError(f"reset(options={options!r}): options must be a dict of names and values, or None.")
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}


def _explain(name: str, value: Any, text: str) -> str:
    begun = f"{name}={value!r}"
    if text.startswith(begun):
        return f"reset option {text}"
    return f"reset option {begun}{'' if text.startswith('must ') else ':'} {text}"
