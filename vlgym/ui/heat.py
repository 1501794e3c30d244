"""The tokens of a reply with their log-probabilities, as a strip that is darker where the model was less sure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .lines import as_number, as_text

SHADES = 6
MOST = 5_000  # tokens that are shown


def read_tokens(learner: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return text, probability in words and shade of the tokens that a learner wrote into a record; none where it wrote
    none, or the lists do not fit."""
    texts, log_probs = learner.get("tokens"), learner.get("log_probs")
    if not isinstance(texts, list) or not isinstance(log_probs, list) or len(texts) != len(log_probs):
        return []
    found = []
    for text, said in zip(texts[:MOST], log_probs[:MOST], strict=True):
        log_prob = as_number(said)
        if log_prob is None:
            return []
        found.append((as_text(text), f"{100 * math.exp(min(0.0, log_prob)):.3g} %", shade(log_prob)))
    return found


def shade(log_prob: float) -> int:
    """Return how dark a token is: in even steps of its logarithm, from probability 1 to 1 in 20."""
    return round(max(0.0, min(1.0, -log_prob / math.log(20))) * SHADES)
