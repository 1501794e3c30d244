"""Blackjack's rules and odds: hands, the dealer, and the policy that wins most often.

All odds are exact sums over the draws of the endless deck, by recursion.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

DRAW = {value: (4 if value == 10 else 1) / 13 for value in range(1, 11)}  # value -> probability
DEALER_STANDS = 17


class Hand(NamedTuple):
    """Value of a hand: its best total (bust above 21); `soft` where an ace counts 11."""

    total: int = 0
    soft: bool = False

    @property
    def bust(self) -> bool:
        return self.total > 21

    def add(self, value: int) -> Hand:
        """Return the hand with one more card of this value (1 is the ace)."""
        total, soft = self.total + value, self.soft
        if value == 1 and not soft and total + 10 <= 21:
            return Hand(total + 10, True)
        if soft and total > 21:
            return Hand(total - 10, False)
        return Hand(total, soft)


def hand_of(values: Iterable[int]) -> Hand:
    """Return the hand that these values make."""
    hand = Hand()
    for value in values:
        hand = hand.add(value)
    return hand


def result(player: Hand, dealer: Hand) -> int:
    """Reward when both have stood: 1 win, 0 draw, -1 loss. The player must not be bust."""
    score = 0 if dealer.bust else dealer.total
    return (player.total > score) - (player.total < score)


@cache
def dealer_totals(hand: Hand) -> dict[int, float]:
    """Distribution of the dealer's final total (0 when bust), drawing on from `hand`."""
    if hand.total >= DEALER_STANDS:
        return {0 if hand.bust else hand.total: 1.0}
    totals: dict[int, float] = {}
    for value, share in DRAW.items():
        for total, probability in dealer_totals(hand.add(value)).items():
            totals[total] = totals.get(total, 0.0) + share * probability
    return totals


@cache
def stand(total: int, dealer: int) -> float:
    """Probability of winning by standing with `total` (at most 21) against the dealer's open card."""
    return sum(p for t, p in dealer_totals(Hand().add(dealer)).items() if t < total)


@cache
def best(hand: Hand, dealer: int) -> tuple[str, float]:
    """The action that wins most often, and its probability of winning with best play. Ties stand."""
    standing, hitting = stand(hand.total, dealer), 0.0
    for value, share in DRAW.items():
        after = hand.add(value)
        hitting += 0.0 if after.bust else share * best(after, dealer)[1]
    return ("hit", hitting) if hitting > standing else ("stand", standing)
