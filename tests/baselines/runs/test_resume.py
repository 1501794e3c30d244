"""Runs that stop and resume bit for bit; runs with a trained vision tower and with history."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from bandit import CUT, ENDS, LONG, SETTINGS
from safetensors.torch import load_file
from stage import resume_exactly, rows_of

from baselines import archer, vldac
from baselines.models.lora import LoraOptions
from baselines.runs.folder import checkpoints

OWN = Path(__file__).parents[2] / "fixtures" / "own_learner.py"
BRIEF = {**SETTINGS, "updates": 2, "rollout_steps": 3, "save_every": 1, "final_lr": 1.0}

pytestmark = pytest.mark.usefixtures("small_runs")


def newest_tensors(run):
    return load_file(checkpoints(run.out / "checkpoints")[-1] / "tensors.safetensors")


def test_archer_resumes_with_its_buffer(tmp_path):
    config = archer.Config(**{
        **BRIEF, "env": f"{ENDS},{CUT}", "updates": 3, "num_envs": 2, "minibatch": 4, "kl_coef": 0.1,
        "critic_steps": 3, "critic_batch": 5, "critic_warmup": 1,
        "buffer": 14,  # the third rollout pushes out the first four steps
    })  # fmt: skip
    run = resume_exactly(archer, config, tmp_path)
    wanted = {"optimizer.critic.0.exp_avg", "learner.critics.qs.0.0.weight", "learner.targets.vs.1.0.weight"}
    assert wanted | {"learner.buffer.rows.action", "learner.buffer.images.pixels"} <= newest_tensors(run).keys()
    rows = rows_of(run.out)
    assert [row["policy/lr"] > 0 for row in rows] == [False, True, True]
    assert [row["buffer/steps"] for row in rows] == [6, 12, 14]
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in rows)


def test_a_run_with_adapters_samples_what_it_scores_and_saves_adapters_alone(tmp_path):
    config = vldac.Config(**BRIEF, value_warmup=0, lora=LoraOptions(rank=2), lr=3e-3)
    run = resume_exactly(vldac, config, tmp_path)
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in rows_of(run.out))
    names = [name for name in newest_tensors(run) if name.startswith(("model.", "reference."))]
    assert names
    assert all(name.startswith("model.") and name.endswith(("A.weight", "B.weight")) for name in names)


def test_a_learner_of_one_file_has_all_that_a_run_brings(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("own_learner", OWN)
    own = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "own_learner", own)
    spec.loader.exec_module(own)
    run = resume_exactly(own, own.Config(**BRIEF, lr=1e-3), tmp_path)
    rows = rows_of(run.out)
    assert [row["policy/lr"] for row in rows] == [1e-3, 1e-3]
    assert rows[1]["policy/grad_norm"] > 0
    assert json.loads((run.out / "run.json").read_text())["config"]["algorithm"] == "REINFORCE"


def test_a_trained_vision_tower_changes_and_its_reference_keeps_the_old_one(tmp_path):
    config = vldac.Config(**BRIEF, value_warmup=0, train_vision=True, lr=1e-3, kl_coef=0.05, out=tmp_path / "run")
    run = vldac.train(config)
    trained = run.weights.family.vision_parameters()
    reference = run.weights.reference.family.vision_parameters()
    assert all(p.requires_grad for p in trained)
    assert not any(p.requires_grad for p in reference)
    assert all(a.data_ptr() != b.data_ptr() for a, b in zip(trained, reference, strict=True))
    assert {id(p) for p in trained} <= {id(p) for p in run.weights.parameters}
    assert any(name.startswith("reference.model.visual.") for name in newest_tensors(run))
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in rows_of(run.out))


def test_four_images_bring_the_turns_they_belong_to(tmp_path):
    options = {"env": LONG, "updates": 1, "rollout_steps": 5, "history_images": 4}
    run = vldac.train(vldac.Config(**{**BRIEF, **options}, value_warmup=0, out=tmp_path / "run"))
    assert rows_of(run.out)[0]["rollout/logp_diff_max"] < 1e-4
    assert max(len(prompt.images) for prompt in run.weights.family._prompts.values()) == 4
