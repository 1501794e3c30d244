"""Random, oracle, scripted and replayed replies."""

import pytest
from toys import Coin, Walk, make_walk

from vlgym.env import VLEnv
from vlgym.errors import UserError
from vlgym.play.policies import OraclePolicy, RandomPolicy, ReplayPolicy, ScriptedPolicy
from vlgym.types import Turn


def turn_of(env: VLEnv, turn: int = 0) -> Turn:
    env.reset(seed=0)
    return Turn([], env, "vlgym/Walk-v0", 0, turn)


def test_random_draws_legal_actions_uniformly() -> None:
    turn = turn_of(make_walk())
    turn.env.action_space.seed(0)
    texts = [RandomPolicy().reply([turn])[0].text for _ in range(2000)]
    assert set(texts) == {"<action>left</action>", "<action>right</action>"}
    assert abs(texts.count("<action>left</action>") - 1000) < 100


def test_a_missing_oracle_is_a_user_error_unless_a_fallback_is_allowed() -> None:
    turn = turn_of(Coin())
    with pytest.raises(UserError, match=r"no oracle action in this state \(seed 0, turn 0\)"):
        OraclePolicy().reply([turn])
    assert "<action>" in OraclePolicy(fallback=True).reply([turn])[0].text


def test_a_script_starts_over_after_its_last_text() -> None:
    with pytest.raises(UserError, match="at least one reply"):
        ScriptedPolicy([])
    policy = ScriptedPolicy(["a", "b"])
    env = Walk()
    assert [policy.reply([turn_of(env, t)])[0].text for t in range(5)] == ["a", "b", "a", "b", "a"]
    assert [reply.text for reply in policy.reply([turn_of(env, 0), turn_of(env, 1)])] == ["a", "b"]


def test_a_turn_that_was_not_recorded_is_a_user_error() -> None:
    with pytest.raises(UserError, match="No recorded reply for vlgym/Walk-v0, seed 0, turn 0"):
        ReplayPolicy([]).reply([turn_of(make_walk())])
