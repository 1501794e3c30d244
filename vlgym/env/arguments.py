"""Constructor arguments of an environment: checks by annotation, and the values in force."""

import collections.abc
import contextlib
import dataclasses
import enum
import functools
import inspect
import json
import math
import numbers
import os
import re
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from ..errors import UserError


def check_argument_types(env_id: str, cls: type, arguments: Mapping[str, Any]) -> None:
    """Check the annotated arguments of a call of a constructor, its bases' included.

    Raises:
        UserError: a value is not of the annotated type.
    """
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if "__init__" in vars(base) and base is not object:
            with contextlib.suppress(NameError, TypeError, AttributeError):  # known to type checkers alone
                hints |= typing.get_type_hints(inspect.unwrap(vars(base)["__init__"]))
    for name, value in arguments.items():
        if name in hints and not fits(value, hints[name]):
            raise UserError(f"{env_id}: {name}={value!r} must be {describe_hint(hints[name])}.")


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value may stand where `hint` is annotated.

    Lists stand for tuples and texts for paths, as JSON has neither. An annotation that cannot be
    checked fits every value.
    """
    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in inner)
    if kind is typing.Literal:
        return value in inner
    if kind in (list, tuple, collections.abc.Sequence, collections.abc.Iterable):
        if not isinstance(value, (list, tuple)):
            return False
        if kind is tuple and Ellipsis not in inner:
            return len(value) == len(inner) and all(map(fits, value, inner))
        return all(fits(part, inner[0]) for part in value)
    if hint in (int, float):
        number = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool)
    if isinstance(hint, type) and issubclass(hint, os.PathLike):
        return isinstance(value, (str, os.PathLike))
    try:
        return isinstance(value, kind or hint)
    except TypeError:  # Any, a type variable, a protocol that cannot be asked
        return True


def describe_hint(hint: Any) -> str:
    """Return an annotation as it is written."""
    return hint.__name__ if isinstance(hint, type) else re.sub(r"typing\.|collections\.abc\.", "", str(hint))


def read_arguments(pairs: Iterable[str], option: str = "--arg") -> dict[str, Any]:
    """Return arguments from `name=value` strings of an option; a value that is no JSON is text."""
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            example = f"for example {option} invalid_penalty=0.1"
            raise UserError(f"{option} {pair!r} must look like name=value, {example}.")
        try:
            arguments[name.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            arguments[name.strip()] = value
    return arguments


DEEPEST_OBJECT = 4  # levels of nested objects that are described; below, a class stands for itself

_HIDDEN = ("self", "vlgym_spec", "render_mode")  # they change nothing that an agent sees or is paid
_AS_GIVEN = {"level"}  # no attribute stands for it: an author's `level` may be another thing


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

    An argument of `base` (which every environment has) has the value that the environment holds.
    Any other has that of the call, else of the attribute of its name, else its default; `None` is
    no value. `env.resolve_arguments()` comes last.
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

    Numbers, texts, lists and dicts stay (a set becomes a sorted list, a number that is not finite
    its name). A path becomes a text, a class or function `module:name`, a parser `name-vN`, and any
    other object its class with its public attributes.
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

    # An object may hold itself.
    kind = to_plain(type(value))
    if depth >= DEEPEST_OBJECT:
        return kind
    if dataclasses.is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        attributes = getattr(value, "__dict__", {})
        parts = {name: part for name, part in attributes.items() if not name.startswith("_")}
    return {"class": kind, **{name: to_plain(part, depth + 1) for name, part in parts.items()}}


@functools.lru_cache(maxsize=256)
def _defaults(cls: type) -> dict[str, Any]:
    """Name -> default of the constructor's arguments; the most derived class decides."""
    defaults: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("gymnasium") or "__init__" not in vars(base) or base is object:
            continue
        for name, each in inspect.signature(vars(base)["__init__"]).parameters.items():
            if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD) and name != "self":
                defaults.setdefault(name, None if each.default is each.empty else each.default)
    return defaults
