"""Blackjack's rules and exact odds."""

import pytest
from vlgym_cards.blackjack_rules import Hand, best, best_value, dealer_totals, hand_of, odds_of, result


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


def test_the_win_rates_of_the_reference_policies_are_reached() -> None:
    random = odds_of(lambda hand, dealer: 0.5)
    standing = odds_of(lambda hand, dealer: 0.0)
    below_17 = odds_of(lambda hand, dealer: float(hand.total < 17))
    winning = odds_of(lambda hand, dealer: float(best(hand, dealer)[0] == "hit"))
    earning = odds_of(lambda hand, dealer: float(best_value(hand, dealer)[0] == "hit"))
    # The sheet's numbers are simulated over 1e5 hands: a standard error of 0.0015.
    assert random.win == pytest.approx(0.279, abs=0.003)
    assert standing.win == pytest.approx(0.381, abs=0.003)
    assert below_17.win == pytest.approx(0.407, abs=0.003)
    assert winning.win == pytest.approx(0.432, abs=0.003)
    assert earning == pytest.approx((0.429, 0.095, 0.476), abs=0.003)
    assert winning.win > earning.win
    assert earning.value > winning.value
