"""State of a collector between rollouts: it comes back, and no episode is played twice after the
processes changed."""

from __future__ import annotations

import json

import pytest
import torch
from bandit import on_stage
from stage import roll_out, rows_of

from baselines import vldac
from baselines.learning.batch import moments

pytestmark = pytest.mark.usefixtures("some_bandits")


def test_a_collectors_whole_state_comes_back():
    collector = on_stage(vldac).collector
    collector.play(2)
    collector.open_returns = [1.5, 0.0, -2.0]
    state = json.loads(json.dumps(collector.get_state()))
    again = on_stage(vldac).collector
    assert again.get_state() != state
    again.set_state(state)
    assert again.get_state() == state


def test_the_log_has_moments_of_advantages_returns_and_values_before_normalisation(finished):
    batch, metrics = roll_out(on_stage(vldac, rollout_steps=4))
    batch.returns, batch.values = torch.tensor([1.0, 3.0] * 6), torch.tensor([1.0, 2.0] * 6)
    found = moments(batch)
    expected = {"advantages": (0.5, 0.5), "returns": (2.0, 1.0), "values": (1.5, 0.5)}
    for name, (mean, deviation) in expected.items():
        assert (found[f"rollout/{name}_mean"], found[f"rollout/{name}_std"]) == (mean, deviation)
    tokens = torch.cat([sample.logp for sample in batch.samples])
    assert metrics["rollout/entropy"] == pytest.approx(-float(tokens.mean()), rel=1e-5)
    batch.values, batch.advantages = None, torch.tensor([-2.0, 4.0] * 6)
    assert {name: x for name, x in moments(batch).items() if "values" in name or "advantages" in name} == {
        "rollout/advantages_mean": 1.0, "rollout/advantages_std": 3.0,
    }  # fmt: skip
    batch.advantages = torch.full((12,), float("nan"))  # ArCHer learns from other replies
    assert moments(batch) == {}
    for row in rows_of(finished):
        assert row.keys() >= {*found, "rollout/entropy"}
        assert row["episode/failed"] == 0.0
