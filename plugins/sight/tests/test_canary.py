"""A canary's answer stands in one picture only: no text, legal action, feedback or other picture tells it."""

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


def play(env: Any, seed: int, wrong: bool = False) -> tuple[list[Any], list[np.ndarray]]:
    """Play an episode with the oracle, or a wrong answer; return all that is told, and the pictures."""
    observation, info = env.reset(seed=seed)
    told, pictures, over = [], [], False
    while not over:
        told.append((observation["text"], tuple(info["vlgym"]["legal_actions"]), info["vlgym"]["feedback"]))
        pictures.append(observation["image"])
        action = env.oracle()
        if wrong and action != "next":
            action = next(answer for answer in env.answers if answer != action)
        observation, reward, over, _, info = env.step(f"<action>{action}</action>")
    assert reward == info["success"] == (not wrong)
    return [*told, info["vlgym"]["feedback"]], pictures


@pytest.mark.parametrize("spec", CANARIES, ids=lambda spec: spec.title)
def test_text_legal_actions_and_feedback_are_the_same_for_all_seeds_and_answers(spec: EnvSpec) -> None:
    env = make(spec.id, image_size=(32, 32))
    texts = [play(env, episode_seed(spec.id, "test", n), wrong=n % 2 == 1)[0] for n in range(40)]
    assert all(each == texts[0] for each in texts)
    assert len(texts[0]) == spec.max_turns + 1


@pytest.mark.parametrize("spec", CANARIES, ids=lambda spec: spec.title)
def test_every_answer_is_equally_likely_whatever_the_other_pictures_show(spec: EnvSpec) -> None:
    env: Any = make(spec.id, image_size=(32, 32))
    chance, same, counts = 1 / len(env.answers), 0, Counter()
    assert chance == CHANCES[spec.title]
    for number in range(SEEDS):
        env.reset(seed=episode_seed(spec.id, "test", number))
        answer = env.shown[env.asked - 1]
        counts[answer] += 1
        same += env.shown.count(answer) - 1
    most = SEEDS * chance + 4 * (SEEDS * chance) ** 0.5
    assert max(counts.values()) < most
    assert set(counts) == set(env.answers)
    pairs = (env.pictures - 1) * SEEDS
    assert abs(same - pairs * chance) <= 4 * (pairs * chance) ** 0.5


@pytest.mark.parametrize("spec", CANARIES, ids=lambda spec: spec.title)
def test_the_recorded_blind_floor_is_chance(spec: EnvSpec) -> None:
    entry = get_registry().known[spec.id]
    chance = CHANCES[spec.title]
    assert abs(entry["blind"]["success"] - chance) <= 3 * (chance * (1 - chance) / entry["blind"]["episodes"]) ** 0.5
    assert entry["ceiling"]["success"] == 1


@pytest.mark.parametrize("spec", CANARIES, ids=lambda spec: spec.title)
def test_every_picture_of_every_episode_is_another_one(spec: EnvSpec) -> None:
    env = make(spec.id)
    pictures = [picture.tobytes() for n in range(40) for picture in play(env, episode_seed(spec.id, "train", n))[1]]
    assert len(set(pictures)) == len(pictures) == 40 * spec.max_turns


def test_only_the_asked_picture_changes_with_the_answer() -> None:
    env: Any = make("vlgym/CanaryMemory-v0")
    pictures = []
    for answer in ("house", "horse"):
        observation, _ = env.reset(seed=0)
        env.shown[2] = answer
        pictures.append([observation["image"]])
        for _ in range(3):
            pictures[-1].append(env.step(env.solve())[0]["image"])
        assert env.oracle() == answer
    assert [np.array_equal(one, other) for one, other in zip(*pictures, strict=True)] == [True, True, False, True]


def test_the_asked_turn_may_be_another_but_must_exist() -> None:
    env: Any = make("vlgym/CanaryMemory-v0", asked=1)
    env.reset(seed=0)
    for _ in range(3):
        env.step(env.solve())
    assert env.oracle() == env.shown[0]
    for wrong in ({"asked": 5}, {"pictures": 5}, {"shows": "smell"}, {"pictures": 2}):
        with pytest.raises(UserError):
            make("vlgym/CanaryMemory-v0", **wrong)
