"""`{"thoughts": "...", "action": "..."}`: the style of the RL4VLM and VL-DAC prompts.

The first object whose `action`, in any case of letters, is legal is read. Text around it (code
fences, prose, a list) does not matter, nor do line breaks in strings and commas after the last
item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..types import Match, Parsed
from .claims import Claim, accept, find_stop, read_claims

_MAX_CANDIDATES = 32
_DECODER = json.JSONDecoder(parse_constant=str, strict=False)
_OPEN = re.compile(r"\{(?=\s*[\"}])")
_COMMA = re.compile(r",(?=\s*[}\]])")


def find_objects(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the outermost JSON objects of a text and their places, after at most 32 wrong braces."""
    texts = text, _COMMA.sub(" ", text)
    at = tried = 0
    while tried < _MAX_CANDIDATES and (match := _OPEN.search(text, at)):
        try:
            value, at = _decode(texts, match.start())
        except (ValueError, RecursionError):
            tried, at = tried + 1, match.end()
        else:
            yield value, match.start(), at


def _decode(texts: Sequence[str], start: int) -> tuple[Any, int]:
    """Return the JSON value at `start`, and its end, of the first text that holds one."""
    for text in texts[:-1]:
        try:
            return _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
    return _DECODER.raw_decode(texts[-1], start)


class JsonParser:
    """Reads the `action` of the first JSON object that has a legal one.

    >>> JsonParser().parse('{"thoughts": "the flag is left", "action": "left"}').actions
    ('left',)
    >>> JsonParser().parse("I go left.").failure
    'no_json'
    """

    name = "json"
    version = 3
    matching = True

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Return one action, or failure `no_json`, `bad_json`, `no_action`, `empty_action`."""
        objects = list(find_objects(text))
        failure = "no_action" if objects else "bad_json" if "{" in text else "no_json"
        return read_claims(_list_claims(objects), accept(legal, matches), failure)

    def end(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> int | None:
        """Return the length of `text` up to its first object with a legal action, or `None`."""
        return find_stop(_list_claims(find_objects(text)), accept(legal, matches))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write a JSON object with thoughts and the (single) action."""
        return json.dumps({"thoughts": thoughts, "action": actions[-1] if actions else ""})

    def describe(self) -> str:
        return (
            'Answer with a JSON object: {"thoughts": "what you see and why", "action": "ACTION"}, '
            "where ACTION is one of the legal actions."
        )


def _list_claims(objects: Iterable[tuple[Any, int, int]]) -> Iterator[Claim]:
    for value, start, stop in objects:
        waiting = [value]
        while waiting:
            value = waiting.pop(0)
            named = {key.casefold(): item for key, item in value.items()} | value if isinstance(value, dict) else {}
            if "action" not in named:
                waiting += [*named.values(), *(value if isinstance(value, list) else ())]
            elif isinstance(action := named["action"], str | int | float) and not isinstance(action, bool):
                yield Claim((str(action).strip(),), start, stop, stop)
