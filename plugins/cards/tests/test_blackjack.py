"""Blackjack: rules, exact odds, pictures of short and long hands."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from vlgym_cards.blackjack_rules import DRAW, Hand, best, hand_of, stand
from vlgym_cards.cards import Card

from vlgym.env import VLEnv

Build = Callable[..., VLEnv]
SMALL = ["C2", "D2", "H3", "SA", "CA", "DA", "H2", "S3", "HA", "CA", "DA", "SA", "HA", "CA"]  # 21 at most


@pytest.mark.parametrize(
    ("player", "dealer", "ranks", "actions", "reward"),
    [
        ("H10 SK", "D9 C10", [], ["stand"], 1),  # 20 beats 19
        ("H10 S9", "D9 C10", [], ["stand"], 0),
        ("H10 S8", "D9 C10", [], ["stand"], -1),
        ("H10 S2", "D9 C7", [12], ["stand"], 1),  # the dealer busts
        ("H10 S6", "D9 C10", [13], ["hit"], -1),  # the player busts
        ("HA SK", "DA CK", [], ["stand"], 0),  # no bonus for a natural
        ("H10 S5", "D10 C10", [6], ["hit", "stand"], 1),  # 21 does not end the game by itself
        ("HA S6", "D10 C7", [13, 2], ["hit", "hit", "stand"], 1),  # soft 17 becomes hard, then 19
        ("H10 S8", "DA C6", [], ["stand"], 1),  # the dealer stands on soft 17
    ],
)
def test_a_game_ends_as_the_rules_say(make_env, play, player, dealer, ranks, actions, reward):
    env: Any = make_env("Blackjack", {"player": player.split(), "dealer": dealer.split()})
    env._draw = lambda rng: Card(ranks.pop(0), "H")
    rewards, terminated, _, info = play(env, actions)
    assert (rewards[-1], terminated) == (reward, True)
    assert info["success"] == info["solved"] == info["return_positive"] == (reward == 1)


def win_rate(policy: Callable[[Hand, int], float]) -> float:
    """Probability of winning when the policy says how likely a hit is."""

    @cache
    def follow(hand: Hand, dealer: int) -> float:
        if hand.bust:
            return 0.0
        hits = policy(hand, dealer)
        after = [(share, hand.add(value)) for value, share in DRAW.items()] if hits else []
        hitting = sum(share * follow(then, dealer) for share, then in after)
        return hits * hitting + (1 - hits) * stand(hand.total, dealer)

    return sum(
        p * q * r * follow(hand_of((first, second)), dealer)
        for (dealer, p), (first, q), (second, r) in product(DRAW.items(), repeat=3)
    )


@pytest.mark.parametrize(
    ("policy", "rate"),
    [
        (lambda hand, dealer: 0.5, 0.279),
        (lambda hand, dealer: 0.0, 0.381),
        (lambda hand, dealer: float(hand.total < 17), 0.407),
        (lambda hand, dealer: float(best(hand, dealer)[0] == "hit"), 0.432),
    ],
)
def test_the_win_rates_of_the_reference_policies_are_reached(policy: Callable, rate: float) -> None:
    # The sheet's numbers are simulated over 1e5 hands: a standard error of 0.0015.
    assert win_rate(policy) == pytest.approx(rate, abs=0.003)


def test_the_hidden_card_is_nowhere_until_the_game_is_over(make_env: Build) -> None:
    env = make_env("Blackjack")
    views = []
    for hidden in ("CK", "C9"):
        start = {"player": ["H10", "SK"], "dealer": ["D9", hidden]}
        observation, info = env.reset(seed=0, options=start)
        assert info["dealer"] == ["D9"]
        views.append((observation["text"], observation["image"].tobytes(), info, env.describe()))
    assert views[0] == views[1]
    observation, *_, info = env.step("<action>stand</action>")
    assert info["dealer"] == ["D9", "C9"]
    before = np.frombuffer(views[0][1], np.uint8).reshape(300, 300, 3)
    assert (observation["image"] != before)[26:124, 79:149].any()


def test_a_thought_calls_a_hand_soft_whose_ace_counts_11(make_env: Build) -> None:
    for cards, thought in (("HA S6", "player soft 17 dealer 9; hit"), ("H10 S7", "player 17 dealer 9; hit")):
        assert make_env("Blackjack", {"player": cards.split(), "dealer": ["D9", "CA"]}).think("hit") == thought


def test_every_card_of_a_hand_can_be_read_in_the_picture(make_env: Build) -> None:
    env: Any = make_env("Blackjack")
    for count in (2, 7, 14):
        env.reset(seed=0, options={"player": SMALL[:count], "dealer": ["H7", "SK"]})
        base = env.image()
        for place, card in enumerate(list(env.player)):
            for other in (Card(9, card.suit), Card(card.rank, "D" if card.suit != "D" else "C")):
                env.player[place] = other
                changed = (env.image() != base).any(axis=2).sum()
                assert changed >= 30, f"card {place + 1} of {count} does not show"
            env.player[place] = card
