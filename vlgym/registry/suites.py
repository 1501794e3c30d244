"""SuitePart: a plugin's share of a named benchmark: an environment, its items, how often each.

A suite (`magebench-mini`) is the union of the parts from the hook `vlgym_suites` of the plugins.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..env.spec import ID_PATTERN, PLANNERS
from ..errors import SpecError

_SUITE_NAME = re.compile(r"^[a-z][a-z0-9-]*$")


@dataclass(frozen=True)
class SuitePart:
    """Items of one environment in a suite.

    Attributes:
        items: constructor arguments of each item, for example `({"level": "small-v0/90"},)`.
        repeats: how often each seed of an item is played by default.
        planners: settings in which it is reported, for example `("global", "online")`.
        bounds: mean returns of random play and of the oracle, where these are not the id's own.
    """

    suite: str
    env_id: str
    items: tuple[Mapping[str, Any], ...]
    repeats: int = 1
    planners: tuple[str, ...] = ("online",)
    episodes: int = 1
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        place = f"SuitePart {self.suite}, {self.env_id}"
        if not _SUITE_NAME.match(self.suite):
            raise SpecError(f"SuitePart: suite {self.suite!r} must be lower case letters, digits and hyphens.")
        if not ID_PATTERN.match(self.env_id):
            raise SpecError(f"SuitePart {self.suite}: env_id {self.env_id!r} must look like vlgym/Sokoban-v0.")
        if not self.items or not all(isinstance(item, Mapping) for item in self.items):
            raise SpecError(f"{place}: items must be a non-empty tuple of keyword arguments.")
        for name in ("repeats", "episodes"):
            if getattr(self, name) < 1:
                raise SpecError(f"{place}: {name} is {getattr(self, name)}, but must be >= 1.")
        if not self.planners or not set(self.planners) <= set(PLANNERS):
            raise SpecError(f"{place}: planners {self.planners} must be of {PLANNERS}.")

    def to_dict(self) -> dict[str, Any]:
        """Return numbers of items, seeds and repeats, planners and a hash, for registry.yaml."""
        several = {"episodes": self.episodes} if self.episodes > 1 else {}
        bounds = {"bounds": list(self.bounds)} if self.bounds else {}
        return {
            "items": len(self.items), **several, "repeats": self.repeats, "planners": list(self.planners),
            "items_hash": hash_items(self.items), **bounds,
        }  # fmt: skip


def hash_items(items: Sequence[Mapping[str, Any]]) -> str:
    """Return the hash of items, as in registry.yaml."""
    text = json.dumps([dict(item) for item in items], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
