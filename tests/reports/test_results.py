"""One table of results: what stands in it, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluations import COIN, WALK, change_header, toys_installed, write_run
from toys import installed, make_entry, make_spec

from vlgym.cli.app import main
from vlgym.errors import UserError
from vlgym.play.policies import IdlePolicy, OraclePolicy, RandomPolicy
from vlgym.play.trajectory import describe_run
from vlgym.registry import get_registry
from vlgym.registry.making import make
from vlgym.reports.records import Part
from vlgym.reports.results import find_mismatch, is_suite, read_result
from vlgym.reports.text import list_results
from vlgym.reports.writing import write_report


@pytest.fixture(scope="module", autouse=True)
def _toys() -> Iterator[None]:
    with toys_installed():
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    for policy in (IdlePolicy(), OraclePolicy()):
        write_report(write_run(folder / policy.name, policy, episodes=8))
    return folder


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Path:
    """A copy of the results that a test may change; of the oracle's only the report is kept."""
    folder = Path(shutil.copytree(finished, tmp_path / "results"))
    (folder / "oracle" / "metadata.jsonl").unlink()
    return folder


def test_the_command_writes_one_table_best_first_and_refuses_what_does_not_belong(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(results / "idle", results / "<script>")
    page, command = tmp_path / "page.html", ["compare", str(results / "<script>"), str(results / "oracle")]
    assert main([*command, "--html", str(page)]) == 0
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in page.read_text().splitlines() if "<td" in line]
    assert [row[:3] for row in rows] == [
        ["over all", "oracle", "8"],
        ["over all", "&lt;script&gt;", "8"],
        [WALK, "oracle", "8"],
        [WALK, "&lt;script&gt;", "8"],
    ]
    assert '1.00 <span class="ends">[1.00, 1.00]</span>' in rows[2]
    assert "<script" not in page.read_text()
    change_part(results / "oracle", prompt_hash="0123")
    assert main([*command, "--html", str(page)]) == 0
    assert f"oracle {WALK} was played with another prompt (0123)" in capsys.readouterr().err
    assert "oracle</td>" not in page.read_text()
    page.unlink()
    assert main(["compare", str(results / "oracle"), "--html", str(page)]) == 2
    assert not page.exists()


def change_part(folder: Path, **changes: Any) -> None:
    header = json.loads((folder / "run.json").read_text())
    header["parts"][WALK].update(changes)
    change_header(folder, parts=header["parts"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"spec_hash": "0123"}, r"was played with another card \(0123\) than registry.yaml's"),
        ({"parser_version": 9}, r"was played with another parser \(tag-v9\) than registry.yaml's \(tag-v1\)"),
        ({"history": {"turns": 3, "images": 1}}, "was played with another history"),
        ({"changed": True}, "was played under other arguments"),
        ({"items": [{"max_turns": 4}]}, "was played under other arguments"),
        ({"given": {"invalid_action": "random"}}, "invalid_action='random', which is not the environment's own"),
    ],
)
def test_a_result_under_other_conditions_is_refused(results: Path, changes: dict[str, Any], reason: str) -> None:
    for name in ("idle", "oracle"):
        change_part(results / name, **changes)
        with pytest.raises(UserError, match=rf"^{WALK} .*{reason}"):
            read_result(results / name)


def test_other_splits_unknown_ids_unfinished_runs_and_controls_are_refused(tmp_path: Path) -> None:
    for folder, reason in (
        (write_run(tmp_path / "val", RandomPolicy(), episodes=2, split="val"), "was played on split val"),
        (write_run(tmp_path / "coin", RandomPolicy(), [COIN], episodes=2), f"{COIN} is not in registry.yaml"),
        (write_run(tmp_path / "begun", RandomPolicy(), episodes=5, finish=3), "is not finished: 3 of 5 episodes"),
        (write_run(tmp_path / "grey", RandomPolicy(), episodes=3, pictures=["grey"]), "no part with its pictures"),
    ):
        with pytest.raises(UserError, match=reason):
            read_result(folder)


def test_without_records_a_report_of_other_figures_is_refused(results: Path) -> None:
    folder = results / "oracle"
    report = json.loads((folder / "report.json").read_text())
    for change, reason in (
        ({"policy": {"name": "better"}}, "is not of this run"),
        ({"parts": {WALK: {**report["parts"][WALK], "floor": {"return": -5.0}}}}, "registry.yaml's is"),
        ({"parts": {WALK: {**report["parts"][WALK], "success": {"rate": "high"}}}}, "is malformed"),
        ({"parts": 3}, "is malformed"),
    ):
        (folder / "report.json").write_text(json.dumps({**report, **change}))
        with pytest.raises(UserError, match=reason):
            read_result(folder)
    (folder / "report.json").unlink()
    with pytest.raises(UserError, match=r"holds neither metadata\.jsonl nor report\.json"):
        read_result(folder)


def test_items_of_a_recorded_suite_are_no_other_arguments() -> None:
    (part,) = [part for part in get_registry().suite("magebench-mini") if part.env_id == "vlgym/Sokoban-v0"]
    assert is_suite(Part("x", part.env_id, "global", "shown", part.items, 1, 3, True, {}))
    assert not is_suite(Part("x", part.env_id, "global", "shown", part.items[1:], 1, 3, True, {}))


def test_under_the_global_planner_the_installed_environment_says_what_is_due() -> None:
    spec = make_spec("vlgym/Plan-v0", planners=("online", "global"))
    with installed(spec, known={spec.id: make_entry(spec)}):
        entry = describe_run([make(spec.id, planner="global")])["environments"][spec.id]
        part = Part("x", spec.id, "global", "shown", ({},), 4, 1, False, entry)
        assert find_mismatch(part, "test") is None
        wrong = Part("x", spec.id, "global", "shown", ({},), 4, 1, False, {**entry, "prompt_hash": "0"})
        assert "another prompt" in (find_mismatch(wrong, "test") or "")


def test_who_played_more_parts_is_above_who_won_more() -> None:
    def report(parts: int, success: float) -> dict[str, Any]:
        mean = {"mean": success, "low": 0.0, "high": 1.0}
        return {"parts": {}, "overall": {"parts": parts, "episodes": 8, "planned": 8, "success": mean}}

    reports = [("few", report(1, 1.0)), ("bad", report(2, 0.1)), ("good", report(2, 0.5))]
    _, rows = list_results(reports)
    assert [row[1] for row in rows] == ["good", "bad", "few"]
