"""Tags after free reasoning: `<action>left</action>`, and a whole plan, `<plan>up; left</plan>`."""

import re
from collections.abc import Iterator, Sequence

from .claims import Claim, ClaimParser

TAG = re.compile(r"<(/?)action>", re.IGNORECASE)
MAX_ACTIONS = 512  # longest plan that is executed; a longer one is cut off
_NUMBER = re.compile(r"^\s*(?:\d{1,4}[.)]\s+|[-*]\s+)")


class TagParser(ClaimParser):
    """Reads the first tag with a legal action, so a model may mention the format before it answers.

    >>> TagParser().parse("<action>ACTION</action>: <action>left</action>", ["left", "right"]).actions
    ('left',)
    >>> TagParser().parse("I go <action>left").failure
    'unclosed_action'
    """

    name = "tag"
    version = 2
    _tag = TAG

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write thoughts, then the (single) action in its tag."""
        action = f"<action>{actions[-1] if actions else ''}</action>"
        return f"{thoughts} {action}" if thoughts else action

    def describe(self) -> str:
        end = "end your reply with <action>ACTION</action>, where ACTION is one of the legal actions"
        return f"Think briefly, then {end}."

    def _name_failure(self, text: str) -> str:
        opened = any(not match[1] for match in self._tag.finditer(text))
        return "unclosed_action" if opened else "no_action"

    def list_claims(self, text: str, legal: Sequence[str]) -> Iterator[Claim]:
        for start, end, stop in find_pairs(text, self._tag):
            yield Claim(self._read_actions(text[start:end]), start, end, stop)

    def _read_actions(self, text: str) -> tuple[str, ...]:
        return (text.strip(),)


class PlanParser(TagParser):
    """Reads the actions of the first plan that begins with a legal one.

    Actions are separated by `;` or line feeds; list numbers (`1.`, `2)`) and bullets are ignored.

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


def find_pairs(text: str, tag: re.Pattern[str]) -> Iterator[tuple[int, int, int]]:
    """Yield where the content of each pair of tags begins and ends, and where its closing tag does.

    Group 1 of `tag` is empty in an opening tag.
    """
    begun: int | None = None
    for match in tag.finditer(text):
        if not match[1]:
            begun = match.end()
        elif begun is not None:
            yield begun, match.start(), match.end()
            begun = None
