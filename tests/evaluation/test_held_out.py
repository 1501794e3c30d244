"""Summaries against numbers worked out by hand, and whole evaluations of a toy."""

import math
from typing import Any

import pytest
from toys import installed, make_entry, make_spec

from vlgym.errors import UserError
from vlgym.evaluation import changes_bounds, evaluate, normalized_score, sight_score, summarize
from vlgym.intervals import wilson_interval
from vlgym.play.policies import OraclePolicy, RandomPolicy, ScriptedPolicy
from vlgym.play.trajectory import NO_PICTURE
from vlgym.types import StepRecord


def record(reward: float, **more: Any) -> StepRecord:
    fields = {"invalid": False, "success": False, "terminated": False, "truncated": False, **more}
    return StepRecord("a/B-v0", 0, 0, 0, [], NO_PICTURE, "", "", (), "ok", reward, **fields)


def test_a_summary_is_the_one_worked_out_by_hand() -> None:
    episodes = [
        [record(1.0), record(2.0, success=True, score=0.5)],
        [record(0.0, success=True), record(-1.0, invalid=True, score=0.0)],
        [record(1.0, invalid=True), record(0.0), record(0.0, success=True)],
    ]
    report = summarize("a/B-v0", "me", "val", episodes)
    assert (report.env_id, report.policy, report.split, report.episodes) == ("a/B-v0", "me", "val", 3)
    assert report.success == pytest.approx(2 / 3)
    # Returns 3, -1, 1: mean 1, sample variance (4 + 4 + 0) / 2 = 4, standard error sqrt(4 / 3).
    assert (report.mean_return, report.return_se) == pytest.approx((1.0, math.sqrt(4 / 3)))
    assert report.mean_turns == pytest.approx(7 / 3)
    assert (report.invalid_rate, report.negative_rate) == pytest.approx((2 / 7, 1 / 7))
    assert report.mean_score == 0.25
    assert (report.success_low, report.success_high) == wilson_interval(2, 3)
    assert report.normalized is None


def test_one_episode_has_no_spread_and_none_has_no_figures() -> None:
    assert summarize("a/B-v0", "me", "val", [[record(1.0)]]).return_se == 0.0
    empty = summarize("a/B-v0", "me", "val", [])
    assert math.isnan(empty.mean_return)
    assert (empty.success_low, empty.success_high) == (0.0, 1.0)


def test_the_normalized_score_lies_between_floor_and_ceiling_of_the_registry() -> None:
    spec = make_spec()
    with installed(known={spec.id: make_entry(spec)}):  # floor 0.25, ceiling 1
        assert [normalized_score(spec.id, value) for value in (0.25, 0.625, 1.0)] == pytest.approx([0.0, 0.5, 1.0])
    with installed(known={spec.id: make_entry(spec, ceiling=None)}):
        assert normalized_score(spec.id, 1.0) is None
    with installed(known={spec.id: make_entry(spec, ceiling=make_entry(spec)["floor"])}):
        assert normalized_score(spec.id, 1.0) is None
    assert normalized_score("no/Such-v0", 1.0) is None


def test_the_sight_score_lies_between_a_measured_blind_floor_and_the_ceiling() -> None:
    spec = make_spec()
    blind = {**make_entry(spec)["floor"], "return": 0.5, "policy": "searcher", "success_policy": "searcher"}
    with installed(known={spec.id: make_entry(spec, blind=blind)}):
        places = [sight_score(spec.id, value) for value in (0.25, 0.5, 1.0, 9.0, -50.0)]
        assert places == pytest.approx([-0.5, 0.0, 1.0, 1.0, -1.0])
        report = summarize(spec.id, "me", "val", [[record(0.75)]])
        assert (report.sight_score, report.normalized) == (pytest.approx(0.5), pytest.approx(2 / 3))
        assert summarize(spec.id, "me", "val", [[record(0.75)]], changed=True).sight_score is None
    with installed(known={spec.id: make_entry(spec)}):
        assert sight_score(spec.id, 1.0) is None
    for least, known in ((0.84, True), (0.86, False)):  # a fifth of the way from 0.25 to 1 is 0.15
        with installed(known={spec.id: make_entry(spec, blind={**blind, "return": least})}):
            assert (sight_score(spec.id, 1.0) is not None) is known


def test_another_rule_for_invalid_turns_than_the_ids_has_no_floor() -> None:
    spec = make_spec(kwargs={"invalid_action": "terminate"})
    with installed(spec, known={spec.id: make_entry(spec)}):
        for arguments in ({}, {"parser": "json"}, {"invalid_action": "terminate", "invalid_penalty": 0}):
            assert not changes_bounds(spec.id, arguments), arguments
        for arguments in ({"invalid_action": "noop"}, {"invalid_penalty": 0.5}, {"max_turns": 3}):
            assert changes_bounds(spec.id, arguments), arguments
    assert changes_bounds("no/Such-v0", {"invalid_action": "terminate"})
    assert changes_bounds("no/Such-v0", {"invalid_action": "noop"})


def test_the_oracle_wins_every_episode_and_unreadable_replies_run_to_the_limit() -> None:
    with installed(make_spec()):
        report = evaluate("vlgym/Walk-v0", OraclePolicy(), episodes=30, num_envs=4)
        silent = evaluate("vlgym/Walk-v0", ScriptedPolicy(["eh"]), episodes=5)
    assert (silent.success, silent.mean_return, silent.invalid_rate, silent.mean_turns) == (0.0, 0.0, 1.0, 8.0)
    assert (report.episodes, report.success, report.mean_return, report.invalid_rate) == (30, 1.0, 1.0, 0.0)
    assert 3 <= report.mean_turns <= 5


def test_each_finished_episode_is_handed_on_with_its_images() -> None:
    seen = []
    with installed(make_spec()):
        evaluate("vlgym/Walk-v0", OraclePolicy(), episodes=3, split="val", first_episode=5, on_episode=seen.append)
    assert sorted(episode[0].episode for episode in seen) == [5, 6, 7]
    assert seen[0][0].image.shape == (22, 22, 3)
    assert seen[0][0].messages


@pytest.mark.parametrize("change", [{"episodes": 0}, {"episodes": -5}, {"num_envs": 0}])
def test_counts_below_one_are_refused(change: dict[str, int], toys_importable: None) -> None:
    (name,) = change
    with installed(make_spec("vlgym/Walk-v0")), pytest.raises(UserError, match=f"{name}=.* must be >= 1"):
        evaluate("vlgym/Walk-v0", RandomPolicy(), **change)
