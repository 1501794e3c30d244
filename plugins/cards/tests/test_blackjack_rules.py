"""Blackjack's rules and exact odds."""

from collections.abc import Callable
from functools import cache
from itertools import product

import pytest
from vlgym_cards.blackjack_rules import DRAW, Hand, best, dealer_totals, hand_of, result, stand


@pytest.mark.parametrize(
    ("values", "total", "soft"),
    [
        ([10, 10], 20, False), ([1, 10], 21, True), ([1, 1], 12, True), ([1, 1, 10], 12, False), ([9, 1, 1], 21, True),
        ([1, 6, 10], 17, False), ([10, 5, 1], 16, False), ([1] * 11, 21, True), ([1] * 12, 12, False),
        ([10, 10, 2], 22, False),
    ],
)  # fmt: skip
def test_an_ace_counts_eleven_while_that_does_not_bust(values: list[int], total: int, soft: bool) -> None:
    assert hand_of(values) == Hand(total, soft)
    assert hand_of(values[::-1]) == Hand(total, soft)


def test_the_higher_total_wins_and_a_bust_dealer_loses_to_anything() -> None:
    assert result(Hand(18), Hand(17)) == 1
    assert result(Hand(18), Hand(18)) == 0
    assert result(Hand(18), Hand(19)) == -1
    assert result(Hand(4), Hand(22)) == 1


def test_the_dealer_stands_on_soft_17_and_draws_on_16() -> None:
    assert dealer_totals(Hand(17, True)) == {17: 1.0}
    # From hard 16: an ace makes 17, 2 to 5 make 18 to 21, the other eight of thirteen bust.
    totals = dealer_totals(Hand(16))
    assert {t: round(p * 13) for t, p in totals.items()} == {0: 8, 17: 1, 18: 1, 19: 1, 20: 1, 21: 1}


def win_rate(policy: Callable[[Hand, int], float]) -> float:
    """Probability of winning under a policy, (hand, dealer's open card) -> probability of hitting."""

    @cache
    def follow(hand: Hand, dealer: int) -> float:
        if hand.bust:
            return 0.0
        hits = policy(hand, dealer)
        hitting = sum(share * follow(hand.add(value), dealer) for value, share in DRAW.items()) if hits else 0.0
        return hits * hitting + (1 - hits) * stand(hand.total, dealer)

    deals = product(DRAW.items(), repeat=3)
    return sum(p * q * r * follow(hand_of((first, second)), dealer) for (dealer, p), (first, q), (second, r) in deals)


def test_the_win_rates_of_the_reference_policies_are_reached() -> None:
    # The sheet's numbers are simulated over 1e5 hands: a standard error of 0.0015.
    assert win_rate(lambda hand, dealer: 0.5) == pytest.approx(0.279, abs=0.003)
    assert win_rate(lambda hand, dealer: 0.0) == pytest.approx(0.381, abs=0.003)
    assert win_rate(lambda hand, dealer: float(hand.total < 17)) == pytest.approx(0.407, abs=0.003)
    winning = win_rate(lambda hand, dealer: float(best(hand, dealer)[0] == "hit"))
    assert winning == pytest.approx(0.432, abs=0.003)
