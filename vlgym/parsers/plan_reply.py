"""A whole sequence of actions in one reply, for the Global planner setting of MageBench: `<plan>up; up; left</plan>`.

Actions are separated by `;` or line feeds; list numbers (`1.`, `2)`) and bullets are ignored. The first plan that
begins with a legal action is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..types import Match, Parsed
from .claims import Claim, accept, find_stop, read_claims
from .tag import find_pairs

MAX_ACTIONS = 512
"""Longest plan that is executed; a longer one is cut off."""

_TAG = re.compile(r"<(/?)plan>", re.IGNORECASE)
_NUMBER = re.compile(r"^\s*(?:\d{1,4}[.)]\s+|[-*]\s+)")


class PlanParser:
    """Reads the actions of the first plan that begins with a legal one.

    >>> PlanParser().parse("<plan>1. up; 2. up; left</plan>").actions
    ('up', 'up', 'left')
    """

    name = "plan"
    version = 2
    matching = True

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Return the actions in order, or failure `no_action`, `unclosed_action`, `empty_action`."""
        opened = any(not match[1] for match in _TAG.finditer(text))
        return read_claims(_list_claims(text), accept(legal, matches), "unclosed_action" if opened else "no_action")

    def end(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> int | None:
        """Return the length of `text` up to its first complete plan that begins with a legal action, or `None`."""
        return find_stop(_list_claims(text), accept(legal, matches))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the plan in its tag."""
        plan = f"<plan>{'; '.join(actions)}</plan>"
        return f"{thoughts} {plan}" if thoughts else plan

    def describe(self) -> str:
        """The reply format in words."""
        return (
            "Think briefly, then write the whole sequence of actions, separated by semicolons: "
            "<plan>ACTION; ACTION; ...</plan>. Each ACTION must be one of the legal actions."
        )


def _list_claims(text: str) -> Iterator[Claim]:
    pairs = find_pairs(text, _TAG)
    return (Claim(_read_actions(text[start:end]) or ("",), start, end, stop) for start, end, stop in pairs)


def _read_actions(text: str) -> tuple[str, ...]:
    items = (_NUMBER.sub("", item).strip() for item in re.split(r"[;\n]", text))
    return tuple(item for item in items if item)[:MAX_ACTIONS]
