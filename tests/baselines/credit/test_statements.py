"""The tests of the credit bench's two statements, on rows made by hand."""

from __future__ import annotations

import importlib

import pytest
from sources import ROOT


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("figures")


def test_the_first_statement_is_tested_by_slopes_over_the_targets(figures) -> None:
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


def test_the_second_statement_takes_critics_of_the_stated_quality_alone(figures) -> None:
    whole = {"32": [0.2, 0.21, 0.19, 0.2]}
    curve = dict.fromkeys(("GRPO", "RLOO, LOOP", "turn baseline"), whole)
    curve |= {"GiGPO": {"32": [0.5, 0.51, 0.49, 0.5]}}
    curve |= {"GAE, learnt V": {"32": [0.4, 0.42, 0.38, 0.41]}}
    row = {"curve": curve, "explained": {"32": [0.4, 0.5, 0.3, 0.4]}}
    assert [line[1] for line in figures.judge_critic([row])] == ["1 of 1"] * 3 + ["0 of 1"]
    row["explained"] = {"32": [0.7]}
    assert [line[1] for line in figures.judge_critic([row])] == ["0 of 0"] * 4
