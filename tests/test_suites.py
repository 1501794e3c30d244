"""Suites: parts that plugins contribute, played item by item in each planner setting."""

from __future__ import annotations

import dataclasses
import json

import pytest
from toys import installed, make_spec

from vlgym import types
from vlgym.cli.app import main
from vlgym.errors import SpecError, UnknownEnvError, UserError
from vlgym.plugins import PluginRecord
from vlgym.policies import IdlePolicy
from vlgym.registry import Registry, get_registry
from vlgym.suite_runs import run_suite
from vlgym.suites import SuitePart

COIN = make_spec(
    "vlgym/Coin-v0", "toys:Coin", planners=("online", "global"), reward_range=(-1.0, 2.0), image_size=(16, 16)
)
PART = SuitePart("test-suite", COIN.id, ({}, {"max_turns": 2}), repeats=2, planners=("online", "global"))


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, toys_importable: None):
    """A plugin that contributes one part: the Coin game with two items, of which the second is too short to be won."""
    with installed(COIN):
        record = PluginRecord("toys", "vlgym-toys", "1.0", specs=(COIN,), suites=(PART,))
        live = get_registry()
        registry = dataclasses.replace(live, plugins=(record,))
        for module in ("vlgym.suite_runs", "vlgym.cli.suite_cmd"):
            monkeypatch.setattr(f"{module}.get_registry", lambda: registry)
        yield registry


class Heads:
    """Always says heads, once or as a plan."""

    name = "heads"

    def reply(self, turns):
        return [
            types.Reply(turn.env.unwrapped.parser.format(["heads"] * (3 if turn.env.planner == "global" else 1)))
            for turn in turns
        ]


def test_each_planner_is_a_row_and_the_score_is_the_environments_own(suite: Registry) -> None:
    rows = run_suite("test-suite", Heads())
    assert [(row.planner, row.items, row.result.repeats) for row in rows] == [("online", 2, 2), ("global", 2, 2)]
    for row in rows:
        # item 1: three heads, score 1; item 2: two turns, score 2/3
        assert row.result.mean == pytest.approx((1 + 2 / 3) / 2)
        assert row.success == 0.5
        assert row.result.half_width == pytest.approx(0.0)
        assert "'heads'" in (row.result.instruction_error or "")


def test_planner_environment_and_repeats_can_be_chosen(suite: Registry) -> None:
    rows = run_suite("test-suite", IdlePolicy(), planner="global", only=COIN.id, repeats=1)
    assert [(row.planner, row.result.mean, row.result.repeats) for row in rows] == [("global", 0.0, 1)]
    assert "could not be parsed" in (rows[0].result.instruction_error or "")
    with pytest.raises(UserError, match="Nothing in suite"):
        run_suite("test-suite", IdlePolicy(), only="vlgym/Other-v0")


def test_an_unknown_suite_names_those_there_are(suite: Registry) -> None:
    with pytest.raises(UnknownEnvError, match="Nearest: test-suite"):
        suite.suite("test-suit")


def test_the_command_prints_rows_as_json(suite: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "test-suite", "--policy", "idle", "--repeats", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["planner"] for row in rows] == ["online", "global"]
    assert rows[0]["result"]["mean"] == 0.0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--policy", "orakle"), "--policy='orakle' is not one of idle, random, oracle. Nearest: oracle"),
        (("--planner", "globall"), "--planner='globall' is not one of online, global. Nearest: global"),
    ],
)
def test_the_command_names_the_nearest_choice(
    suite: Registry, capsys: pytest.CaptureFixture[str], option: tuple[str, str], message: str
) -> None:
    assert main(["suite", "test-suite", *option]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes",
    [
        {"suite": "Upper"},
        {"env_id": "nothing"},
        {"items": ()},
        {"items": (1,)},
        {"repeats": 0},
        {"planners": ("some",)},
    ],
)
def test_a_malformed_part_is_refused(changes: dict) -> None:
    with pytest.raises(SpecError):
        dataclasses.replace(PART, **changes)


def test_what_the_registry_records_of_a_part_changes_with_its_items() -> None:
    recorded = PART.to_dict()
    assert (recorded["items"], recorded["repeats"], recorded["planners"]) == (2, 2, ["online", "global"])
    assert recorded["items_hash"] != dataclasses.replace(PART, items=({}, {"max_turns": 3})).to_dict()["items_hash"]
