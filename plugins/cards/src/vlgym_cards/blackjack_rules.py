"""Blackjack's rules and odds: hands, the dealer, and the policy that wins most often. Pure functions.

The deck is endless: every draw is an ace, 2 to 9 with probability 1/13 each, or a ten (10, J, Q, K) with
4/13. An ace counts 11 while that does not bust the hand (then the hand is *soft*). The dealer draws below
17 and stands on every 17. All odds are exact sums over these draws by recursion; no table is copied from
anywhere.

References:
    Sutton and Barto, Reinforcement Learning, 2nd edition, example 5.1 (the rules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

DRAW = {value: (4 if value == 10 else 1) / 13 for value in range(1, 11)}
"""Probability of drawing each value; 1 is the ace."""

DEALER_STANDS = 17

Policy = Callable[["Hand", int], float]
"""(player's hand, value of the dealer's open card) -> probability of hitting."""


class Hand(NamedTuple):
    """What matters of a hand.

    Attributes:
        total: best total; above 21 the hand is bust.
        soft: an ace is counted as 11.
    """

    total: int = 0
    soft: bool = False

    @property
    def bust(self) -> bool:
        """Whether the total exceeds 21."""
        return self.total > 21

    def add(self, value: int) -> Hand:
        """Return the hand with one more card of this value (1 is the ace)."""
        total, soft = self.total + value, self.soft
        if value == 1 and not soft and total + 10 <= 21:
            return Hand(total + 10, True)
        if soft and total > 21:
            return Hand(total - 10, False)
        return Hand(total, soft)


class Odds(NamedTuple):
    """Probabilities of the three results of a hand, from the player's side."""

    win: float
    draw: float
    loss: float

    @property
    def value(self) -> float:
        """Expected reward."""
        return self.win - self.loss


def hand_of(values: Iterable[int]) -> Hand:
    """Return the hand that these values make, in any order."""
    hand = Hand()
    for value in values:
        hand = hand.add(value)
    return hand


def result(player: Hand, dealer: Hand) -> int:
    """Reward when both have stood: 1 win, 0 draw, -1 loss. A bust hand scores 0; the player must not be bust."""
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
def stand(total: int, dealer: int) -> Odds:
    """Odds of standing with `total` (at most 21) against the dealer's open card of value `dealer`."""
    totals = dealer_totals(Hand().add(dealer))
    win = sum(p for t, p in totals.items() if t < total)
    draw = totals.get(total, 0.0)
    return Odds(win, draw, 1.0 - win - draw)


@cache
def best(hand: Hand, dealer: int) -> tuple[str, Odds]:
    """The action that wins most often, `hit` or `stand`, and the odds when playing so to the end.

    The criterion is the probability of winning (the success that is reported), not expected reward, for
    which a draw also counts. Ties stand.
    """
    standing = stand(hand.total, dealer)
    hitting = hit(hand, dealer, best)
    return ("hit", hitting) if hitting.win > standing.win else ("stand", standing)


@cache
def best_value(hand: Hand, dealer: int) -> tuple[str, Odds]:
    """The action with the greatest expected reward, and the odds when playing so to the end. Ties stand."""
    standing = stand(hand.total, dealer)
    hitting = hit(hand, dealer, best_value)
    return ("hit", hitting) if hitting.value > standing.value else ("stand", standing)


def hit(hand: Hand, dealer: int, follow: Callable[[Hand, int], tuple[str, Odds]]) -> Odds:
    """Odds of taking one card and then playing as `follow`."""
    win = draw = loss = 0.0
    for value, share in DRAW.items():
        after = hand.add(value)
        odds = Odds(0.0, 0.0, 1.0) if after.bust else follow(after, dealer)[1]
        win, draw, loss = win + share * odds.win, draw + share * odds.draw, loss + share * odds.loss
    return Odds(win, draw, loss)


def odds_of(policy: Policy) -> Odds:
    """Exact odds of a whole game under a policy, before any card is dealt."""

    @cache
    def follow(hand: Hand, dealer: int) -> tuple[str, Odds]:
        hits = policy(hand, dealer)
        standing = stand(hand.total, dealer)
        if hits == 0:
            return "", standing
        taking = hit(hand, dealer, follow)
        return "", Odds(*(hits * a + (1 - hits) * b for a, b in zip(taking, standing, strict=True)))

    win = draw = loss = 0.0
    for dealer, p in DRAW.items():
        for first, q in DRAW.items():
            for second, r in DRAW.items():
                odds = follow(Hand().add(first).add(second), dealer)[1]
                share = p * q * r
                win, draw, loss = win + share * odds.win, draw + share * odds.draw, loss + share * odds.loss
    return Odds(win, draw, loss)
