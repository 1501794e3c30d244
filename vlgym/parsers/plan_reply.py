"""A whole sequence of actions in one reply, for the Global planner setting of MageBench: `<plan>up; up; left</plan>`.

Actions are separated by `;` or line feeds; list numbers (`1.`, `2)`) and bullets are ignored. The last complete plan
wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..types import Parsed
from .tag import end_of_tag

MAX_ACTIONS = 512
"""Longest plan that is executed; a longer one is cut off."""

_OPEN = re.compile(r"<plan>", re.IGNORECASE)
_CLOSE = re.compile(r"</plan>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)plan>", re.IGNORECASE)
_NUMBER = re.compile(r"^\s*(?:\d{1,4}[.)]\s+|[-*]\s+)")


class PlanParser:
    """Reads the actions between the last `<plan>` and the `</plan>` that follows it.

    >>> PlanParser().parse("<plan>1. up; 2. up; left</plan>").actions
    ('up', 'up', 'left')
    """

    name = "plan"
    version = 1

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return the actions in order, or failure `no_action`, `unclosed_action`, `empty_action`."""
        closes = list(_CLOSE.finditer(text))
        if not closes:
            return Parsed(failure="unclosed_action" if _OPEN.search(text) else "no_action")
        opens = [match for match in _OPEN.finditer(text) if match.end() <= closes[-1].start()]
        if not opens:
            return Parsed(failure="no_action")
        start = opens[-1].end()
        end = next(match.start() for match in closes if match.start() >= start)
        actions = _read_actions(text[start:end])
        return Parsed(actions=actions, span=(start, end)) if actions else Parsed(failure="empty_action")

    def end(self, text: str) -> int | None:
        """Return the length of `text` up to its first complete plan with an action in it, or `None`."""
        return end_of_tag(text, _TAG, holds=lambda inside: bool(_read_actions(inside)))

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


def _read_actions(text: str) -> tuple[str, ...]:
    items = (_NUMBER.sub("", item).strip() for item in re.split(r"[;\n]", text))
    return tuple(item for item in items if item)[:MAX_ACTIONS]
