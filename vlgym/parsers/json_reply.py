"""`{"thoughts": "...", "action": "..."}`: the style of the RL4VLM and VL-DAC prompts, read by a real JSON decoder.

The last object in the text that has an `action` key, in any case of letters, wins. Text around it (code fences, prose,
a list) does not matter, nor do line breaks in strings and commas after the last item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..types import Parsed

_MAX_CANDIDATES = 32
_DECODER = json.JSONDecoder(parse_constant=str, strict=False)
_OPEN = re.compile(r"\{(?=\s*[\"}])")
_COMMA = re.compile(r",(?=\s*[}\]])")


def find_objects(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the outermost JSON objects of a text, and where they stand; at most 32 braces that begin none are tried."""
    texts = text, _COMMA.sub(" ", text)
    at = tried = 0
    while tried < _MAX_CANDIDATES and (found := _OPEN.search(text, at)):
        try:
            value, at = decode(texts, found.start())
        except (ValueError, RecursionError):
            tried, at = tried + 1, found.end()
        else:
            yield value, found.start(), at


def decode(texts: Sequence[str], start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at `start`, and where it ends, of the first of some texts that holds one.

    Raises:
        ValueError, RecursionError: none does.
    """
    for text in texts[:-1]:
        try:
            return _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
    return _DECODER.raw_decode(texts[-1], start)


class JsonParser:
    """Reads the `action` of the last JSON object that has one.

    >>> JsonParser().parse('{"thoughts": "the flag is left", "action": "left"}').actions
    ('left',)
    >>> JsonParser().parse("I go left.").failure
    'no_json'
    """

    name = "json"
    version = 2

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return one action, or failure `no_json`, `bad_json`, `no_action`, `empty_action`.

        At most 32 opening braces are tried, from the last one backwards, so the work is bounded.
        """
        texts = text, _COMMA.sub(" ", text)
        failure = "no_json"
        end = len(text)
        for _ in range(_MAX_CANDIDATES):
            start = text.rfind("{", 0, end)
            if start < 0:
                break
            end = start
            try:
                value, stop = decode(texts, start)
            except (ValueError, RecursionError):
                failure = "bad_json" if failure == "no_json" else failure
                continue
            named = {key.casefold(): item for key, item in value.items()} | value
            if "action" not in named:
                failure = "no_action"
                continue
            action = named["action"]
            if isinstance(action, bool) or not isinstance(action, (str, int, float)):
                return Parsed(failure="no_action")
            action = str(action).strip()
            return Parsed(actions=(action,), span=(start, stop)) if action else Parsed(failure="empty_action")
        return Parsed(failure=failure)

    def end(self, text: str) -> int | None:
        """Return the length of `text` up to its first object with an action, or `None`.

        Only the first 32 closing braces are looked at, so the work is bounded.
        """
        at = -1
        for _ in range(_MAX_CANDIDATES):
            at = text.find("}", at + 1)
            if at < 0:
                break
            if self.parse(text[: at + 1]).failure is None:
                return at + 1
        return None

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write a JSON object with thoughts and the (single) action."""
        return json.dumps({"thoughts": thoughts, "action": actions[-1] if actions else ""})

    def describe(self) -> str:
        """The reply format in words."""
        return (
            'Answer with a JSON object: {"thoughts": "what you see and why", "action": "ACTION"}, '
            "where ACTION is one of the legal actions."
        )
