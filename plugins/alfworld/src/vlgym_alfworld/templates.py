"""Action templates: commands whose objects the player fills in from the picture, matched against what is there.

The list of legal actions names furniture only: where one can go, and the doors where one stands, whether they are open
or not. What is held or seen is named nowhere in it; a command that names such a thing is spelled from the picture, and
taken if the engine admits it now. All others are refused in one and the same way: what is not there, what is not seen
and what cannot be done are told apart by nothing. This module reads strings only; it knows no engine and no state.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

TEMPLATES = (
    "take OBJECT from RECEPTACLE",
    "move OBJECT to RECEPTACLE",
    "use OBJECT",
    "clean OBJECT with RECEPTACLE",
    "heat OBJECT with RECEPTACLE",
    "cool OBJECT with RECEPTACLE",
    "slice OBJECT with OBJECT",
)
"""Commands beside the listed ones, with the words that the player fills in as capitals."""

_OLDER = ("put OBJECT in/on RECEPTACLE",)
"""What engines before alfworld 0.4 say for `move .. to ..`."""

_SLOT = re.compile(r"[A-Z]+")
_FORMS = tuple(re.compile(".+".join(re.escape(part) for part in _SLOT.split(form))) for form in (*TEMPLATES, *_OLDER))
_DOOR = re.compile(r"(?:open|close) (.+)")


def list_furniture_actions(commands: Sequence[str]) -> list[str]:
    """Return the legal actions that need no sight: `go to` each other piece of furniture, and `open` and `close` each
    door where the agent is, whichever of the two it needs."""
    going = [command for command in commands if command.startswith("go to ")]
    doors = dict.fromkeys(match[1] for match in map(_DOOR.fullmatch, commands) if match)
    return going + [f"{verb} {place}" for place in doors for verb in ("open", "close")]


def match_template(wanted: str, commands: Sequence[str]) -> str | None:
    """Return the command that fits a template and that `wanted` spells, or `None`.

    Case, runs of white space and the sign before an object's number do not matter.

    Args:
        wanted: what the player writes.
        commands: what the engine admits now.
    """
    spelled = _plain(wanted)
    fitting = (command for command in commands if _plain(command) == spelled)
    return next((command for command in fitting if any(form.fullmatch(command) for form in _FORMS)), None)


def _plain(text: str) -> str:
    return " ".join(text.replace("#", " ").split()).casefold()
