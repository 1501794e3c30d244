"""The planner setting: one action a reply (online), or the whole plan in one reply (global)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.spec import EnvSpec
from vlgym.errors import UserError
from vlgym.types import Outcome


class Corridor(VLEnv):
    """Walk `length` cells to the right; a wall stands to the left of the start."""

    prompt = PromptTemplate(1, "{task} {format}", "{state} {actions}")

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.left = int(rng.integers(3, 6))

    def act(self, action: str) -> Outcome:
        self.left += -1 if action == "right" else 1
        return Outcome(reward=-0.25, terminated=self.left == 0)

    def image(self) -> np.ndarray:
        return np.full((*self.image_size, 3), self.left, np.uint8)

    def task(self) -> str:
        return "Walk to the end."

    def state_text(self) -> str:
        return f"{self.left} cells left."

    def legal_actions(self) -> list[str]:
        return ["left", "right"]

    def success(self) -> bool:
        return self.left == 0

    def oracle(self) -> str:
        return "right"


def test_a_global_plan_is_executed_until_the_task_ends() -> None:
    env = Corridor(planner="global")
    env.reset(seed=0)
    cells = env.left
    plan = "; ".join(["right"] * (cells + 4))
    _, reward, terminated, truncated, info = env.step(f"<plan>{plan}</plan>")
    assert info["vlgym"]["actions"] == ["right"] * cells
    assert reward == pytest.approx(-0.25 * cells)
    assert (terminated, truncated, info["success"]) == (True, False, True)


def test_a_global_episode_ends_after_one_reply_even_if_the_plan_fails() -> None:
    env = Corridor(planner="global")
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("<plan>right</plan>")
    assert (reward, terminated, truncated, info["success"]) == (-0.25, False, True, False)


def test_a_plan_stops_at_its_first_illegal_action() -> None:
    env = Corridor(planner="global")
    env.reset(seed=0)
    _, reward, _, _, info = env.step("<plan>right; jump; right</plan>")
    assert info["vlgym"]["actions"] == ["right"]
    assert (reward, info["invalid_action"], info["vlgym"]["parse"]) == (-0.25, True, "illegal_action")


def test_solve_under_the_global_planner_holds_the_whole_plan_and_leaves_the_state_alone() -> None:
    env = Corridor(planner="global")
    observation, _ = env.reset(seed=4)
    cells = env.left
    reply = env.solve()
    assert reply == f"<plan>{'; '.join(['right'] * cells)}</plan>"
    assert env.left == cells
    assert np.array_equal(env.image(), observation["image"])
    assert env.step(reply)[4]["success"]


def test_a_global_plan_never_exceeds_the_turn_limit() -> None:
    env = Corridor(planner="global", max_turns=2)
    env.reset(seed=0)
    assert env.step("<plan>left; left; left; left</plan>")[4]["vlgym"]["actions"] == ["left", "left"]


def test_a_finished_global_episode_is_restored_as_finished() -> None:
    env, other = Corridor(planner="global"), Corridor(planner="global")
    env.reset(seed=0)
    env.step("<plan>right</plan>")
    other.reset(seed=9)
    other.set_state(env.get_state())
    assert other.left == env.left
    assert other.get_state() == env.get_state()


def test_a_planner_that_the_spec_does_not_offer_is_refused_with_the_choices() -> None:
    spec = EnvSpec(
        id="test/Corridor-v0",
        entry_point="a.b:C",
        summary="x",
        family="x",
        max_turns=9,
        reward_range=(-1, 0),
        success_rule="x",
    )
    with pytest.raises(UserError, match="online"):
        Corridor(planner="global", vlgym_spec=spec)
    with pytest.raises(UserError, match="global"):
        Corridor(planner="globl")
