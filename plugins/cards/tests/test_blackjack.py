"""Blackjack: rules through the environment, pictures of short and long hands."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from vlgym_cards.cards import Card

from vlgym.env import VLEnv

Build = Callable[..., VLEnv]
SMALL = ["C2", "D2", "H3", "SA", "CA", "DA", "H2", "S3", "HA", "CA", "DA", "SA", "HA", "CA"]  # 21 at most


def finish(env: Any, draws: list[str], actions: list[str]) -> tuple[float, dict[str, Any]]:
    """Play with a stacked deck; last reward and info."""
    deck = [Card({"A": 1, "K": 13, "Q": 12, "J": 11}.get(name[1:]) or int(name[1:]), name[0]) for name in draws]
    env._draw = lambda rng: deck.pop(0)
    reward, info = 0.0, {}
    for action in actions:
        _, reward, terminated, _, info = env.step(f"<action>{action}</action>")
    assert terminated
    return reward, info


@pytest.mark.parametrize(
    ("player", "dealer", "draws", "actions", "reward"),
    [
        (["H10", "SK"], ["D9", "C10"], [], ["stand"], 1),  # 20 beats 19
        (["H10", "S9"], ["D9", "C10"], [], ["stand"], 0),
        (["H10", "S8"], ["D9", "C10"], [], ["stand"], -1),
        (["H10", "S2"], ["D9", "C7"], ["HQ"], ["stand"], 1),  # the dealer busts
        (["H10", "S6"], ["D9", "C10"], ["HK"], ["hit"], -1),  # the player busts
        (["HA", "SK"], ["DA", "CK"], [], ["stand"], 0),  # no bonus for a natural
        (["H10", "S5"], ["D10", "C10"], ["C6"], ["hit", "stand"], 1),  # 21 does not end the game by itself
        (["HA", "S6"], ["D10", "C7"], ["CK", "C2"], ["hit", "hit", "stand"], 1),  # a soft 17 becomes hard, then 19
        (["H10", "S8"], ["DA", "C6"], [], ["stand"], 1),  # the dealer stands on soft 17
    ],
)
def test_a_game_ends_as_the_rules_say(
    make_env: Build, player: list[str], dealer: list[str], draws: list[str], actions: list[str], reward: float
) -> None:
    env = make_env("Blackjack")
    env.reset(seed=0, options={"player": player, "dealer": dealer})
    got, info = finish(env, draws, actions)
    assert got == reward
    assert info["success"] == info["solved"] == info["return_positive"] == (reward == 1)


def test_draws_have_the_odds_of_the_endless_deck(make_env: Build) -> None:
    env: Any = make_env("Blackjack")
    rng = np.random.default_rng(0)
    values = [env._draw(rng).value() for _ in range(13_000)]
    counts = [values.count(value) for value in range(1, 11)]
    assert counts[9] == pytest.approx(4000, abs=220)  # four standard deviations
    assert all(count == pytest.approx(1000, abs=125) for count in counts[:9])


def test_the_hidden_card_is_nowhere_until_the_game_is_over(make_env: Build) -> None:
    env = make_env("Blackjack")
    views = []
    for hidden in ("CK", "C9"):
        observation, info = env.reset(seed=0, options={"player": ["H10", "SK"], "dealer": ["D9", hidden]})
        assert info["dealer"] == ["D9"]
        views.append((observation["text"], observation["image"].tobytes(), info))
    assert views[0] == views[1]
    observation, *_, info = env.step("<action>stand</action>")
    assert info["dealer"] == ["D9", "C9"]
    before = np.frombuffer(views[0][1], np.uint8).reshape(300, 300, 3)
    assert (observation["image"] != before)[26:124, 79:149].any()


def test_every_card_of_a_hand_can_be_read_in_the_picture(make_env: Build) -> None:
    env: Any = make_env("Blackjack")
    for count in (2, 7, 14):
        base = env.reset(seed=0, options={"player": SMALL[:count], "dealer": ["H7", "SK"]})[0]["image"]
        for place, card in enumerate(list(env.player)):
            for other in (Card(9, card.suit), Card(card.rank, "D" if card.suit != "D" else "C")):
                env.player[place] = other
                assert (env.image() != base).any(axis=2).sum() >= 30, f"card {place + 1} of {count} does not show"
            env.player[place] = card
