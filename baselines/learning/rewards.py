"""Training's rewards, made from an environment's: scale, normalisation, and MageBench's two rule-based terms.

Evaluations never see any of it. An environment's own penalty for unreadable replies (`--invalid-penalty`) counts in
evaluations and trajectories, too; it is 0 in most. Then such a reply costs nothing but a turn, and where a wrong action
costs more, a model learns to say nothing that can be read. Hence the penalty here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vlgym.errors import check_number
from vlgym.types import StepRecord

NGRAM, REPEATS = 4, 3  # a reply repeats itself if the same 4 words in a row stand in it at least 3 times
REWARD_LIMIT = 10.0  # of a normalised reward


@dataclass(frozen=True)
class RewardOptions:
    """Reward shaping; by default only the penalty for unreadable replies."""

    unreadable_penalty: float = 0.5
    """Subtracted in training where no legal action was read from the reply, in addition to --invalid-penalty."""
    scale: float = 1.0
    """Factor on the environment's reward."""
    normalise: bool = False
    """Divide rewards by the running standard deviation of the discounted return (clipped to +-10)."""
    repetition_penalty: float = 0.0
    """Subtracted when a reply repeats itself: the same 4 words in a row, 3 times, outside the action.

    MageBench (fig. 6, "+rep"): 0.2. What counts as repetition is ours; the paper does not say.
    """
    length_bonus: float = 0.0
    """Added per reply token, for replies shorter than --reward.length-limit (MageBench, "+enc": 0.001)."""
    length_limit: int = 200
    """Tokens from which on a reply gets no length bonus (MageBench: 200)."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        check_number("--reward.scale", self.scale, above=0)
        check_number("--reward.unreadable-penalty", self.unreadable_penalty, 0)
        check_number("--reward.repetition-penalty", self.repetition_penalty, 0)
        check_number("--reward.length-bonus", self.length_bonus, 0)
        check_number("--reward.length-limit", self.length_limit, 1)


class RewardShaper:
    """Shapes one rollout at a time, for a fixed number of environments.

    Args:
        options: what to do.
        slots: number of environments.
        gamma: discount of the return whose deviation normalises.
    """

    def __init__(self, options: RewardOptions, slots: int, gamma: float) -> None:
        self.options, self.gamma = options, gamma
        self.returns = [0.0] * slots
        self.count, self.mean, self.squares = 0, 0.0, 0.0  # of the discounted returns (Welford)

    def shape(
        self, row: Sequence[StepRecord], tokens: Sequence[int], slots: Sequence[int] | None = None
    ) -> list[float]:
        """Rewards of one step.

        Args:
            row: the records.
            tokens: reply lengths.
            slots: which environments they are of; by default all, in order.
        """
        o, shaped = self.options, []
        for slot, record, length in zip(slots or range(len(row)), row, tokens, strict=True):
            reward = record.reward * o.scale
            if o.normalise:
                reward = self._normalise(slot, reward, record.terminated or record.truncated)
            if record.invalid:
                reward -= o.unreadable_penalty
            if o.repetition_penalty and repeats_itself(record):
                reward -= o.repetition_penalty
            if o.length_bonus and length < o.length_limit:
                reward += o.length_bonus * length
            shaped.append(reward)
        return shaped

    def _normalise(self, slot: int, reward: float, ended: bool) -> float:
        self.returns[slot] = self.returns[slot] * self.gamma + reward
        self.count += 1
        difference = self.returns[slot] - self.mean
        self.mean += difference / self.count
        self.squares += difference * (self.returns[slot] - self.mean)
        if ended:
            self.returns[slot] = 0.0
        deviation = math.sqrt(self.squares / self.count) if self.count > 1 else 1.0
        return max(-REWARD_LIMIT, min(REWARD_LIMIT, reward / max(deviation, 1e-8)))

    def get_state(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"returns": self.returns, "count": self.count, "mean": self.mean, "squares": self.squares}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        self.returns = list(state["returns"])
        self.count, self.mean, self.squares = state["count"], state["mean"], state["squares"]


def repeats_itself(record: StepRecord) -> bool:
    """True if the text of a reply, its action left out, holds the same `NGRAM` words in a row `REPEATS` times."""
    text = record.reply
    if record.span is not None:
        text = text[: record.span[0]] + " " + text[record.span[1] :]
    words = text.split()
    seen: dict[tuple[str, ...], int] = {}
    for i in range(len(words) - NGRAM + 1):
        key = tuple(words[i : i + NGRAM])
        seen[key] = seen.get(key, 0) + 1
        if seen[key] >= REPEATS:
            return True
    return False
