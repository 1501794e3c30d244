"""`<action>turn left</action>` after free reasoning: the default style, which untuned instruct models can follow.

The last complete tag wins, so a model may mention the format while it thinks. Repeated tags never execute twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ..types import Parsed

_OPEN = re.compile(r"<action>", re.IGNORECASE)
_CLOSE = re.compile(r"</action>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)action>", re.IGNORECASE)


class TagParser:
    """Reads the text between the last `<action>` and the `</action>` that follows it.

    >>> TagParser().parse("<action>left</action>, no: <action>right</action>").actions
    ('right',)
    >>> TagParser().parse("I go <action>left").failure
    'unclosed_action'
    """

    name = "tag"
    version = 1

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return one action, or failure `no_action`, `unclosed_action`, `empty_action`."""
        closes = list(_CLOSE.finditer(text))
        if not closes:
            return Parsed(failure="unclosed_action" if _OPEN.search(text) else "no_action")
        close = closes[-1]
        opens = [match for match in _OPEN.finditer(text) if match.end() <= close.start()]
        if not opens:
            return Parsed(failure="no_action")
        start, end = opens[-1].end(), close.start()
        if len(closes) > 1 and closes[-2].start() >= start:
            end = next(match.start() for match in closes if match.start() >= start)
        action = text[start:end].strip()
        if not action:
            return Parsed(failure="empty_action")
        return Parsed(actions=(action,), span=(start, end))

    def end(self, text: str) -> int | None:
        """Return the length of `text` up to its first complete tag with an action in it, or `None`."""
        return end_of_tag(text, _TAG, holds=lambda inside: bool(inside.strip()))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the (single) action in its tag."""
        action = f"<action>{actions[-1] if actions else ''}</action>"
        return f"{thoughts} {action}" if thoughts else action

    def describe(self) -> str:
        """The reply format in words."""
        return (
            "Think briefly, then end your reply with <action>ACTION</action>, where ACTION is one of the legal actions."
        )


def end_of_tag(text: str, tag: re.Pattern[str], *, holds: Callable[[str], bool]) -> int | None:
    """Return the length of `text` up to the first closing tag whose content `holds` what is asked for, or `None`.

    Args:
        text: a reply.
        tag: matches opening and closing tags; its group 1 is empty in an opening one.
        holds: says whether the text between an opening tag and the next closing one is enough.
    """
    return next((stop for start, end, stop in find_pairs(text, tag) if holds(text[start:end])), None)


def find_pairs(text: str, tag: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """Yield where the content of each pair of tags begins and ends, and where its closing tag does; `tag` as above."""
    begun: int | None = None
    for match in tag.finditer(text):
        if not match[1]:
            begun = match.end()
        elif begun is not None:
            yield begun, match.start(), match.end()
            begun = None
