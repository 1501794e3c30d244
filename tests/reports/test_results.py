"""One table of results: what stands in it, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import invoke
from evaluations import WALK, change_header, write_run

from vlgym.play.policies import IdlePolicy, OraclePolicy
from vlgym.reports.text import list_results
from vlgym.reports.writing import write_report

pytestmark = pytest.mark.usefixtures("walk_and_coin")


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


def test_a_table_is_best_first_and_refuses_another_task(results: Path, tmp_path: Path) -> None:
    shutil.move(results / "idle", results / "<script>")
    page, command = tmp_path / "page.html", ["compare", str(results / "<script>"), str(results / "oracle")]
    invoke(*command, "--html", page)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in page.read_text().splitlines() if "<td" in line]
    names = ("oracle", "&lt;script&gt;")
    assert [row[:3] for row in rows] == [[part, name, "8"] for part in ("over all", WALK) for name in names]
    assert '1.00 <span class="ends">[1.00, 1.00]</span>' in rows[2]
    assert "<script" not in page.read_text()
    page.unlink()
    header = json.loads((results / "oracle" / "run.json").read_text())
    header["parts"][WALK]["prompt_hash"] = "0123"
    change_header(results / "oracle", parts=header["parts"])
    assert f"{WALK} differs in prompt_hash" in invoke(*command, "--html", page, status=2).err
    assert not page.exists()


@pytest.mark.parametrize("text", ["{", '{"parts": 3}', '{"parts": {"x": {}}}', "[]", None])
def test_a_malformed_or_missing_report_is_one_line(results: Path, text: str | None) -> None:
    path = results / "oracle" / "report.json"
    path.write_text(text) if text else path.unlink()
    said = invoke("compare", results / "oracle", "--html", results / "page.html", status=2).err
    assert ("report.json is malformed" if text else "holds neither metadata.jsonl nor report.json") in said


def test_who_played_more_parts_is_above_who_won_more() -> None:
    def report(parts: int, success: float) -> dict[str, Any]:
        mean = {"mean": success, "low": 0.0, "high": 1.0}
        return {"parts": {}, "overall": {"parts": parts, "episodes": 8, "planned": 8, "success": mean}}

    reports = [("few", report(1, 1.0)), ("bad", report(2, 0.1)), ("good", report(2, 0.5))]
    _, rows = list_results(reports)
    assert [row[1] for row in rows] == ["good", "bad", "few"]
