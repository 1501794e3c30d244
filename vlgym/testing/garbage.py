"""Replies of the kind models really write when they fail.

Empty, cut off, wrong format, wrong action, other alphabets, hostile code.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..types import Reply, Turn

_PIECES = (
    "", " ", "\n", "action", "<action>", "</action>", "<action></action>", "<action> </action>", '{"action":',
    '{"action": null}',
    '{"action": ["x"]}', "{{{{", "}}", "<plan>", "</plan>", "<plan>;;</plan>", "__import__('os').system('true')",
    "\x00", "\u202e",
    "\ud83d\ude00", "\u884c\u52d5", "I will think about it.", "0", "-1", "1e309", "NaN", "\\u0000", "%s%n",
    "'; DROP TABLE",
    "<action>fly to the moon</action>", '{"thoughts": "?", "action": "fly to the moon"}',
    "<plan>fly; to; the moon</plan>", "[click]",
    "<|image_pad|>", "<|im_end|>", "a" * 5000, "<action>" * 200, '{"a":' * 100,
)  # fmt: skip


def write_garbage(rng: np.random.Generator, legal: Sequence[str]) -> str:
    """Return a reply that a correct parser should rarely read as a legal action."""
    pieces = [_PIECES[int(i)] for i in rng.integers(len(_PIECES), size=int(rng.integers(1, 4)))]
    kind = int(rng.integers(6))
    if kind == 0:
        pieces.append("".join(chr(int(c)) for c in rng.integers(1, 0x2FFF, size=int(rng.integers(1, 60)))))
    elif kind == 1 and legal:
        pieces.append(f"<action>{legal[int(rng.integers(len(legal)))]} or maybe not</action>")
    elif kind == 2 and legal:
        pieces.append(legal[int(rng.integers(len(legal)))])
    return "".join(pieces).encode("utf-8", "replace").decode("utf-8")


class GarbagePolicy:
    """Answers every turn with garbage, the same for the same episode and turn."""

    name = "garbage"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Write one reply for each turn."""
        return [Reply(write_garbage(np.random.default_rng([turn.seed or 0, turn.turn]), turn.legal)) for turn in turns]
