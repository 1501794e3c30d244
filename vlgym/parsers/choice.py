"""`[3]` after free reasoning: the number of a legal action, for long actions (WebShop, ALFWorld).

The prompt then numbers the legal actions, from 1. An action in quotes, `["turn left"]`, is taken as
it is written: environments with a notation have no list to number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..types import Match, Parsed
from .claims import Claim, accept, find_stop, read_claims

_CHOICE = re.compile(r"""\[ *(?:([0-9]{1,6})|"([^"\n]*)") *\]""")


class ChoiceParser:
    """Reads the number, or the quoted action, in the first brackets with a legal one.

    >>> ChoiceParser().parse("The flag is on my right. [2]", ["left", "right"]).actions
    ('right',)
    >>> ChoiceParser().parse("[3]", ["left", "right"]).failure
    'illegal_action'
    """

    name = "choice"
    version = 2
    matching = True
    numbered = True  # the prompt numbers the legal actions, and `write_reply` gives `format` a number

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Return one action, or failure `no_action`, `empty_action`, `illegal_action`."""
        return read_claims(_list_claims(text, legal or ()), accept(legal, matches), "no_action")

    def end(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> int | None:
        """Return the length of `text` up to its first choice of a legal action, or `None`."""
        return find_stop(_list_claims(text, legal or ()), accept(legal, matches))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the (single) action in brackets, in quotes if it is no `Number`."""
        action = actions[-1] if actions else ""
        choice = f"[{action}]" if isinstance(action, Number) else f'["{action}"]'
        return f"{thoughts} {choice}" if thoughts else choice

    def describe(self) -> str:
        end = "end your reply with the number of one legal action in square brackets, such as [1]"
        return f"Think briefly, then {end}."


def _list_claims(text: str, legal: Sequence[str]) -> Iterator[Claim]:
    for match in _CHOICE.finditer(text):
        number, quoted = match.groups()
        actions = (quoted.strip(),) if number is None else tuple(legal[max(int(number) - 1, 0) : int(number)])
        yield Claim(actions, *match.span(), match.end())


class Number(str):
    """The number of a legal action, apart from an action that is written in digits."""

    __slots__ = ()
