"""Tokens and cost of an evaluation, while it runs and over all its sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import FailedError, check_number
from ..play.trajectory import METADATA, read_trajectories
from ..types import Usage

MILLION = 1_000_000


class BudgetSpentError(FailedError):
    """`--max-cost` is reached. Next step: `--resume` with a higher one."""


@dataclass(frozen=True)
class Prices:
    """Dollars for a million tokens; `None` if unknown."""

    prompt: float | None = None
    completion: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("--price-in", self.prompt), ("--price-out", self.completion)):
            if value is not None:
                check_number(name, value, 0)

    def __bool__(self) -> bool:
        return self.prompt is not None or self.completion is not None

    def cost(self, usage: Usage) -> float:
        return (usage.prompt_tokens * (self.prompt or 0) + usage.completion_tokens * (self.completion or 0)) / MILLION

    def to_dict(self) -> dict[str, float] | None:
        """Return what a run's record says: `{"in", "out"}`; `None` without prices."""
        return {"in": self.prompt or 0.0, "out": self.completion or 0.0} if self else None


class Meter:
    """Adds up tokens and cost of replies."""

    def __init__(self, prices: Prices, max_cost: float | None = None) -> None:
        self.prices, self.max_cost = prices, max_cost
        self.replies = self.tokens = 0
        self.cost = 0.0

    def add(self, usage: Usage | None) -> None:
        self.replies += 1
        if usage is not None:
            self.tokens += usage.prompt_tokens + usage.completion_tokens
            self.cost += self.prices.cost(usage)

    def add_folder(self, folder: Path) -> None:
        """Count the replies that a folder holds."""
        if (folder / METADATA).exists():
            for episode in read_trajectories(folder, images=False):
                for record in episode:
                    self.add(record.usage)

    def check(self) -> None:
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetSpentError(f"${self.cost:.4f} are spent, --max-cost is ${self.max_cost:g}.")
