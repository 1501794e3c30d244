"""The command, the tiny model as an exact policy, and the tests of the bench's two statements."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sources import ROOT

from baselines import credit
from baselines.credit import cells, estimators
from baselines.credit.cells import QUICK
from baselines.credit.estimators import ESTIMATORS
from baselines.credit.lines import TinyPolicy, noisy


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four start groups, critics of three steps, and a stand-in for the trained model."""
    point = (1, torch.from_numpy(noisy(0.5)), torch.randn(36, 8), torch.eye(36))
    monkeypatch.setattr(estimators, "STEPS", 3)
    monkeypatch.setattr(cells, "find_points", lambda *_: {"tiny, middle": point})
    monkeypatch.setattr(cells, "QUICK", [replace(c, groups=4, curve=c.curve and (16,), repeats=2) for c in QUICK])


def read(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_a_finished_cell_is_kept_by_a_kill_and_not_run_again(tmp_path, monkeypatch):
    calls, run_cell = [], cells.run_cell

    def stop_at_third(cell, *rest):
        calls.append(cell.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run_cell(cell, *rest)

    monkeypatch.setattr(cells, "run_cell", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        credit.run(credit.Config(quick=True, out=tmp_path))
    assert [row["cell"] for row in read(tmp_path)] == calls[:2]
    credit.run(credit.Config(quick=True, out=tmp_path))
    assert calls[3:] == [cell.name for cell in cells.QUICK[2:]]
    credit.run(credit.Config(quick=True, out=tmp_path))
    assert len(calls) == 5
    assert len(read(tmp_path)) == 4


def test_the_table_has_every_estimator_and_ones_own_which_counts_by_its_text(tmp_path, capsys):
    file = tmp_path / "my.py"
    for factor in (1, -1):
        file.write_text(f"def Mine(episodes):\n    return {factor} * episodes.rewards\n")
        credit.run(credit.Config(quick=True, out=tmp_path / "out", estimator=f"{file}:Mine"))
        rows = read(tmp_path / "out")[-4:]
        mine, own = (rows[0]["measures"][name]["correlation"] for name in ("Mine", "own reward"))
        assert mine == pytest.approx(factor * own)
    out = capsys.readouterr().out
    assert (tmp_path / "out" / "credit.png").stat().st_size > 10_000
    assert {*rows[2]["measures"]} == {*ESTIMATORS, "Mine"}
    assert {*rows[0]["measures"]} == {*rows[2]["measures"]} - {"GAE, learnt V", "bi-level GAE", "ArCHer"}
    assert {*rows[2]["curve"]["Mine"]} == {"16"}
    assert "NumberLine 4, tiny, middle  ArCHer" in out


def test_branched_cells_have_no_critics_and_say_how_reliable_their_truth_is():
    cell = cells.Cell("vlgym/EZPoints-v1", "half random", groups=3, branches=4, turns=2)
    row = cells.run_cell(cell, ESTIMATORS, {})
    assert row["truth"] == "2 x 4 branches"
    assert row["measures"]["GRPO"]["turns"] <= 24
    assert row["measures"]["GRPO"]["reliability"] < 1
    assert {"GAE, true V", "ArCHer"} & {*row["measures"]} == set()


def test_the_models_probabilities_add_up_and_its_gradients_say_how_they_move():
    model = TinyPolicy()
    model.train(2)
    before, gram = torch.logit(model.plus().flatten()), model.gradients()
    key = model.keys[7]
    step = 1e-4 / float(gram[key, key]) ** 0.5
    minus, plus = model.score([7], [model.replies])[0]
    parts = torch.autograd.grad(plus - minus, model.parameters, materialize_grads=True)
    with torch.no_grad():
        torch._foreach_add_(model.parameters, parts, alpha=step)
    moved = torch.logit(model.plus().flatten()) - before
    assert moved[model.keys] / step == pytest.approx(gram[key, model.keys], rel=0.1)
    assert (gram[0] == 0).all()  # no prompt has equal numbers
    assert model.states().shape == (36, 128)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("figures")


def test_the_first_statement_is_tested_by_slopes_over_the_targets(figures):
    rows = [
        {"targets": 2**k, "policy": "p", "measures": {
            "GRPO": {"correlation": 0.5 - 0.1 * k, "correlation_sd": 0.01},
            "own reward": {"correlation": 0.7, "correlation_sd": 0.01},
        }} for k in range(4)
    ]  # fmt: skip
    lines = [line[1:] for line in figures.judge_horizon(rows)]
    assert lines == [["1 of 1", "-0.100"], ["0 of 1", "+0.000"]]
    for row in rows:
        row["measures"]["GRPO"]["correlation_sd"] = 1.0
    assert figures.judge_horizon(rows)[0][1] == "0 of 1"


def test_the_second_statement_takes_critics_of_the_stated_quality_alone(figures):
    curve = {name: {"32": [0.2, 0.21, 0.19, 0.2]} for name in ("GRPO", "RLOO, LOOP", "turn baseline")}
    curve |= {"GiGPO": {"32": [0.5, 0.51, 0.49, 0.5]}, "GAE, learnt V": {"32": [0.4, 0.42, 0.38, 0.41]}}
    row = {"curve": curve, "explained": {"32": [0.4, 0.5, 0.3, 0.4]}}
    assert [line[1] for line in figures.judge_critic([row])] == ["1 of 1"] * 3 + ["0 of 1"]
    row["explained"] = {"32": [0.7]}
    assert [line[1] for line in figures.judge_critic([row])] == ["0 of 0"] * 4
