"""Words of the apps: six domains, names of people, and codes."""

import json
from collections.abc import Sequence
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

WORDS: dict[str, Any] = json.loads((files("vlgym_screens") / "words.json").read_text(encoding="utf-8"))
SIGNS = "ACDEFHJKLMNPRTUVWXY34679"
"""Signs of codes, none of which is mistaken for another."""
CITIES: Sequence[str] = WORDS["cities"]
ICONS = ("star", "trash", "pen", "heart", "bell", "lock", "share", "flag")
HEADER_ICONS = ("search", "gear", "plus", "menu", "person", "home")
"""Names of icons; icons.json has a shape for each."""


# Words of one kind of app: names of `apps`, nouns of `screens`, titles of rows (`things`; empty:
# people), `detail` (the small print of a row: `time`, `date` or `price`), labels of `toggles`,
# `counts`, `fields`, `facts`, and `choices` with their options.
Domain = SimpleNamespace
DOMAINS = {name: Domain(**domain) for name, domain in WORDS["domains"].items()}


class Draws:
    """Draws from an episode's generator.

    Args:
        rng: the generator; it is the only source of chance.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def number(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`; both belong to it."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.rng.integers(len(items)))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items in a random order, all of them where there are fewer."""
        return [items[int(at)] for at in self.rng.permutation(len(items))[:count]]

    def people(self, count: int) -> list[str]:
        """Return different names of people."""
        first, last = WORDS["first"], WORDS["last"]
        order = self.sample(range(len(first) * len(last)), count)
        return [f"{first[at % len(first)]} {last[at // len(first)]}" for at in order]

    def code(self) -> str:
        """Return four signs."""
        at = self.number(0, len(SIGNS) ** 4 - 1)
        return SIGNS[at % 24] + SIGNS[at // 24 % 24] + SIGNS[at // 576 % 24] + SIGNS[at // 13824]

    def detail(self, domain: Domain) -> str:
        """Return the small print of a row, as the domain has it."""
        if domain.detail == "price":
            return f"{self.number(2, 480)}.{self.number(0, 9)}0"
        if domain.detail == "date":
            return f"{self.number(1, 28)} {self.pick(WORDS['months'])}"
        return f"{self.number(7, 21):02d}:{5 * self.number(0, 11):02d}"
