"""The published reply parser ("text projection"), and what `compat="rl4vlm"` sets. Not used by default.

From the reply, lower-cased, the parser keeps what follows the *first* `"action":` (or, without one, the
last character), and looks which legal actions occur in it. Exactly one: that is the action. None or
several: a random legal action is executed, which is the `random` policy for invalid replies; here it is
counted as an invalid turn, where the published code did not count.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vlgym.errors import check_choice
from vlgym.types import Parsed

COMPAT = (None, "rl4vlm")
"""Values of the `compat` argument: corrected rules, published rules."""

_MARKER = '"action":'


class ProjectionParser:
    """The published projection from text to an action.

    Failure codes: `no_action` (no legal action occurs), `ambiguous_action` (several do).
    """

    name = "rl4vlm"
    version = 1

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return the one legal action that occurs after the first marker."""
        lowered = text.lower()
        start = lowered.find(_MARKER)
        start = start if start >= 0 else max(0, len(lowered) - 1)
        remainder = lowered[start:]
        found: list[str] = []
        # The published code looks for "10" first and removes it, so that it is not read as "1".
        if legal and "10" in legal and "10" in remainder:
            found.append("10")
            remainder = remainder.replace("10", "")
        found += [action for action in legal or () if action != "10" and action in remainder]
        if len(found) != 1:
            return Parsed(failure="ambiguous_action" if found else "no_action")
        return Parsed(actions=(found[0],), span=(start, len(text)))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write the published JSON reply: thoughts, then the action."""
        # A marker inside the thoughts would be taken for the real one, since the first marker counts.
        thoughts = thoughts.replace('"', "'")
        return json.dumps({"thoughts": thoughts, "action": actions[-1] if actions else ""})

    def describe(self) -> str:
        """The reply format in words."""
        return (
            'Answer with a JSON object like {"thoughts": "THOUGHTS", "action": "ACTION"}, '
            "where ACTION is one of the legal actions."
        )


def apply_compat(compat: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the base class's arguments with the published parser and fallback filled in where `compat`
    asks for them.

    What the caller gave explicitly stays.

    Raises:
        UserError: unknown `compat`.
    """
    if check_choice("compat", compat, COMPAT) is None:
        return arguments
    published = {"parser": "vlgym_cards.rl4vlm:ProjectionParser", "invalid_action": "random"}
    return {**published, **{name: value for name, value in arguments.items() if value is not None}}
