"""A whole sequence of actions in one reply, for the Global planner setting of MageBench: `<plan>up; up; left</plan>`.

Actions are separated by `;` or line feeds; list numbers (`1.`, `2)`) and bullets are ignored. The first plan that
begins with a legal action is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .tag import TagParser

MAX_ACTIONS = 512
"""Longest plan that is executed; a longer one is cut off."""

_NUMBER = re.compile(r"^\s*(?:\d{1,4}[.)]\s+|[-*]\s+)")


class PlanParser(TagParser):
    """Reads the actions of the first plan that begins with a legal one.

    >>> PlanParser().parse("<plan>1. up; 2. up; left</plan>").actions
    ('up', 'up', 'left')
    """

    name = "plan"
    version = 2
    _tag = re.compile(r"<(/?)plan>", re.IGNORECASE)

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the plan in its tag."""
        plan = f"<plan>{'; '.join(actions)}</plan>"
        return f"{thoughts} {plan}" if thoughts else plan

    def describe(self) -> str:
        return (
            "Think briefly, then write the whole sequence of actions, separated by semicolons: "
            "<plan>ACTION; ACTION; ...</plan>. Each ACTION must be one of the legal actions."
        )

    def _read_actions(self, text: str) -> tuple[str, ...]:
        items = (_NUMBER.sub("", item).strip() for item in re.split(r"[;\n]", text))
        return tuple(item for item in items if item)[:MAX_ACTIONS] or ("",)
