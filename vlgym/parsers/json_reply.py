"""`{"thoughts": "...", "action": "..."}`: the style of the RL4VLM and VL-DAC prompts.

The first object whose `action`, in any case of letters, is legal is read. Text around it (code
fences, prose, a list) does not matter, nor do line breaks in strings and commas after the last
item.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from .claims import Claim, ClaimParser

_MAX_CANDIDATES = 32
_DECODER = json.JSONDecoder(parse_constant=str, strict=False)
_OPEN = re.compile(r"\{(?=\s*[\"}])")
_COMMA = re.compile(r",(?=\s*[}\]])")


def find_objects(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the outermost JSON objects of a text and their places, after at most 32 wrong braces."""
    loose = _COMMA.sub(" ", text)
    at = tried = 0
    while tried < _MAX_CANDIDATES and (match := _OPEN.search(text, at)):
        try:
            value, at = _decode(text, loose, match.start())
        except (ValueError, RecursionError):
            tried, at = tried + 1, match.end()
        else:
            yield value, match.start(), at


def _decode(text: str, loose: str, start: int) -> tuple[Any, int]:
    """Return the JSON value at `start`, and its end, of the first text that holds one."""
    with contextlib.suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text, start)
    return _DECODER.raw_decode(loose, start)


class JsonParser(ClaimParser):
    """Reads the `action` of the first JSON object that has a legal one.

    >>> JsonParser().parse('{"thoughts": "the flag is left", "action": "left"}').actions
    ('left',)
    >>> JsonParser().parse("I go left.").failure
    'no_json'
    """

    name = "json"
    version = 3

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write a JSON object with thoughts and the (single) action."""
        return json.dumps({"thoughts": thoughts, "action": actions[-1] if actions else ""})

    def describe(self) -> str:
        return (
            'Answer with a JSON object: {"thoughts": "what you see and why", "action": "ACTION"}, '
            "where ACTION is one of the legal actions."
        )

    def list_claims(self, text: str, legal: Sequence[str]) -> Iterator[Claim]:
        for value, start, stop in find_objects(text):
            waiting = [value]
            while waiting:
                value, named = waiting.pop(0), {}
                if isinstance(value, dict):
                    named = {key.casefold(): item for key, item in value.items()} | value
                action = named.get("action")
                if "action" not in named:
                    waiting += [*named.values(), *(value if isinstance(value, list) else ())]
                elif isinstance(action, str | int | float) and not isinstance(action, bool):
                    yield Claim((str(action).strip(),), start, stop, stop)

    def _name_failure(self, text: str) -> str:
        if next(find_objects(text), None) is not None:
            return "no_action"
        return "bad_json" if "{" in text else "no_json"
