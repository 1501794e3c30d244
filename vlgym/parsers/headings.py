"""MageBench's reply formats: headings instead of tags; `protocol="magebench"` chooses them.

Online: `# analyze`, some text, `# action`, one action. Global: `### Analyze`, some text, `###
Actions`, the actions separated by commas. Both are read as by its program: the text from the first
heading to the next one, or the whole reply without a heading; case matters. There is no stop rule,
as without a heading the whole reply counts.
"""

from collections.abc import Sequence

from ..types import Parsed
from .tag import MAX_ACTIONS

ONLINE, GLOBAL = "# action", "### Actions"


def _inside(text: str, heading: str) -> tuple[int, int, bool]:
    """Return `[start, end)` from the first heading to the second, or of the whole."""
    position = text.find(heading)
    if position < 0:
        return 0, len(text), False
    start = position + len(heading)
    second = text.find(heading, start)
    return start, second if second >= 0 else len(text), True


def _write(analyze: str, heading: str, thoughts: str, body: str) -> str:
    """Write the thoughts, without the other heading, then the body, under their headings."""
    thoughts = thoughts.replace(heading, heading.lstrip("# ").lower())
    return f"{analyze}\n{thoughts}\n{heading}\n{body}" if thoughts else f"{heading}\n{body}"


def _ask(analyze: str, rest: str) -> str:
    parts = "Answer in two parts, each under its heading on a line of its own"
    return f"{parts}: {analyze} and what you see and plan, {rest}"


class HeadingParser:
    """Reads the one action between the first `# action` and the second, or the reply's end."""

    name = "headings"
    version = 2

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return one action, or failure `no_action` (none is legal, exactly), `empty_action`."""
        start, end, headed = _inside(text, ONLINE)
        inside = text[start:end]
        action = inside.strip()
        if not action:
            return Parsed(failure="empty_action" if headed else "no_action")
        if action not in legal if legal is not None else not headed:
            return Parsed(failure="no_action")
        start += len(inside) - len(inside.lstrip())
        return Parsed(actions=(action,), span=(start, start + len(action)))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write the thoughts under their heading, then the (single) action under its own."""
        return _write("# analyze", ONLINE, thoughts, actions[-1] if actions else "")

    def describe(self) -> str:
        return _ask("# analyze", f"then {ONLINE} and one of the legal actions, with nothing after it.")


class HeadingPlanParser:
    """Reads the actions between the first `### Actions` and the second, or the reply's end."""

    name = "headings-plan"
    version = 3

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return the actions in order, at most 512, or failure `no_action`."""
        start, end, _ = _inside(text, GLOBAL)
        items = (item.strip() for item in text[start:end].split(","))
        actions = tuple(item for item in items if item and (legal is None or item in legal))[:MAX_ACTIONS]
        return Parsed(actions=actions, span=(start, end)) if actions else Parsed(failure="no_action")

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write the thoughts under their heading, then the plan under its own."""
        return _write("### Analyze", GLOBAL, thoughts, ", ".join(actions))

    def describe(self) -> str:
        plan = "the whole sequence of actions, separated by commas, each one of the legal actions"
        return _ask("### Analyze", f"then {GLOBAL} and {plan}.")
