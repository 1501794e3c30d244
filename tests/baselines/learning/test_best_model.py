"""The best model by validation episodes, and how much pictures change its replies."""

import json

import pytest
import torch
from bandit import PLAIN, SETTINGS
from safetensors.torch import load_file

from baselines import vldac
from baselines.engine.engine import make_engine
from baselines.learning import evaluation
from baselines.learning import run as run_module
from baselines.learning.evaluation import measure_gap
from baselines.models.load import load_family
from vlgym.evaluation import Report
from vlgym.integrations.canary import ARRIVES, BLIND, CANARIES
from vlgym.play.controls import in_grey
from vlgym.registry import get_registry

pytestmark = pytest.mark.usefixtures("small_runs")


def test_the_model_with_the_best_validation_is_kept_and_plays_the_test_split_once(tmp_path, monkeypatch):
    played, scores = [], iter([(0.1, 0.0), (0.3, 0.0), (0.5, -1.0), (0.5, 1.0), (0.4, 0.0)])

    def held_out(sampler, envs, log, *, episodes, seed, name, split="test"):
        """A score of the model instead of a played one."""
        played.append((split, sampler.family.model.lm_head.weight.detach().clone()))
        success, mean_return = next(scores) if split == "val" else (0.0, 0.0)
        yield Report(PLAIN, name, split, 3, success, 0.0, 1.0, mean_return, 0.1, 2.0, 0.0, 0.0, 0.0)

    monkeypatch.setattr(run_module.evaluation, "held_out", held_out)
    options = {
        **SETTINGS, "env": PLAIN, "updates": 4, "num_envs": 2, "rollout_steps": 2, "minibatch": 4,
        "lr": 1e-2, "final_lr": 1.0, "eval_every": 1, "eval_episodes": 2, "eval_controls": False,
    }  # fmt: skip
    run = vldac.train(vldac.Config(**options, value_warmup=0, out=tmp_path / "run"))
    assert [split for split, _ in played] == ["test", "val", "val", "val", "val", "val", "test", "test"]
    note = json.loads((run.out / "best" / "evaluation.json").read_text())
    assert (note["update"], note["success"], note["mean_return"]) == (3, 0.5, 1.0)
    assert [report["split"] for report in note["val"]] == ["val"]
    assert [report["update"] for report in note["test"]] == [3]
    best = played[4][1]  # validated third
    assert torch.equal(played[-1][1], best)  # what played the test split last
    assert not torch.equal(played[-2][1], best)
    assert torch.equal(load_file(run.out / "best" / "model.safetensors")["lm_head.weight"], best)
    ours = json.loads((run.out / "evaluation.json").read_text())
    vals = [(update, "val") for update in range(5)]
    assert [(e["update"], e["split"]) for e in ours] == [(0, "test"), *vals, (4, "test")]


def test_a_scorer_that_drops_the_pictures_is_blind(monkeypatch):
    monkeypatch.setattr(evaluation, "GAP_EPISODES", 6)
    family = load_family("tiny")
    engine = make_engine(family, max_new_tokens=8, parsers=())
    gap = measure_gap(engine)
    assert gap.n == 6
    assert gap.verdict == ARRIVES
    encode = family.encode
    monkeypatch.setattr(family, "encode", lambda messages: encode(in_grey(messages)))
    blind = measure_gap(engine)
    assert (blind.mean, blind.verdict) == (0, BLIND)
    monkeypatch.delitem(get_registry().specs, CANARIES[2])
    assert measure_gap(engine) is None
