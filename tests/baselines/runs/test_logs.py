"""Outputs of a learning run: the bar's metrics, held-out episodes, and the bounds of its curve."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from baselines.learning.evaluation import _mean
from baselines.learning.run import Run
from baselines.runs import logs
from baselines.runs.logs import RunLog, note_failures, read_rows, summary

ROW = {"update": 1, "episode/success": math.nan, "rollout/invalid_rate": 0.25, "loss/kl": 0.01, "lr": 1.0}


def test_the_summary_leaves_out_what_an_update_has_no_number_of() -> None:
    assert summary(ROW) == "invalid 0.25  kl 0.010"
    assert summary({**ROW, "episode/success": 0.5}) == "success 0.50  invalid 0.25  kl 0.010"


def test_bounds_of_several_environments_have_the_standard_error_of_their_mean() -> None:
    bounds = [{"success": 0.2, "return": 1.0, "se": 0.3}, {"success": 0.4, "return": 2.0, "se": 0.4}]
    assert _mean(bounds) == pytest.approx({"success": 0.3, "return": 1.5, "se": 0.25})
    assert _mean([*bounds, None]) is None


def test_a_number_that_is_none_is_null_in_the_log(tmp_path: Path) -> None:
    log = RunLog(tmp_path, name="vldac", total=2, done=0)
    log.write({"update": 1, "env_steps": 4, "a": math.nan, "b": math.inf, "c": 0.5})
    log.close()
    (line,) = (tmp_path / "log.jsonl").read_text().splitlines()
    assert "NaN" not in line
    assert "Infinity" not in line
    assert read_rows(tmp_path / "log.jsonl") == [{"update": 1, "env_steps": 4, "a": None, "b": None, "c": 0.5}]


def test_a_critic_that_explains_nothing_for_ten_updates_is_told_of_once(tmp_path: Path, capsys: Any) -> None:
    log = RunLog(tmp_path, name="vldac", total=40, done=0)
    for update, explained in enumerate([0.01] * 9 + [0.3] + [-0.2, math.nan] * 9 + [0.0, 0.0, 0.0], 1):
        if update == 29:
            assert "explained less than 2%" not in capsys.readouterr().out
        log.write({"update": update, "env_steps": update, "value/explained_variance": explained})
    log.close()
    assert capsys.readouterr().out.count("explained less than 2%") == 1


def test_a_resumed_run_forgets_rows_and_failures_of_a_lost_future(tmp_path: Path) -> None:
    log = RunLog(tmp_path, name="vldac", total=3, done=0)
    for update in (1, 2, 3):
        log.write({"update": update, "env_steps": 4 * update})
        note_failures(tmp_path, [{"env_id": "x", "error": "fell over"}], update)
    log.close()
    RunLog(tmp_path, name="vldac", total=3, done=2).close()
    for name in ("log.jsonl", "failures.jsonl"):
        assert [row["update"] for row in read_rows(tmp_path / name)] == [1, 2]


def test_rows_and_failures_are_on_the_disk_before_the_checkpoint_that_relies_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(logs, "sync", lambda path: done.append(path.name))
    log = RunLog(tmp_path, name="vldac", total=3, done=0)
    note_failures(tmp_path, [{"env_id": "x", "error": "fell over"}], 1)
    state = SimpleNamespace(save=lambda folder, kept: done.append("checkpoint"))
    run: Any = SimpleNamespace(log=log, state=state, out=tmp_path, kept=None)
    Run.save(run)
    log.close()
    assert done == ["log.jsonl", "failures.jsonl", tmp_path.name, "checkpoint"]
    assert json.loads((tmp_path / "failures.jsonl").read_text())["update"] == 1
