"""The tokens of a reply with their log-probabilities, as a strip that is darker where the model was less sure."""

from __future__ import annotations

import math

from ..types import LearnerNotes

SHADES = 6
MOST = 5_000  # tokens that are shown


def read_tokens(learner: LearnerNotes) -> list[tuple[str, str, int]]:
    """Return text, probability in words and shade of the tokens of a learner's notes."""
    pairs = zip(learner.tokens[:MOST], learner.log_probs, strict=False)
    return [(text, f"{100 * math.exp(min(0.0, log_prob)):.3g} %", shade(log_prob)) for text, log_prob in pairs]


def shade(log_prob: float) -> int:
    """Return how dark a token is: in even steps of its logarithm, from probability 1 to 1 in 20."""
    return round(max(0.0, min(1.0, -log_prob / math.log(20))) * SHADES)
