"""`[3]` after free reasoning: the number of a legal action, for long actions (WebShop, ALFWorld).

The prompt then numbers the legal actions, from 1. An action in quotes, `["turn left"]`, is taken as
it is written: environments with a notation have no list to number.
"""

import re
from collections.abc import Iterator, Sequence

from .claims import Claim, ClaimParser

_CHOICE = re.compile(r"""\[ *(?:([0-9]{1,6})|"([^"\n]*)") *\]""")


class ChoiceParser(ClaimParser):
    """Reads the number, or the quoted action, in the first brackets with a legal one.

    >>> ChoiceParser().parse("The flag is on my right. [2]", ["left", "right"]).actions
    ('right',)
    >>> ChoiceParser().parse("[3]", ["left", "right"]).failure
    'illegal_action'
    """

    name = "choice"
    version = 2
    numbered = True  # the prompt numbers the actions, and `write_reply` gives `format` a number

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the (single) action in brackets, in quotes if it is no `Number`."""
        action = actions[-1] if actions else ""
        choice = f"[{action}]" if isinstance(action, Number) else f'["{action}"]'
        return f"{thoughts} {choice}" if thoughts else choice

    def describe(self) -> str:
        end = "end your reply with the number of one legal action in square brackets, such as [1]"
        return f"Think briefly, then {end}."

    def list_claims(self, text: str, legal: Sequence[str]) -> Iterator[Claim]:
        for match in _CHOICE.finditer(text):
            place, quoted = int(match[1] or 0), match[2]
            actions = legal[max(place - 1, 0) : place] if quoted is None else [quoted.strip()]
            yield Claim(tuple(actions), *match.span(), match.end())


class Number(str):
    """The number of a legal action, apart from an action that is written in digits."""

    __slots__ = ()
