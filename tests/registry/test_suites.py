"""Suites: parts that plugins contribute, played item by item in each planner setting."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toys import installed, make_spec

from vlgym.errors import SpecError, UnknownEnvError
from vlgym.evaluation import run_evaluation
from vlgym.evaluation.plan import plan_suite
from vlgym.play.policies import IdlePolicy
from vlgym.registry import Registry, get_registry
from vlgym.registry.plugins import PluginRecord
from vlgym.registry.suites import SuitePart
from vlgym.reports.compute import compute_report
from vlgym.types import Reply

PLANNERS = ("online", "global")
COIN = make_spec("vlgym/Coin-v0", "toys:Coin", planners=PLANNERS)
PART = SuitePart("test-suite", COIN.id, ({}, {"max_turns": 2}), repeats=2, planners=PLANNERS)


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A plugin that contributes Coin with two items; the second is too short to be won."""
    with installed(COIN):
        record = PluginRecord("toys", "vlgym-toys", "1.0", specs=(COIN,), suites=(PART,))
        registry = dataclasses.replace(get_registry(), plugins=(record,))
        monkeypatch.setattr("vlgym.evaluation.plan.get_registry", lambda: registry)
        yield registry


class Heads:
    """Always says heads, once or as a plan."""

    name = "heads"

    def reply(self, turns: Any) -> list[Reply]:
        counts = [3 if turn.env.planner == "global" else 1 for turn in turns]
        formats = [turn.env.unwrapped.parser.format for turn in turns]
        return [Reply(write(["heads"] * count)) for write, count in zip(formats, counts, strict=True)]


def play(policy: Any, folder: Path, **options: Any) -> dict[str, Any]:
    parts, _ = plan_suite("test-suite", **options)
    run_evaluation(parts, policy, folder / "run")
    return compute_report(folder / "run")["parts"]


def test_each_planner_is_a_row_with_the_own_score(suite: Registry, tmp_path: Path) -> None:
    rows = play(Heads(), tmp_path)
    assert sorted(rows) == [COIN.id, f"{COIN.id} global"]
    for row in rows.values():
        scores = row["benchmark"]
        assert (scores["items"], scores["repeats"]) == (2, 2)
        # item 1: three heads, score 1; item 2: two turns, score 2/3
        assert scores["mean"] == pytest.approx((1 + 2 / 3) / 2)
        assert row["success"]["rate"] == 0.5
        assert scores["half_width"] == pytest.approx(0.0)
        assert "'heads'" in scores["instruction_error"]


def test_planner_and_repeats_can_be_chosen(suite: Registry, tmp_path: Path) -> None:
    rows = play(IdlePolicy(), tmp_path, planner="global", repeats=1)
    assert list(rows) == [f"{COIN.id} global"]
    scores = rows[f"{COIN.id} global"]["benchmark"]
    assert (scores["mean"], scores["repeats"]) == (0.0, 1)
    assert "could not be parsed" in scores["instruction_error"]


def test_an_unknown_suite_names_those_there_are(suite: Registry) -> None:
    with pytest.raises(UnknownEnvError, match="Nearest: test-suite"):
        suite.suite("test-suit")


@pytest.mark.parametrize(
    "changes",
    [{"suite": "Upper"}, {"env_id": "nothing"}, {"items": ()}, {"items": (1,)}, {"repeats": 0},
     {"episodes": 0}, {"planners": ("some",)}],
)  # fmt: skip
def test_a_malformed_part_is_refused(changes: dict) -> None:
    with pytest.raises(SpecError):
        dataclasses.replace(PART, **changes)
