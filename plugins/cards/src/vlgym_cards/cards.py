"""Playing cards: ranks, suits, and drawing from an endless deck."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

SUITS = ("C", "D", "H", "S")  # clubs, diamonds, hearts, spades
RANKS = range(1, 14)  # 1 is the ace, 11 to 13 are jack, queen and king
_SYMBOLS = {1: "A", 10: "10", 11: "J", 12: "Q", 13: "K"}


@dataclass(frozen=True)
class Card:
    """One card: rank 1 (ace) to 13 (king), suit one of `SUITS`."""

    rank: int
    suit: str

    @property
    def symbol(self) -> str:
        """The print on the card: `A`, `2` to `10`, `J`, `Q`, `K`."""
        return _SYMBOLS.get(self.rank, str(self.rank))

    def value(self, *, faces_as_ten: bool = True) -> int:
        """Its number: the rank, where faces count 10 or (`faces_as_ten=False`) 11, 12, 13."""
        return min(self.rank, 10) if faces_as_ten else self.rank

    def __str__(self) -> str:
        return f"{self.suit}{self.symbol}"


def draw_suit(rng: np.random.Generator) -> str:
    return SUITS[int(rng.integers(len(SUITS)))]


def draw_card(rng: np.random.Generator) -> Card:
    """Draw rank and suit uniformly from an endless deck, so the same card may come again."""
    return Card(int(rng.integers(1, 14)), draw_suit(rng))


def names(cards: Iterable[Card]) -> list[str]:
    """Their names, suit first: `["H5", "SK"]`."""
    return [str(card) for card in cards]
