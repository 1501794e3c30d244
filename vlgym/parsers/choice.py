"""`[3]` after free reasoning: the number of a legal action, short where actions are long (WebShop, ALFWorld).

The prompt then numbers the legal actions, from 1. The last brackets win. An action in quotes, `["turn left"]`, is taken
as it is written: environments with a notation have no list to number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..types import Parsed

_CHOICE = re.compile(r"""\[ *(?:([0-9]{1,6})|"([^"\n]*)") *\]""")


class ChoiceParser:
    """Reads the number, or the quoted action, in the last brackets.

    >>> ChoiceParser().parse("The flag is on my right. [2]", ["left", "right"]).actions
    ('right',)
    >>> ChoiceParser().parse("[3]", ["left", "right"]).failure
    'illegal_action'
    """

    name = "choice"
    version = 1
    numbered = True
    """The prompt numbers the legal actions, and `write_reply` gives `format` a number."""

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return one action, or failure `no_action`, `empty_action`, `illegal_action`; numbers need `legal`."""
        found = list(_CHOICE.finditer(text))
        if not found:
            return Parsed(failure="no_action")
        number, quoted = found[-1].groups()
        if number is None:
            action = quoted.strip()
            return Parsed(actions=(action,), span=found[-1].span()) if action else Parsed(failure="empty_action")
        if not 1 <= int(number) <= len(legal or ()):
            return Parsed(failure="illegal_action")
        return Parsed(actions=((legal or ())[int(number) - 1],), span=found[-1].span())

    def end(self, text: str) -> int | None:
        """Return the length of `text` up to its first choice, or `None`."""
        return next((found.end() for found in _CHOICE.finditer(text) if found[1] or found[2].strip()), None)

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the (single) action in brackets: bare if it is a number from `write_reply`."""
        action = actions[-1] if actions else ""
        choice = f"[{action}]" if isinstance(action, Number) else f'["{action}"]'
        return f"{thoughts} {choice}" if thoughts else choice

    def describe(self) -> str:
        """The reply format in words."""
        return "Think briefly, then end your reply with the number of one legal action in square brackets, such as [1]."


class Number(str):
    """The number of a legal action, apart from an action that is written in digits."""

    __slots__ = ()
