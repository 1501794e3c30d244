"""Whole runs with adapters, with a trained vision tower, and with history: exact resumption and
export."""

from __future__ import annotations

from dataclasses import replace

from safetensors.torch import load_file
from stage import SMALL, assert_same_end, rewind

from baselines import vldac
from baselines.models.lora import LoraOptions
from baselines.runs.folder import checkpoints
from baselines.runs.logs import read_rows
from baselines.vldac import Config

BASE = replace(Config(**SMALL), num_envs=2, final_lr=1.0, value_warmup=0, eval_episodes=0, invalid_penalty=0.5)
LORA = replace(BASE, lora=LoraOptions(rank=2), lr=3e-3, updates=2)


def test_a_run_with_adapters_samples_what_it_scores_and_resumes_exactly(tmp_path):
    whole = vldac.train(replace(LORA, out=tmp_path / "whole"))
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in read_rows(whole.out / "log.jsonl"))
    vldac.train(Config(out=rewind(whole.out, tmp_path / "stopped"), resume=True))
    assert_same_end(whole.out, tmp_path / "stopped")
    first = load_file(checkpoints(whole.out / "checkpoints")[-1] / "tensors.safetensors")
    names = [name for name in first if name.startswith("model.")]
    assert names
    assert all(name.endswith(("A.weight", "B.weight")) for name in names)  # adapters alone
    assert not any(name.startswith("reference.") for name in first)


def test_a_trained_vision_tower_changes_and_its_reference_keeps_the_old_one(tmp_path):
    config = replace(BASE, train_vision=True, lr=1e-3, updates=2, kl_coef=0.05)
    run = vldac.train(replace(config, out=tmp_path / "run"))
    tensors = load_file(checkpoints(run.out / "checkpoints")[-1] / "tensors.safetensors")
    trained = run.weights.family.vision_parameters()
    kept = run.weights.reference.family.vision_parameters()
    assert all(p.requires_grad for p in trained)
    assert not any(p.requires_grad for p in kept)
    assert all(a.data_ptr() != b.data_ptr() for a, b in zip(trained, kept, strict=True))
    assert {id(p) for p in trained} <= {id(p) for p in run.weights.parameters}
    assert any(name.startswith("reference.model.visual.") for name in tensors)
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in read_rows(run.out / "log.jsonl"))


def test_four_images_bring_the_turns_they_belong_to(tmp_path):
    run = vldac.train(replace(BASE, history_images=4, rollout_steps=5, updates=1, out=tmp_path / "run"))
    (row,) = read_rows(run.out / "log.jsonl")
    assert row["rollout/logp_diff_max"] < 1e-4
    longest = max(len(prompt.images) for prompt in run.weights.family._prompts.values())
    assert longest == 4
