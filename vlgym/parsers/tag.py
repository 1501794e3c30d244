"""`<action>turn left</action>` after free reasoning: the strict form of the default style."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..types import Match, Parsed
from .claims import Claim, accept, find_stop, read_claims

TAG = re.compile(r"<(/?)action>", re.IGNORECASE)


class TagParser:
    """Reads the first tag with a legal action, so a model may mention the format before it answers.

    >>> TagParser().parse("<action>ACTION</action>: <action>left</action>", ["left", "right"]).actions
    ('left',)
    >>> TagParser().parse("I go <action>left").failure
    'unclosed_action'
    """

    name = "tag"
    version = 2
    matching = True
    _tag = TAG

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Return one action, or failure `no_action`, `unclosed_action`, `empty_action`."""
        opened = any(not match[1] for match in self._tag.finditer(text))
        failure = "unclosed_action" if opened else "no_action"
        return read_claims(self._list_claims(text), accept(legal, matches), failure)

    def end(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> int | None:
        """Return the length of `text` up to its first complete tag that begins with a legal action, or `None`."""
        return find_stop(self._list_claims(text), accept(legal, matches))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the (single) action in its tag."""
        action = f"<action>{actions[-1] if actions else ''}</action>"
        return f"{thoughts} {action}" if thoughts else action

    def describe(self) -> str:
        return (
            "Think briefly, then end your reply with <action>ACTION</action>, where ACTION is one of the legal actions."
        )

    def _list_claims(self, text: str) -> Iterator[Claim]:
        pairs = find_pairs(text, self._tag)
        return (Claim(self._read_actions(text[start:end]), start, end, stop) for start, end, stop in pairs)

    def _read_actions(self, text: str) -> tuple[str, ...]:
        return (text.strip(),)


def find_pairs(text: str, tag: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """Yield where the content of each pair of tags begins and ends, and where its closing tag does.

    Args:
        tag: matches opening and closing tags; its group 1 is empty in an opening one.
    """
    begun: int | None = None
    for match in tag.finditer(text):
        if not match[1]:
            begun = match.end()
        elif begun is not None:
            yield begun, match.start(), match.end()
            begun = None
