"""A canary's answer stands in one picture only: nothing else tells it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from vlgym_sight.plugin import CANARIES

from vlgym.env.seeding import episode_seed
from vlgym.env.spec import EnvSpec
from vlgym.errors import UserError
from vlgym.registry.lookup import get_registry
from vlgym.registry.making import make

CHANCES = {"CanaryColour": 1 / 8, "CanaryDigit": 1 / 10, "CanaryMemory": 1 / 12}
SEEDS = 300
each_canary = pytest.mark.parametrize("spec", CANARIES, ids=lambda spec: spec.title)


def play(env: Any, seed: int, wrong: bool = False) -> tuple[list[Any], list[bytes]]:
    """Play an episode with the oracle, or a wrong answer; return all texts, and the pictures."""
    observation, info = env.reset(seed=seed)
    texts, pictures, over = [], [], False
    while not over:
        texts.append((observation["text"], info["vlgym"]["legal_actions"], info["vlgym"]["feedback"]))
        pictures.append(observation["image"].tobytes())
        action = env.oracle()
        if wrong and action != "next":
            action = next(answer for answer in env.answers if answer != action)
        observation, reward, over, _, info = env.step(f"<action>{action}</action>")
    assert reward == info["success"] == (not wrong)
    return [*texts, info["vlgym"]["feedback"]], pictures


@each_canary
def test_texts_are_the_same_and_pictures_others_for_all_seeds(spec: EnvSpec) -> None:
    env, episodes = make(spec.id), 12
    played = [play(env, episode_seed(spec.id, "test", n), wrong=n % 2 == 1) for n in range(episodes)]
    assert all(texts == played[0][0] for texts, _ in played)
    assert len(played[0][0]) == spec.max_turns + 1
    assert len({picture for _, pictures in played for picture in pictures}) == episodes * spec.max_turns


@each_canary
def test_every_answer_is_equally_likely_whatever_the_other_pictures_show(spec: EnvSpec) -> None:
    env: Any = make(spec.id, image_size=(16, 16))
    chance, same, counts = 1 / len(env.answers), 0, Counter()
    assert chance == CHANCES[spec.title]
    for number in range(SEEDS):
        env.reset(seed=episode_seed(spec.id, "test", number))
        answer = env.shown[env.asked - 1]
        counts[answer] += 1
        same += env.shown.count(answer) - 1
    assert max(counts.values()) < SEEDS * chance + 4 * (SEEDS * chance) ** 0.5
    assert set(counts) == set(env.answers)
    pairs = (env.pictures - 1) * SEEDS
    assert abs(same - pairs * chance) <= 4 * (pairs * chance) ** 0.5


@each_canary
def test_the_recorded_blind_floor_is_chance(spec: EnvSpec) -> None:
    entry, chance = get_registry().known[spec.id], CHANCES[spec.title]
    deviation = (chance * (1 - chance) / entry["blind"]["episodes"]) ** 0.5
    assert abs(entry["blind"]["success"] - chance) <= 3 * deviation
    assert entry["ceiling"]["success"] == 1


@pytest.mark.parametrize("asked", [1, 3])
def test_only_the_asked_picture_changes_with_the_answer(asked: int) -> None:
    env: Any = make("vlgym/CanaryMemory-v0", asked=asked)
    pictures = []
    for answer in ("house", "horse"):
        env.reset(seed=0)
        env.answer = env.shown[asked - 1] = answer
        pictures.append([env.image()])
        for _ in range(3):
            pictures[-1].append(env.step(env.solve())[0]["image"])
        assert env.oracle() == answer
    same = [np.array_equal(one, other) for one, other in zip(*pictures, strict=True)]
    assert same == [place != asked for place in range(1, 5)]


@pytest.mark.parametrize("wrong", [{"asked": 5}, {"pictures": 5}, {"shows": "smell"}, {"pictures": 2}])
def test_the_asked_turn_must_exist(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        make("vlgym/CanaryMemory-v0", **wrong)
