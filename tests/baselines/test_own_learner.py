"""Somebody's own learner: one short file over the run and the pure functions, with all that a run brings."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stage import SMALL

from baselines.runs.checkpoint import checkpoints
from baselines.runs.logs import read_rows

FILE = Path(__file__).parents[1] / "fixtures" / "own_learner.py"


@pytest.fixture(scope="module")
def own():
    spec = importlib.util.spec_from_file_location("own_learner", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_learner"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["own_learner"]


def test_it_has_at_most_60_lines_of_its_own():
    assert 30 < sum(bool(line.strip()) for line in FILE.read_text().splitlines()) <= 60


def test_it_trains_and_two_updates_equal_one_and_a_resumed_one_bit_for_bit(own, tmp_path):
    config = own.Config(**{**SMALL, "updates": 2, "invalid_penalty": 0.1, "lr": 1e-3, "final_lr": 1.0})
    config = replace(config, reward=replace(config.reward, length_bonus=0.1))  # an untrained model's rewards differ
    own.train(replace(config, out=tmp_path / "whole"))
    own.train(replace(config, out=tmp_path / "stopped", updates=1))
    run = own.train(own.Config(out=tmp_path / "stopped", resume=True, updates=2))
    assert run.state.update == 2
    first, second = (checkpoints(tmp_path / name / "checkpoints")[-1] for name in ("whole", "stopped"))
    a, b = load_file(first / "tensors.safetensors"), load_file(second / "tensors.safetensors")
    assert a.keys() == b.keys()
    assert not any(name.startswith("value") for name in a)
    assert all(torch.equal(a[name], b[name]) for name in a)
    rows = read_rows(tmp_path / "whole" / "log.jsonl")
    assert [row["policy/lr"] for row in rows] == [1e-3, 1e-3]
    assert rows[1]["policy/grad_norm"] > 0
    assert json.loads((tmp_path / "whole" / "run.json").read_text())["config"]["algorithm"] == "REINFORCE"
    assert (tmp_path / "whole" / "curve.png").is_file()


def test_it_has_a_command_line():
    done = subprocess.run(
        [sys.executable, str(FILE), "--help"], capture_output=True, text=True, cwd=FILE.parents[2],
        env={"PYTHONPATH": str(FILE.parents[2]), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0
    assert "--micro-batch" in done.stdout


def test_an_update_that_logs_nothing_is_an_error(own, tmp_path, monkeypatch):
    from baselines.learning.run import Update

    monkeypatch.setattr(Update, "log", lambda self, batch, metrics: None)
    with pytest.raises(RuntimeError, match=r"update\.log"):
        own.train(own.Config(**{**SMALL, "updates": 1, "eval_episodes": 0, "out": tmp_path / "run"}))
