"""The types of an environment's constructor arguments, checked against its annotations, so that no environment needs
to: `--arg image_size=300` is a line, not an error somewhere inside."""

from __future__ import annotations

import collections.abc
import inspect
import json
import numbers
import os
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import UserError


def check_argument_types(env_id: str, cls: type, arguments: Mapping[str, Any]) -> None:
    """Check the arguments of a call of a constructor, its bases' included; what is not annotated is not checked.

    Raises:
        UserError: a value is not of the annotated type.
    """
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if "__init__" in vars(base) and base is not object:
            hints |= _read_hints(vars(base)["__init__"])
    for name, value in arguments.items():
        if name in hints and not fits(value, hints[name]):
            raise UserError(f"{env_id}: {name}={value!r} must be {describe(hints[name])}.")


def _read_hints(function: Any) -> dict[str, Any]:
    """Argument -> annotation; nothing where a name is known to type checkers alone."""
    try:
        return {n: hint for n, hint in typing.get_type_hints(inspect.unwrap(function)).items() if n != "return"}
    except (NameError, TypeError, AttributeError):
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value may stand where `hint` is annotated.

    Lists stand for tuples and texts for paths, as JSON has neither; an annotation that says nothing here fits all.
    """
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in inner)
    if kind is typing.Literal:
        return value in inner
    if kind is tuple and Ellipsis not in inner:
        return isinstance(value, (list, tuple)) and len(value) == len(inner) and all(map(fits, value, inner))
    if kind in (list, tuple, collections.abc.Sequence, collections.abc.Iterable):
        return isinstance(value, (list, tuple)) and all(fits(part, inner[0]) for part in value)
    if hint in (int, float):
        return isinstance(value, numbers.Integral if hint is int else numbers.Real) and not isinstance(value, bool)
    if isinstance(hint, type) and issubclass(hint, os.PathLike):
        return isinstance(value, (str, os.PathLike))
    try:
        return isinstance(value, kind or hint)
    except TypeError:  # Any, a type variable, a protocol that cannot be asked
        return True


def describe(hint: Any) -> str:
    """Return an annotation as it is written."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "").replace("collections.abc.", "")


def read_arguments(pairs: Iterable[str], option: str = "--arg") -> dict[str, Any]:
    """Return arguments from `name=value` strings of an option; a value is read as JSON where it is, else as text."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UserError(f"{option} {pair!r} must look like name=value, for example {option} invalid_penalty=0.1.")
        try:
            arguments[name.strip()] = json.loads(value)
        except ValueError:
            arguments[name.strip()] = value
    return arguments
