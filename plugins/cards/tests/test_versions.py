"""The versions that need the picture, and what a blind player still wins."""

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from vlgym_cards.blind import EZPointsTries, NumberLineScript, Points24Tries
from vlgym_cards.cards import Card
from vlgym_cards.ez_points import PAIRS, partners

from vlgym.sight.blind import BlindPlayer

Play = Callable[..., Any]


def test_the_second_target_follows_the_first_and_ends_the_episode(make_env: Play, play: Play) -> None:
    env = make_env("NumberLine-v1")
    env.reset(seed=1, options={"current": 2, "target": 3})
    before = env.image()
    rewards, terminated, _, info = play(env, ["+"])
    assert (rewards, terminated, info["current"], info["solved"]) == ([1.0], False, 3, False)
    assert info["target"] != 3
    assert (env.image() != before).any()
    while not terminated:
        _, reward, terminated, _, info = env.step(env.solve())
    assert reward == 1.0
    assert (info["success"], info["solved"], env.episode_return) == (True, True, 2.0)


def test_one_wrong_move_to_either_target_loses_strict_success(make_env: Play, play: Play) -> None:
    env = make_env("NumberLine-v1")
    for wrong_at in (0, 1):
        env.reset(seed=1, options={"current": 2, "target": 3})
        for leg in range(2):
            if leg == wrong_at:
                play(env, ["-" if env.oracle() == "+" else "+"])
            while not env._ended and len(env.later) == 1 - leg:
                _, _, _, _, info = env.step(env.solve())
        assert info["solved"]
        assert (info["success"], env.episode_return) == (False, 1.0)


@pytest.mark.parametrize("title", ["EZPoints", "Points24"])
def test_the_second_refusal_ends_the_episode(title: str, make_env: Play, play: Play) -> None:
    cards = ["H5", "S7", "D5", "C7"][: 2 if title == "EZPoints" else 4]
    env = make_env(f"{title}-v1", {"cards": cards})
    assert "the second refusal ends the game" in env.task()
    rewards, terminated, truncated, info = play(env, ["9", "5", "10", "7"])
    assert (rewards, terminated, truncated) == ([-1, 0, -1], True, False)
    assert (info["refused"], info["success"], info["invalid_action"]) == (2, False, True)


def test_one_refusal_loses_strict_success_only(make_env: Play, play: Play) -> None:
    for actions, strict in (("5+7=", True), ("95+7=", False)):
        *_, info = play(make_env("EZPoints-v1", {"cards": ["H5", "S7"]}), [*actions])
        assert (info["success"], info["strict_success"]) == (True, strict)


def test_the_balanced_hands_are_all_pairs_that_the_published_rule_deals() -> None:
    dealt = {tuple(sorted((value, other))) for value in range(2, 11) for other in partners(value)}
    assert dealt == {tuple(sorted(pair)) for pair in PAIRS}


def play_blind(env: Any, player: BlindPlayer, options: dict[str, Any]) -> tuple[float, bool]:
    """Return and success of one episode, without the picture."""
    observation, info = env.reset(seed=0, options=options)
    ended = [False]
    while not any(ended):
        action = player.choose(observation["text"], tuple(info["vlgym"]["legal_actions"]))
        observation, _, *ended, info = env.step(env.parser.format([action]))
    return env.episode_return, info["success"]


def test_a_blind_player_of_number_line_earns_what_was_computed(make_env: Play) -> None:
    env, earned = make_env("NumberLine", image_size=(16, 16)), 0.0
    for current, target in product(range(6), repeat=2):
        start = {"current": current, "target": target if target != current else (target + 1) % 5}
        earned += play_blind(env, NumberLineScript(random.Random(0)), start)[0]
    assert earned / 36 == pytest.approx(-0.917, abs=0.0005)


def test_a_blind_player_of_points_24_adds_three_numbers_and_finds_the_fourth(make_env: Play) -> None:
    env = make_env("Points24", image_size=(16, 16))
    for cards in ("H10 S10 D10 C6", "HA S2 D3 C4"):
        assert play_blind(env, Points24Tries(random.Random(0)), {"cards": cards.split()})[1]


@pytest.mark.parametrize(("version", "rate"), [("v0", 0.792), ("v1", 2 / 7)])
def test_a_blind_player_of_ez_points_wins_its_share(make_env: Play, version: str, rate: float) -> None:
    env, won = make_env(f"EZPoints-{version}", image_size=(16, 16)), 0.0
    published = [(min(rank, 10), other) for rank in range(2, 14) for other in partners(min(rank, 10))]
    for pair in map(sorted, PAIRS):
        cards = [f"H{Card(value, 'H').symbol}" for value in pair]
        shares = [1 / 12 / len(partners(first)) for first, other in published if sorted((first, other)) == pair]
        share = sum(shares) if version == "v0" else 1 / len(PAIRS)
        won += share * play_blind(env, EZPointsTries(random.Random(0)), {"cards": cards})[1]
    assert won == pytest.approx(rate, abs=0.0005)
