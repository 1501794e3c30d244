"""Interactions as declarative steps: what a user does with a page, never code.

    interactions:
      - name: open the menu
        steps:
          - click: "#menu-button"
          - hover: ".card"
          - type: {into: "#name", text: "Ada"}
          - wait: 500            # milliseconds of the page's own clock

Every mistake is reported with file, line and what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from vlgym.errors import UserError, nearest
from vlgym.limited_yaml import TooMuchYaml, check_yaml

KINDS = ("click", "hover", "type", "wait")
MOST_INTERACTIONS = 8
MOST_STEPS = 20
MOST_WAIT_MS = 20_000
MOST_TEXT = 200


class ProjectError(UserError):
    """A project's file is malformed; the message names the file, the line and the fix."""


@dataclass(frozen=True)
class Step:
    """One thing a user does.

    Attributes:
        kind: one of `KINDS`.
        selector: CSS selector of the element (not for `wait`).
        text: what is typed.
        wait_ms: how long is waited, in milliseconds.
    """

    kind: str
    selector: str = ""
    text: str = ""
    wait_ms: int = 0


@dataclass(frozen=True)
class Interaction:
    """Steps after which the page is looked at again."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Place:
    """A value of a YAML file, with where it stands."""

    value: Any
    file: str
    line: int

    def fail(self, problem: str) -> ProjectError:
        """Return the error for a problem at this place."""
        return ProjectError(f"{self.file}, line {self.line}: {problem}")

    def text(self, what: str, longest: int = 400) -> str:
        """Return the value as a non-empty string.

        Raises:
            ProjectError: it is not one.
        """
        if not isinstance(self.value, str) or not self.value.strip() or len(self.value) > longest:
            raise self.fail(f"{what} is {_show(self.value)}; write a string in quotes, of 1 to {longest} characters.")
        return self.value

    def whole(self, what: str, least: int, most: int) -> int:
        """Return the value as a whole number within bounds.

        Raises:
            ProjectError: it is not one.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not least <= self.value <= most:
            raise self.fail(f"{what} is {_show(self.value)}; write a whole number from {least} to {most}.")
        return self.value

    def items(self, what: str, most: int) -> list[Place]:
        """Return the value as a list of places.

        Raises:
            ProjectError: it is not a list, or too long.
        """
        if not isinstance(self.value, list) or len(self.value) > most:
            raise self.fail(
                f"{what} is {_show(self.value)}; write a list of at most {most} items, each begun with '-'."
            )
        return self.value

    def fields(self, what: str, allowed: tuple[str, ...], required: tuple[str, ...] = ()) -> dict[str, Place]:
        """Return the value as a mapping with known keys.

        Raises:
            ProjectError: it is not one, or a key is unknown or missing.
        """
        if not isinstance(self.value, dict):
            raise self.fail(f"{what} is {_show(self.value)}; write 'key: value' pairs with {', '.join(allowed)}.")
        for name, place in self.value.items():
            if name not in allowed:
                raise place.fail(
                    f"{what} has an unknown key {name!r}; there are {', '.join(allowed)}.{nearest(str(name), allowed)}"
                )
        for name in required:
            if name not in self.value:
                raise self.fail(f"{what} lacks {name!r}; add a line '{name}: ...'.")
        return self.value


def read_yaml(text: str, file: str) -> Place:
    """Read YAML (or JSON) as nested places, plain values only.

    Raises:
        ProjectError: the syntax is wrong, the text is beyond the limits of `vlgym.limited_yaml`, a tag asks for an
            object, or a key stands twice.
    """
    try:
        check_yaml(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise ProjectError(f"{file}, line 1: the file is empty; write at least 'title: ...'.")
        return _place(node, file, yaml.SafeLoader(""))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ProjectError(
            f"{file}, line {line}: not valid YAML: {error.problem or error}. Check indentation, quotes and colons "
            f"there."
        ) from None
    except TooMuchYaml as error:
        raise ProjectError(f"{file}: {error}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ProjectError(f"{file}: not valid YAML: {error}. Check that it is plain UTF-8 text.") from None


def read_interactions(place: Place) -> tuple[Interaction, ...]:
    """Read the list below `interactions:`.

    Raises:
        ProjectError: it is malformed.
    """
    return tuple(_read_interaction(item) for item in place.items("interactions", MOST_INTERACTIONS))


def _read_interaction(place: Place) -> Interaction:
    fields = place.fields("an interaction", ("name", "steps"), ("name", "steps"))
    steps = fields["steps"].items("steps", MOST_STEPS)
    if not steps:
        raise fields["steps"].fail(f"steps is empty; add at least one of {', '.join(KINDS)}.")
    return Interaction(fields["name"].text("name", 80), tuple(_read_step(step) for step in steps))


def _read_step(place: Place) -> Step:
    fields = place.fields("a step", KINDS)
    if len(fields) != 1:
        raise place.fail(f"a step has {len(fields)} kinds; write one of {', '.join(KINDS)}, each step begun with '-'.")
    ((kind, value),) = fields.items()
    if kind == "wait":
        return Step(kind, wait_ms=value.whole("wait (milliseconds)", 1, MOST_WAIT_MS))
    if kind == "type":
        parts = value.fields("type", ("into", "text"), ("into", "text"))
        return Step(kind, _selector(parts["into"]), parts["text"].text("text", MOST_TEXT))
    return Step(kind, _selector(value))


def _selector(place: Place) -> str:
    selector = place.text("a selector").strip()
    for opening, closing in ("[]", "()"):
        if selector.count(opening) != selector.count(closing):
            raise place.fail(
                f'selector {selector!r} has unpaired {opening}{closing}; write a CSS selector such as ".card".'
            )
    if selector.startswith("//") or "{" in selector:
        raise place.fail(f'{selector!r} is not a CSS selector; write one such as "#menu > .item" (XPath is not read).')
    return selector


def _place(node: yaml.Node, file: str, loader: yaml.SafeLoader) -> Place:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Place(dict(_pairs(node, file, loader)), file, line)
    if isinstance(node, yaml.SequenceNode):
        return Place([_place(item, file, loader) for item in node.value], file, line)
    return Place(loader.construct_object(node), file, line)


def _pairs(node: yaml.MappingNode, file: str, loader: yaml.SafeLoader) -> Iterator[tuple[str, Place]]:
    seen: set[str] = set()
    for key, value in node.value:
        name = str(key.value)
        if name in seen:
            raise ProjectError(f"{file}, line {key.start_mark.line + 1}: key {name!r} stands twice; remove one.")
        seen.add(name)
        yield name, _place(value, file, loader)


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return f"a mapping with {', '.join(map(str, value)) or 'nothing'}"
    return "a list" if isinstance(value, list) else "empty" if value is None else repr(value)[:60]
