"""Blackjack: rules through the environment, pictures of short and long hands."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from vlgym_cards.art import FELT
from vlgym_cards.blackjack_rules import best, odds_of
from vlgym_cards.cards import Card

from vlgym.env import VLEnv
from vlgym.errors import UserError

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


def test_the_oracle_wins_as_often_as_the_recursion_says(make_env: Build) -> None:
    env: Any = make_env("Blackjack")
    rng = np.random.default_rng(2)
    env.np_random = rng
    wins, games = 0, 20_000
    for _ in range(games):
        env.start(rng, {})
        while not env.act(env.oracle()).terminated:
            pass
        wins += env.success()
    expected = odds_of(lambda hand, dealer: float(best(hand, dealer)[0] == "hit")).win
    assert wins / games == pytest.approx(expected, abs=4 * (0.25 / games) ** 0.5)
    assert expected == pytest.approx(0.432, abs=0.001)


def test_the_hidden_card_is_nowhere_until_the_game_is_over(make_env: Build, say: Callable[[str], str]) -> None:
    env = make_env("Blackjack")
    seen = []
    for hidden in ("CK", "C9"):
        observation, info = env.reset(seed=0, options={"player": ["H10", "SK"], "dealer": ["D9", hidden]})
        assert info["dealer"] == ["D9"]
        seen.append((observation["text"], observation["image"].tobytes(), info))
    assert seen[0] == seen[1]
    observation, *_, info = env.step(say("stand"))
    assert info["dealer"] == ["D9", "C9"]
    before = np.frombuffer(seen[0][1], np.uint8).reshape(300, 300, 3)
    assert (observation["image"] != before)[26:124, 79:149].any()


@pytest.mark.parametrize("count", range(2, 15))
def test_every_card_of_a_hand_can_be_read_in_the_picture(make_env: Build, count: int) -> None:
    env: Any = make_env("Blackjack")
    hand = SMALL[:count]
    base = env.reset(seed=0, options={"player": hand, "dealer": ["H7", "SK"]})[0]["image"]
    assert (base[:, -4:] == FELT).all()
    assert (base[-2:] == FELT).all()
    for place, card in enumerate(list(env.player)):
        for other in (Card(9, card.suit), Card(card.rank, "D" if card.suit != "D" else "C")):
            env.player[place] = other
            changed = (env.image() != base).any(axis=2)
            assert changed.sum() >= 30, f"card {place + 1} of {count} does not show"
            assert not changed[:150].any()
        env.player[place] = card


def test_even_a_hand_of_21_aces_stays_on_the_canvas(make_env: Build) -> None:
    env: Any = make_env("Blackjack")
    env.reset(seed=0)
    env.player = [Card(1, "S")] * 22
    image = env.image()
    white = (image == 255).all(axis=2)
    assert white[150:298, 5:295].mean() > 0.5
    assert (image[:, 296:] == FELT).all()
    assert (image[299:] == FELT).all()


def test_the_text_tells_no_card(make_env: Build) -> None:
    env = make_env("Blackjack")
    texts = {env.reset(seed=seed)[0]["text"] for seed in range(20)}
    assert len(texts) == 1


def test_the_oracle_thinks_in_both_totals(make_env: Build) -> None:
    env = make_env("Blackjack")
    env.reset(seed=0, options={"player": ["HA", "S6"], "dealer": ["D10", "C7"]})
    assert env.solve() == "player soft 17 dealer 10; hit <action>hit</action>"
    env.reset(seed=0, options={"player": ["HK", "SQ"], "dealer": ["DA", "C7"]})
    assert env.solve() == "player 20 dealer A; stand <action>stand</action>"


def test_no_game_of_legal_actions_reaches_the_turn_limit_unfinished(make_env: Build, play: Callable) -> None:
    env: Any = make_env("Blackjack")
    env.reset(seed=0, options={"player": ["HA", "SA"], "dealer": ["D10", "C7"]})
    env._draw = lambda rng: Card(1, "H")
    rewards, terminated, truncated, info = play(env, ["hit"] * 30)
    assert len(rewards) == 20  # two aces and nineteen more make 21, the next one busts
    assert terminated
    assert not truncated
    assert info["player_total"] == 22


@pytest.mark.parametrize(
    "options",
    [{"player": ["H5"]}, {"player": ["HK", "SK", "D2"]}, {"dealer": ["H5"]}, {"dealer": ["H5", "X7"]}, {"player": 17}],
)
def test_bad_options_are_named(make_env: Build, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        make_env("Blackjack").reset(seed=0, options=options)
