"""Somebody's own learner: one short file over the run and the pure functions, with all that a run
brings."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from stage import SMALL, assert_same_end, rewind, rows_of

from baselines.learning.warm_start import WarmConfig

FILE = Path(__file__).parents[2] / "fixtures" / "own_learner.py"


@pytest.fixture(scope="module")
def own():
    spec = importlib.util.spec_from_file_location("own_learner", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_learner"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["own_learner"]


def test_it_trains_and_two_updates_equal_one_and_a_resumed_one_bit_for_bit(own, tmp_path):
    options = {"updates": 2, "eval_episodes": 0, "invalid_penalty": 0.1, "lr": 1e-3, "final_lr": 1.0}
    config = own.Config(**{**SMALL, **options, "warm": WarmConfig(steps=0)})
    # An untrained model's rewards differ by the lengths of its replies.
    config = replace(config, reward=replace(config.reward, length_bonus=0.1))
    own.train(replace(config, out=tmp_path / "whole"))
    own.train(own.Config(out=rewind(tmp_path / "whole", tmp_path / "stopped"), resume=True))
    assert_same_end(tmp_path / "whole", tmp_path / "stopped")
    rows = rows_of(tmp_path / "whole")
    assert [row["policy/lr"] for row in rows] == [1e-3, 1e-3]
    assert rows[1]["policy/grad_norm"] > 0
    record = json.loads((tmp_path / "whole" / "run.json").read_text())
    assert record["config"]["algorithm"] == "REINFORCE"
