"""The versions that need the picture: what differs from the published ones, and what is still won without seeing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from vlgym_cards.blind import EZPointsTries, NumberLineScript
from vlgym_cards.cards import Card
from vlgym_cards.ez_points import PAIRS, partners

from vlgym.registry.making import make
from vlgym.sight.blind import BlindPlayer

Play = Callable[..., Any]


def test_the_second_target_is_shown_when_the_first_is_reached_and_ends_the_episode(make_env: Play, play: Play) -> None:
    env = make_env("NumberLine-v1")
    env.reset(seed=1, options={"current": 2, "target": 3})
    before = env.image()
    rewards, terminated, _, info = play(env, ["+"])
    assert (rewards, terminated, info["current"]) == ([1.0], False, 3)
    assert info["target"] != 3
    assert not info["solved"]
    assert (env.image() != before).any()
    rest = []
    while not terminated:
        _, reward, terminated, _, info = env.step(env.solve())
        rest.append(reward)
    assert rest[-1] == 1.0
    assert (info["success"], info["solved"], env.episode_return) == (True, True, 2.0)


def test_one_wrong_move_on_the_way_to_either_target_loses_strict_success(make_env: Play, play: Play) -> None:
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
def test_the_second_refused_number_ends_the_episode_and_is_in_the_task(title: str, make_env: Play, play: Play) -> None:
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


def play_blind(env_id: str, player: BlindPlayer, options: dict[str, Any]) -> tuple[float, bool]:
    """Return and success of one episode, in which the player is told the text and the legal actions alone."""
    env = make(env_id, image_size=(16, 16))
    observation, info = env.reset(seed=0, options=options)
    ended = False
    while not ended:
        action = player.choose(observation["text"], tuple(info["vlgym"]["legal_actions"]))
        observation, _, terminated, truncated, info = env.step(env.parser.format([action]))
        ended = terminated or truncated
    return env.episode_return, info["success"]


def test_blind_players_earn_what_was_computed_for_all_starts() -> None:
    starts = [(c, t if t != c else (t + 1) % 5) for t in range(6) for c in range(6)]
    line = [
        play_blind("vlgym/NumberLine-v0", NumberLineScript(random.Random(0)), {"current": c, "target": t})[0]
        for c, t in starts
    ]
    assert sum(line) / 36 == pytest.approx(-0.917, abs=0.0005)
    published = balanced = 0.0
    for pair in map(sorted, PAIRS):
        options = {"cards": [f"{suit}{Card(value, 'H').symbol}" for suit, value in zip("HS", pair, strict=True)]}
        won = [play_blind(f"vlgym/EZPoints-{v}", EZPointsTries(random.Random(0)), options)[1] for v in ("v0", "v1")]
        ranks = [(rank, other) for rank in range(2, 14) for other in partners(min(rank, 10))]
        weights = [1 / 12 / len(partners(min(r, 10))) for r, other in ranks if sorted((min(r, 10), other)) == pair]
        published, balanced = published + sum(weights) * won[0], balanced + won[1] / len(PAIRS)
    assert (published, balanced) == pytest.approx((0.792, 2 / 7), abs=0.0005)
