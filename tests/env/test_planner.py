"""The planner setting: one action a reply (online), or the whole plan in one reply (global)."""

from __future__ import annotations

import numpy as np
import pytest
from toys import Walk, make_spec

from vlgym.errors import UserError


def begin(**arguments: object) -> Walk:
    """Return a walk of three cells to the right by one reply."""
    env = Walk(planner="global", **arguments)  # type: ignore[arg-type]
    env.reset(seed=0, options={"target": 3})
    return env


def test_a_global_plan_is_executed_until_the_task_ends_or_an_action_is_not_legal() -> None:
    _, reward, terminated, truncated, info = begin().step(f"<plan>{'; '.join(['right'] * 7)}</plan>")
    assert info["vlgym"]["actions"] == ["right"] * 3
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    info = begin().step("<plan>right; jump; right</plan>")[4]
    assert (info["vlgym"]["actions"], info["vlgym"]["parse"]) == (["right"], "illegal_action")


def test_a_global_episode_ends_after_one_reply_even_if_the_plan_fails_and_is_restored_as_finished() -> None:
    env, other = begin(), begin()
    _, reward, terminated, truncated, info = env.step("<plan>right</plan>")
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, True, False)
    other.reset(seed=9)
    other.set_state(env.get_state())
    assert other.position == env.position
    assert other.get_state() == env.get_state()


def test_solve_under_the_global_planner_holds_the_whole_plan_and_leaves_the_state_alone() -> None:
    env = begin()
    picture = env.image()
    reply = env.solve()
    assert reply == "the target lies right <plan>right; right; right</plan>"
    assert env.position == 0
    assert np.array_equal(env.image(), picture)
    assert env.step(reply)[4]["success"]


def test_a_global_plan_never_exceeds_the_turn_limit() -> None:
    assert begin(max_turns=2).step("<plan>left; left; left; left</plan>")[4]["vlgym"]["actions"] == ["left", "left"]


def test_a_planner_that_the_spec_does_not_offer_is_refused_with_the_choices() -> None:
    with pytest.raises(UserError, match="online"):
        Walk(planner="global", vlgym_spec=make_spec())
    with pytest.raises(UserError, match="global"):
        Walk(planner="globl")
