"""Interactions as declarative steps: what a user does with a page, never code.

    interactions:
      - name: open the menu
        steps:
          - click: "#menu-button"
          - hover: ".card"
          - type: {into: "#name", text: "Ada"}
          - wait: 500            # milliseconds of the page's own clock

Every mistake is reported with the file, the place in it, and what to write instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from vlgym.errors import UserError, check_choice
from vlgym.registry.limited_yaml import read_yaml

KINDS = ("click", "hover", "type", "wait")
MOST_INTERACTIONS = 8
MOST_STEPS = 20
MOST_WAIT_MS = 20_000
MOST_TEXT = 200


class ProjectError(UserError):
    """A project's file is malformed; the message names the file, the place and the fix."""


@dataclass(frozen=True)
class Step:
    """One action of a user: one of `KINDS`, with a CSS selector but for `wait`."""

    kind: str
    selector: str = ""
    text: str = ""
    wait_ms: int = 0


@dataclass(frozen=True)
class Interaction:
    """Steps after which the page is looked at again."""

    name: str
    steps: tuple[Step, ...]


def read_card(text: str, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a project's card. `where` begins the message of an error, here and below."""
    try:
        return read_fields(read_yaml(text), where, keys, ("title",))
    except yaml.YAMLError as error:
        words = f"not valid YAML: {error}. Check indentation, quotes and colons there."
        raise ProjectError(f"{where}: {words}") from None


def read_fields(value: Any, where: str, allowed: tuple[str, ...], required: tuple[str, ...]) -> dict[str, Any]:
    """Return a value that must be a mapping with known keys."""
    if not isinstance(value, dict):
        pairs = f"'key: value' pairs with {', '.join(allowed)}"
        raise ProjectError(f"{where}: found {value!r:.60}; write {pairs}.")
    for name in value:
        check_choice(f"{where}: key", name, allowed, ProjectError)
    for name in required:
        if name not in value:
            raise ProjectError(f"{where} lacks {name!r}; add a line '{name}: ...'.")
    return value


def read_text(value: Any, where: str, longest: int = 400) -> str:
    """Return a value that must be a non-empty string."""
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        wanted = f"a string in quotes, of 1 to {longest} characters"
        raise ProjectError(f"{where} is {value!r:.60}; write {wanted}.")
    return value


def read_number(value: Any, where: str, least: int, most: int) -> int:
    """Return a value that must be a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ProjectError(f"{where} is {value!r:.60}; write a whole number from {least} to {most}.")
    return value


def read_list(value: Any, where: str, least: int, most: int) -> list[Any]:
    """Return a value that must be a list."""
    if not isinstance(value, list) or not least <= len(value) <= most:
        wanted = f"a list of {least} to {most} items, each begun with '-'"
        raise ProjectError(f"{where} is {value!r:.60}; write {wanted}.")
    return value


def read_interactions(value: Any, where: str) -> tuple[Interaction, ...]:
    """Read the list below `interactions:`."""
    interactions = []
    for number, item in enumerate(read_list(value, f"{where}: interactions", 0, MOST_INTERACTIONS), 1):
        place = f"{where}: interaction {number}"
        fields = read_fields(item, place, ("name", "steps"), ("name", "steps"))
        steps = enumerate(read_list(fields["steps"], f"{place}: steps", 1, MOST_STEPS), 1)
        read = tuple(_read_step(step, f"{place}, step {index}") for index, step in steps)
        interactions.append(Interaction(read_text(fields["name"], f"{place}: name", 80), read))
    return tuple(interactions)


def _read_step(value: Any, where: str) -> Step:
    fields = read_fields(value, where, KINDS, ())
    if len(fields) != 1:
        kinds = ", ".join(KINDS)
        raise ProjectError(f"{where} has {len(fields)} kinds; write one of {kinds}, each begun with '-'.")

    # The kind decides the form of its argument.
    ((kind, argument),) = fields.items()
    where = f"{where}: {kind}"
    if kind == "wait":
        return Step(kind, wait_ms=read_number(argument, where, 1, MOST_WAIT_MS))
    if kind == "type":
        parts = read_fields(argument, where, ("into", "text"), ("into", "text"))
        return Step(kind, _selector(parts["into"], where), read_text(parts["text"], where, MOST_TEXT))
    return Step(kind, _selector(argument, where))


def _selector(value: Any, where: str) -> str:
    selector = read_text(value, where).strip()
    unpaired = any(selector.count(pair[0]) != selector.count(pair[1]) for pair in ("[]", "()"))
    if unpaired or selector.startswith("//") or "{" in selector:
        raise ProjectError(f'{where}: {selector!r} is no CSS selector; write one such as "#menu > .item".')
    return selector
