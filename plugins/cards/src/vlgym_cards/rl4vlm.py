"""The published reply parser ("text projection"), and what `compat="rl4vlm"` sets.

From the reply, lower-cased, the parser keeps what follows the *first* `"action":` (or, without one,
the last character), and looks which legal actions occur in it. Exactly one is the action. At none
or several a random legal action is executed and counted as an invalid turn, where the published
code did not count. The reply is a JSON object with the keys that the published prompts ask for, in
their order, `"action"` last; all before it are the thoughts. Not reproduced, of all four games: the
original card art and the exact wording of prompts.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from vlgym.errors import check_choice
from vlgym.types import Parsed

COMPAT = (None, "rl4vlm")
PROJECTION_PARSER = "vlgym_cards.rl4vlm:ProjectionParser"
_MARKER = '"action":'


class ProjectionParser:
    """The published projection from text to an action.

    Failure codes: `no_action` (no legal action occurs), `ambiguous_action` (several do).
    """

    name = "rl4vlm"
    version = 1
    keys: ClassVar = {"thoughts": '"THOUGHTS"'}  # before the action, with values as in the prompt

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return the one legal action that occurs after the first marker."""
        lowered = text.lower()
        start = lowered.find(_MARKER)
        start = start if start >= 0 else max(0, len(lowered) - 1)
        remainder = lowered[start:]
        matches: list[str] = []

        # The published code looks for "10" first and removes it, so that it is not read as "1".
        if legal and "10" in legal and "10" in remainder:
            matches.append("10")
            remainder = remainder.replace("10", "")
        matches += [each for each in legal or () if each != "10" and each in remainder]

        if len(matches) != 1:
            return Parsed(failure="ambiguous_action" if matches else "no_action")
        return Parsed(actions=(matches[0],), span=(start, len(text)))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write the published JSON reply: the game's keys, then the action.

        `thoughts` may hold the values of all keys as a JSON object.
        """
        # A marker inside the thoughts would be taken for the real one, since the first marker counts.
        values = _read_keys(thoughts, self.keys) or {"thoughts": thoughts}
        plain = {key: value.replace('"', "'") if isinstance(value, str) else value for key, value in values.items()}
        return json.dumps({**plain, "action": actions[-1] if actions else ""})

    def describe(self) -> str:
        shown = "".join(f'"{key}": {value}, ' for key, value in self.keys.items())
        form = f'{{{shown}"action": "ACTION"}}'
        return f"Answer with a JSON object like {form}, where ACTION is one of the legal actions."


class NumberLineParser(ProjectionParser):
    """With the keys of NumberLine's published prompt."""

    name = "rl4vlm-number-line"
    keys: ClassVar = {"current number": "x", "target number": "y", "thoughts": '"THOUGHTS"'}


class FormulaParser(ProjectionParser):
    """With the keys of EZPoints' and Points24's published prompts."""

    name = "rl4vlm-formula"
    keys: ClassVar = {"cards": "[x, y, ...]", "current formula": '"FORMULA"', "thoughts": '"THOUGHTS"'}


def _read_keys(thoughts: str, keys: Iterable[str]) -> dict[str, Any] | None:
    """Return the values of all keys, in their order, where a text holds just these as JSON."""
    try:
        values = json.loads(thoughts)
    except ValueError:
        return None
    fits = isinstance(values, dict) and values.keys() == set(keys)
    return {key: values[key] for key in keys} if fits else None


def apply_compat(compat: str | None, arguments: dict[str, Any], parser: str = PROJECTION_PARSER) -> dict[str, Any]:
    """Return the base class's arguments: these games have no idle action for an unreadable reply.

    `compat` adds the published parser and fallback. Arguments of the caller stay.
    """
    if check_choice("compat", compat, COMPAT) is None:
        return {"invalid_action": "random", **arguments}
    published = {"parser": parser, "invalid_action": "published"}
    return {**published, **{name: value for name, value in arguments.items() if value is not None}}
