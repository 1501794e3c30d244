"""The rule for a reply without an action: the move for it, its pay (docs/games.md), feedback."""

from collections.abc import Sequence

import numpy as np

from ..types import Parser
from .choice import Number

_SENTENCES = {
    "no_action": "Your reply had no action.",
    "unclosed_action": "The action in your reply was not closed.",
    "empty_action": "The action in your reply was empty.",
    "illegal_action": "The action in your reply is not a legal action.",
    "ambiguous": "Your reply named two different actions.",
    "no_json": "Your reply had no JSON object.",
    "bad_json": "The JSON object in your reply could not be read.",
}


def draw_move(legal: Sequence[str], *seed: int) -> str:
    """Return the legal action that stands for a reply; the draw depends on `seed` alone."""
    return legal[int(np.random.default_rng(seed).integers(len(legal)))]


def pay_stand_in(earned: float, step_cost: float = 0.0) -> float:
    """Return the pay of a move for a reply: its losses, at least a step's cost, and no gain."""
    return min(earned, 0.0 - step_cost)


def write_feedback(failure: str, parser: Parser) -> str:
    """Return at most 200 characters on a failure and the reply format, and nothing of the reply."""
    action = Number("NUMBER") if getattr(parser, "numbered", False) else "ACTION"
    form = parser.format([action])
    sentence = _SENTENCES.get(failure, f"Your reply could not be read: {failure.replace('_', ' ')}.")
    return " ".join((sentence if form == action else f"{sentence} End with {form}.").split())[:200]
