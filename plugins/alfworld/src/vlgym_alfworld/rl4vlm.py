"""Reply parser and reward of RL4VLM's code, and of VL-DAC's copy, which pays less for success."""

import json
from collections.abc import Sequence

from vlgym.types import Parsed

PARSER = "vlgym_alfworld.rl4vlm:SubstringParser"
IMAGE_SIZE = (300, 300)
WIN = 50.0
COMPAT = {None: WIN, "rl4vlm": WIN, "vldac": 1.0}  # argument `compat` -> reward of success
ILLEGAL = 1.0  # subtracted for a reply without an admissible command
EMPTY = "empty_reply"  # failure of a reply without a character: the published code draws a command

_MARKER = '"action":'
_TAIL = 30


class SubstringParser:
    """Reads the first admissible command after `"action":`, else in the last 30 characters."""

    name = "alfworld-rl4vlm"
    version = 1

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        """Return one command, or failure `empty_reply`, `no_action`."""
        lowered = text.lower()
        if not lowered:
            return Parsed(failure=EMPTY)
        start = lowered.find(_MARKER)
        start = start if start >= 0 else max(0, len(lowered) - _TAIL)
        match = next((command for command in legal or () if command in lowered[start:]), None)
        if match is None:
            return Parsed(failure="no_action")
        return Parsed((match,), span=(min(start, len(text)), len(text)))

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        """Write the published JSON reply: thoughts, then the action."""
        action = actions[-1] if actions else ""
        return json.dumps({"thoughts": thoughts.replace('"', "'"), "action": action})

    def describe(self) -> str:
        return (
            'Answer with a JSON object like {"thoughts": "what you see and what to do next", '
            '"action": "ACTION"}, where ACTION is one of the legal actions.'
        )
