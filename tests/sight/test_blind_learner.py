"""Blind players that learn on train: what they find out, and what they cannot."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from toys import Walk, installed, make_spec

from vlgym.env.seeding import episode_seed
from vlgym.evaluation import evaluate
from vlgym.play.rollout import Runner, run_episodes
from vlgym.registry.making import build
from vlgym.sight import blind_learner
from vlgym.sight.blind_learner import LEARNERS, ListPlayer, Memory, TablePlayer, count_training, learn
from vlgym.sight.blind_policies import BlindPolicy, choose_player
from vlgym.testing.measure import list_learners
from vlgym.types import Outcome

SPEC = make_spec()


class Silent(Walk):
    """The target is in the picture only."""

    def task(self) -> str:
        return "Go to the red cell."


class Whisper(Silent):
    """The feedback of a step says where the target lies."""

    def act(self, action: str) -> Outcome:
        done = super().act(action)
        return Outcome(done.reward, done.terminated, feedback=f"it lies {self.oracle()}")


class OneWay(Silent):
    """The list of legal actions says where the target lies."""

    def legal_actions(self) -> list[str]:
        return ["left", "right"] if self.target < 0 else ["right", "left"]


class Unlisted(Silent):
    """Each target is at the right, and the actions are explained, not listed."""

    notation = "a direction"

    def start(self, rng: Any, options: dict[str, Any]) -> None:
        super().start(rng, options)
        self.target = abs(self.target)


def judge(env_class: type[Walk], name: str) -> float:
    """Return the success on test of what a learner has learnt on train."""
    policy = BlindPolicy(name, learn(SPEC, lambda: env_class(vlgym_spec=SPEC), name))
    runner = Runner([env_class(vlgym_spec=SPEC)], split="test", episodes=60)
    episodes = list(run_episodes(runner, policy))
    return sum(episode[-1].reward for episode in episodes) / len(episodes)


@pytest.mark.parametrize(
    ("env_class", "name", "least", "most"),
    [
        (Walk, "learnt table", 0.9, 1),
        (OneWay, "learnt table", 0.9, 1),
        (Whisper, "learnt table", 0.9, 1),
        (Silent, "learnt table", 0, 0.6),
        (Walk, "learnt list", 0, 0.6),
        (Unlisted, "learnt list", 0.9, 1),
    ],
)
def test_only_what_is_told_is_learnt(
    monkeypatch: pytest.MonkeyPatch, env_class: type[Walk], name: str, least: float, most: float
) -> None:
    monkeypatch.setattr(blind_learner, "LEARNING_EPISODES", 300)
    assert least <= judge(env_class, name) <= most


def test_learning_sees_train_alone_and_is_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blind_learner, "LEARNING_EPISODES", 12)
    seeds: list[int | None] = []

    class Watched(Walk):
        def start(self, rng: Any, options: dict[str, Any]) -> None:
            seeds.append(self.reset_seed)
            super().start(rng, options)

    memories = []
    for name in [*LEARNERS, *LEARNERS]:
        seeds.clear()
        memories.append(learn(SPEC, lambda: Watched(vlgym_spec=SPEC), name)(random.Random(0)).memory.rows)  # type: ignore[attr-defined]
        assert seeds == [episode_seed(SPEC.id, "train", number) for number in range(12)]
    assert memories[:2] == memories[2:]
    assert memories[0] != memories[1]


def test_a_long_or_slow_environment_has_a_smaller_budget() -> None:
    assert count_training(make_spec(max_turns=1)) == blind_learner.LEARNING_EPISODES
    assert count_training(make_spec(max_turns=500)) == blind_learner.LEARNING_TURNS // 500
    assert count_training(make_spec(max_turns=1, figure_episodes=100)) == blind_learner.SLOW_EPISODES


def test_a_row_that_was_seldom_visited_leaves_the_choice_to_the_next_and_equals_are_drawn() -> None:
    memory, rng = Memory("learnt table"), random.Random(0)
    memory.learn(["exact"], "a", 1.0)
    assert {memory.find_best(["exact", "rough"], ["a", "b"], rng) for _ in range(20)} == {"a", "b"}
    for _ in range(blind_learner.KNOWN):
        memory.learn(["rough"], "b", 1.0)
        memory.learn(["rough"], "a", 0.0)
    assert memory.find_best(["exact", "rough"], ["a", "b"], rng) == "b"
    assert memory.find_best(["exact", "rough"], ["a", "c"], rng) == "c"  # untried: the mean of all
    for _ in range(blind_learner.KNOWN):
        memory.learn(["exact"], "a", 1.0)
        memory.learn(["exact"], "b", 0.0)
    assert memory.find_best(["exact", "rough"], ["a", "b"], rng) == "a"


def test_without_a_list_the_candidates_are_those_of_train_if_any() -> None:
    player = ListPlayer(random.Random(0), Memory("learnt list"))
    assert player.choose("text", ()) == ""
    player.memory.actions["north"] = None
    assert player.choose("text", ()) == "north"


def test_a_learner_of_the_registry_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind_learner, "LEARNING_EPISODES", 300)
    with installed(SPEC):
        policy = choose_player(SPEC, {"blind": {"success_policy": TablePlayer.name}})
        assert policy.name == TablePlayer.name
        assert evaluate(SPEC.id, policy, split="test", episodes=20).success > 0.9


def test_a_replaced_version_with_system_packages_is_not_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym.testing.measure.learn", lambda spec, make, name: None)
    old = replace(SPEC, replaced_by="vlgym/Walk-v1")
    assert [player.name for player in list_learners(old, build)] == list(LEARNERS)
    assert list_learners(replace(old, system_requirements=("chromium",)), build) == []
