"""The engine of the learners: it samples replies, and says again how likely stored replies are.

Both go through the same prefill (`prefill.py`) and the same suppressed tokens, so that the two agree; every update of a
learner measures how well.
"""

from __future__ import annotations

from .sampler import Sampler
from .scorer import Scorer


class Engine(Sampler, Scorer):
    """Samples and scores with one model; arguments are those of `Sampler`.

    Attributes:
        name: what a run's record calls it.
    """

    name = "engine"
