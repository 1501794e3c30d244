"""Draws of a policy: the same random numbers for the same turn, whatever else is in the batch.

A run that was interrupted and resumed, or played with another number of environments side by side, so gives the same
replies, as far as the arithmetic of another batch gives the same numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vlgym.types import Turn


@dataclass(frozen=True)
class Sampling:
    """Settings for choosing tokens.

    Attributes:
        seed: of the random numbers.
        temperature: what logits are divided by before a draw; 0 takes the likeliest tokens.
        max_new_tokens: longest reply, its end-of-turn token included.
    """

    seed: int
    temperature: float
    max_new_tokens: int

    @property
    def greedy(self) -> bool:
        """True if the likeliest tokens are taken."""
        return self.temperature == 0

    def draws(self, turns: Sequence[Turn]) -> Tensor:
        """Random numbers in [0, 1), [max_new_tokens, B] float32. Those of a turn depend on the seed and on environment
        id, episode seed, repeat and number of the turn alone; a longer limit only adds to them.
        """
        if self.greedy:
            return torch.zeros(self.max_new_tokens, len(turns))
        rows = [self._generator(turn).random(self.max_new_tokens, dtype=np.float32) for turn in turns]
        return torch.from_numpy(np.stack(rows, axis=1))

    def _generator(self, turn: Turn) -> np.random.Generator:
        key = f"{self.seed}\n{turn.env_id}\n{turn.seed}\n{turn.repeat}\n{turn.turn}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()))
