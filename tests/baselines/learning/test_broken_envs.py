"""An environment that raises in groups, warm start and held-out episodes; moments of a rollout."""

import json
from typing import Any

import pytest
import torch
from bandit import ENDS, SETTINGS, Bandit, on_stage, small_family
from stage import roll_out, rows_of

from baselines import loop, vldac
from baselines.learning.batch import moments
from baselines.learning.collect import Environments
from baselines.learning.warm_start import WarmConfig, collect
from vlgym.env import VLEnv
from vlgym.env.seeding import split_of
from vlgym.errors import FailedError

WHERE = pytest.mark.parametrize(("method", "call"), [("reset", 1), ("step", 3)])
pytestmark = pytest.mark.usefixtures("small_runs")


@pytest.fixture
def break_at(monkeypatch):
    """Let every environment's `reset` or `step` raise at its n-th call, counted over all."""

    def break_it(method: str, call: int) -> None:
        original, count = getattr(VLEnv, method), [0]

        def broken(self, *args, **kwargs):
            count[0] += 1
            if count[0] == call:
                raise RuntimeError("the engine fell over")
            return original(self, *args, **kwargs)

        monkeypatch.setattr(VLEnv, method, broken)

    return break_it


@WHERE
def test_every_group_has_its_episodes_whatever_breaks(break_at, method, call):
    learner = on_stage(loop, env=ENDS, num_envs=4, group=2)
    before = list(learner.collector.envs)
    break_at(method, call)
    batch, row = roll_out(learner)
    assert row["episode/count"] == 4
    assert [a is b for a, b in zip(before, learner.collector.envs, strict=True)].count(False) == 1  # the next has it
    assert len({failure["seed"] for failure in learner.run.envs.failures}) == 1
    assert all(batch.units)


@WHERE
def test_the_warm_start_imitates_no_turn_in_which_an_environment_broke(break_at, method, call):
    family, noted = small_family(), []
    break_at(method, call)
    data, _ = collect(Environments([ENDS], {}, 1), WarmConfig(samples=64, noise=0.0), 0, family, noted.append)
    assert len(data) == (64 if method == "reset" else 80 - 1)  # 16 environments answer in each turn
    assert len(noted) == 1


def read_failures(out) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "failures.jsonl").read_text().splitlines()]


def test_a_run_notes_failures_of_its_warm_start_and_of_held_out_episodes(tmp_path, monkeypatch):
    original, broken = VLEnv.step, set()

    def step(self, reply):
        if self.seed_split not in broken:
            broken.add(self.seed_split)
            raise RuntimeError("the engine fell over")
        return original(self, reply)

    monkeypatch.setattr(VLEnv, "step", step)
    warm = WarmConfig(steps=1, samples=16, batch=4, val_episodes=1)
    options = {"updates": 1, "eval_episodes": 2, "eval_controls": False, "warm": warm}
    run = vldac.train(vldac.Config(**{**SETTINGS, "env": ENDS, **options}, out=tmp_path / "run"))
    rows = read_failures(tmp_path / "run")
    assert [(row["update"], split_of(row["seed"])) for row in rows] == [(0, "train"), (0, "val"), (0, "test")]
    assert [report["episodes"] for report in run.state.evaluations] == [2, 2]


def test_the_failures_that_end_a_run_are_written_down(tmp_path, monkeypatch):
    monkeypatch.setattr(Bandit, "step", lambda self, reply: 1 / 0)
    out, error = tmp_path / "run", "ZeroDivisionError: division by zero"
    with pytest.raises(FailedError, match=f"failed 3 times in a row, last with {error}"):
        vldac.train(vldac.Config(**SETTINGS, out=out))
    rows = read_failures(out)
    assert len(rows) == 2 * SETTINGS["num_envs"] + 1
    assert {(row["update"], row["error"]) for row in rows} == {(1, error)}


def test_the_log_has_moments_of_advantages_returns_and_values_before_normalisation(finished):
    batch, metrics = roll_out(on_stage(vldac, rollout_steps=4))
    batch.returns, batch.values = torch.tensor([1.0, 3.0] * 6), torch.tensor([1.0, 2.0] * 6)
    stats = moments(batch)
    expected = {"advantages": (0.5, 0.5), "returns": (2.0, 1.0), "values": (1.5, 0.5)}
    for name, (mean, deviation) in expected.items():
        assert (stats[f"rollout/{name}_mean"], stats[f"rollout/{name}_std"]) == (mean, deviation)
    tokens = torch.cat([sample.logp for sample in batch.samples])
    assert metrics["rollout/entropy"] == pytest.approx(-float(tokens.mean()), rel=1e-5)
    batch.values, batch.advantages = None, torch.tensor([-2.0, 4.0] * 6)
    assert {name: x for name, x in moments(batch).items() if "values" in name or "advantages" in name} == {
        "rollout/advantages_mean": 1.0, "rollout/advantages_std": 3.0,
    }  # fmt: skip
    batch.advantages = torch.full((12,), float("nan"))  # ArCHer learns from other replies
    assert moments(batch) == {}
    for row in rows_of(finished):
        assert row.keys() >= {*stats, "rollout/entropy"}
        assert row["episode/failed"] == 0.0
