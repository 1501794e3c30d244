"""Constructor arguments of an environment: their types, checked by its annotations, and the values in force."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import inspect
import json
import math
import numbers
import os
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from ..errors import UserError


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
            raise UserError(f"{env_id}: {name}={value!r} must be {describe_hint(hints[name])}.")


def _read_hints(function: Any) -> dict[str, Any]:
    """Argument -> annotation; nothing where a name is known to type checkers alone."""
    try:
        return {n: hint for n, hint in typing.get_type_hints(inspect.unwrap(function)).items() if n != "return"}
    except (NameError, TypeError, AttributeError):
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value may stand where `hint` is annotated.

    Lists stand for tuples and texts for paths, as JSON has neither. An annotation that cannot be checked fits every
    value.
    """
    if type(value) is hint:
        return True
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


def describe_hint(hint: Any) -> str:
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
        except (ValueError, RecursionError):
            arguments[name.strip()] = value
    return arguments


DEEPEST_OBJECT = 4
"""Levels of nested objects that are described; below, a class stands for itself."""

_NAMED_KINDS = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_HIDDEN = ("self", "vlgym_spec", "render_mode")
"""Arguments that change nothing that an agent sees or is paid; the card is recorded by itself."""


_AS_GIVEN = {"level"}
"""Arguments that no attribute stands for: an author's `level` may be another thing, or that of an episode."""


def list_arguments(cls: type) -> list[str]:
    """Return the names of all constructor arguments of an environment class, its bases included."""
    return [name for name in _defaults(cls) if name != "vlgym_spec"]


def signature_of(cls: type) -> inspect.Signature:
    """Return the signature of a class's constructor, as the caller sees it."""
    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def bind_arguments(cls: type, values: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of the constructor by name."""
    return {**dict(zip(signature_of(cls).parameters, values, strict=False)), **named} if values else dict(named)


def arguments_in_force(env: object, base: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return name -> value of every argument that has one, as plain data.

    Those of `base` (the arguments of every environment) are what the environment holds. Any other is what was given;
    where nothing or `None` was, what the constructor keeps under the same name, else its default. What
    `env.resolve_arguments()` says comes last. An argument without a value is left out.

    Args:
        base: the class whose arguments are all kept under their names.
    """
    kind: Any = type(env)
    own, values = _defaults(base).keys() - _AS_GIVEN, dict(arguments)
    for name, default in _defaults(kind).items():
        attribute = None if name in _AS_GIVEN else vars(env).get(name)
        if name in own or values.get(name) is None:
            values[name] = default if attribute is None else attribute
    values.update(getattr(env, "resolve_arguments", dict)())
    return {name: to_plain(value) for name, value in values.items() if value is not None and name not in _HIDDEN}


def to_plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON-able data, the same in every process.

    Numbers, texts, lists and dicts stay what they are (a set becomes a sorted list, a number that is not finite its
    name). A path becomes a text, a class or function `module:name`, a parser `name-vN`, and any other object its class
    with its public attributes.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (np.generic, np.ndarray)):
        return to_plain(value.tolist(), depth)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, depth) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((to_plain(item, depth) for item in value), key=str)
    if isinstance(value, (list, tuple)):
        return [to_plain(item, depth) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(getattr(value, "name", None), str) and isinstance(getattr(value, "version", None), int):
        return f"{value.name}-v{value.version}"
    return _describe_object(value, depth)


def _describe_object(value: Any, depth: int) -> Any:
    kind = to_plain(type(value))
    if depth >= DEEPEST_OBJECT:
        return kind
    if dataclasses.is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        parts = {name: part for name, part in getattr(value, "__dict__", {}).items() if not name.startswith("_")}
    return {"class": kind, **{name: to_plain(part, depth + 1) for name, part in parts.items()}}


@functools.lru_cache(maxsize=256)
def _defaults(cls: type) -> dict[str, Any]:
    """Name -> default of the constructor's arguments, in the order of the classes; the most derived class decides."""
    defaults: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("gymnasium") or "__init__" not in vars(base) or base is object:
            continue
        for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items():
            if parameter.kind in _NAMED_KINDS and name != "self":
                default = None if parameter.default is inspect.Parameter.empty else parameter.default
                defaults.setdefault(name, default)
    return defaults
