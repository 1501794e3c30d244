"""The learner end to end on the tiny model: exact resumption, clear refusals, guarded steps, and learning itself."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stage import ENV, on_stage
from stage import SMALL as SETTINGS

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.learning.batch import Batch, micro_batches
from baselines.learning.collect import Collector
from baselines.learning.command import main
from baselines.learning.optimizers import MAX_SKIPS, Metrics
from baselines.learning.warm_start import NoisyOracle, WarmConfig, collect, warm_start
from baselines.models.load import load_family
from baselines.runs.checkpoint import checkpoints
from baselines.runs.folder import write_record
from baselines.runs.logs import RunLog, read_rows
from baselines.vldac import VLDAC, Config
from vlgym import make
from vlgym.errors import UserError
from vlgym.rollout import Runner

SMALL = Config(**{**SETTINGS, "num_envs": 3, "rollout_steps": 4, "value_warmup": 1})


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    """A small run of 4 updates without a stop."""
    out = tmp_path_factory.mktemp("runs") / "straight"
    vldac.train(replace(SMALL, out=out))
    return out


def interrupt_after(update: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C while update number `update` is being logged."""
    write = RunLog.write

    def write_and_interrupt(self, row):
        write(self, row)
        if row["update"] == update:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(RunLog, "write", write_and_interrupt)


def test_four_updates_equal_two_then_ctrl_c_then_resume_bit_for_bit(straight, tmp_path, monkeypatch, capsys):
    out = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        interrupt_after(2, patch)
        vldac.train(replace(SMALL, out=out))
    assert f"--resume --out {out}" in capsys.readouterr().out.replace("\n", "")
    assert checkpoints(out / "checkpoints")[-1].name == "update-000002"
    vldac.train(Config(out=out, resume=True))
    first, second = (checkpoints(folder / "checkpoints")[-1] for folder in (straight, out))
    assert first.name == second.name == "update-000004"
    a, b = load_file(first / "tensors.safetensors"), load_file(second / "tensors.safetensors")
    assert a.keys() == b.keys()
    assert any(name.startswith("optimizer.policy.") for name in a)
    assert all(torch.equal(a[name], b[name]) for name in a)
    states = [json.loads((folder / "state.json").read_text()) for folder in (first, second)]
    for state in states:
        state["warm"].pop("seconds")
    assert states[0] == states[1]
    rows = [
        [{k: v for k, v in row.items() if not k.startswith(("seconds", "speed"))} for row in read_rows(f / "log.jsonl")]
        for f in (straight, out)
    ]
    assert rows[0] == rows[1]


def test_a_run_leaves_its_record_log_curve_evaluations_and_model(straight):
    record = json.loads((straight / "run.json").read_text())
    assert record["config"]["lr"] > 0
    assert record["config"]["model"] == "tiny"
    assert {"spec_hash", "prompt_hash", "parser"} <= record["environments"][ENV].keys()
    assert {"torch", "transformers", "vlgym"} <= record["versions"].keys()
    assert "null" not in (straight / "run.json").read_text()  # what has a value is resolved, what has none is left out
    described = record["environments"][ENV]
    assert described["arguments"]["max_turns"] == 10
    assert described["arguments"]["parser"] == "tag-v1"
    assert described["history"] == {"turns": 0, "images": 1}
    assert described["distribution"] == "vlgym-cards"
    assert {"vlgym-cards", "pillow"} <= record["versions"].keys()
    policy = {"temperature": 1.0, "seed": 1, "image_tokens": 4, "dtype": "float32", "device": "cpu"}
    assert policy.items() <= record["policy"].items()
    state = json.loads((checkpoints(straight / "checkpoints")[-1] / "state.json").read_text())
    assert record["policy"]["max_new_tokens"] == state["max_new_tokens"] > 0
    assert record["episodes"]["held_out"] == {"split": "test", "first": 0, "end": 3, "sampler_seed": 0}
    assert record["config"]["out"] == str(straight)
    assert (straight / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert list((straight / "tensorboard").glob("events*"))
    evaluations = json.loads((straight / "evaluation.json").read_text())
    assert [(e["update"], e["split"], e["episodes"]) for e in evaluations] == [(0, "test", 3), (4, "test", 3)]
    assert type(load_family(str(straight / "model"))).__name__ == "TinyQwen2VL"
    rows = read_rows(straight / "log.jsonl")
    assert [row["update"] for row in rows] == [1, 2, 3, 4]
    wanted = {
        "episode/success",
        "episode/return",
        "rollout/invalid_rate",
        "rollout/logp_diff_mean",
        "rollout/logp_diff_p95",
        "rollout/logp_diff_max",
        "loss/policy",
        "loss/value",
        "loss/kl",
        "loss/clip_fraction",
        "value/explained_variance",
        "speed/env_steps_per_s",
        "seconds/rollout",
        "seconds/update",
    }
    assert wanted <= rows[0].keys()
    assert all(0 < row["seconds/env"] < row["seconds/rollout"] for row in rows)
    assert all(0.1 < row["speed/peak_memory_gib"] < 64 for row in rows)  # torch alone is more than that


def test_every_logged_metric_is_defined_in_the_documentation(straight):
    page = (Path(__file__).parents[2] / "docs" / "learner.md").read_text()
    logged = {name for row in read_rows(straight / "log.jsonl") for name in row}
    assert "loss/policy" in logged
    assert sorted(name for name in logged if f"`{name}`" not in page) == []


def test_sampled_and_scored_log_probs_agree_at_every_update(straight):
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in read_rows(straight / "log.jsonl"))


def test_the_policy_waits_while_the_value_head_warms_up(straight):
    rows = read_rows(straight / "log.jsonl")
    assert [row["policy/lr"] > 0 for row in rows] == [False, True, True, True]
    assert rows[0]["loss/kl"] == 0
    assert "value/grad_norm" in rows[0]


def test_a_used_folder_is_refused_and_left_alone(straight):
    before = {path: path.stat().st_mtime_ns for path in straight.rglob("*")}
    with pytest.raises(UserError, match="already holds VL-DAC"):
        vldac.train(replace(SMALL, out=straight))
    assert before == {path: path.stat().st_mtime_ns for path in straight.rglob("*")}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"env": "vlgym/EZPoints-v0"}, "--env vlgym/NumberLine-v0"),
        ({"model": "Qwen/Other"}, "--model tiny"),
        ({"num_envs": 7}, "--num-envs 3"),
    ],
)
def test_resuming_with_another_environment_model_or_option_is_refused(straight, change, words):
    before = {path: path.stat().st_mtime_ns for path in straight.rglob("*")}
    with pytest.raises(UserError, match=words):
        vldac.train(replace(Config(out=straight, resume=True), **change))
    assert before == {path: path.stat().st_mtime_ns for path in straight.rglob("*")}


def test_resuming_nothing_is_refused(tmp_path):
    with pytest.raises(UserError, match="--resume needs"):
        vldac.train(Config(resume=True))
    with pytest.raises(UserError, match="holds no run"):
        vldac.train(Config(resume=True, out=tmp_path))


def test_a_run_whose_prompts_have_changed_is_not_mixed_with_new_ones(straight, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(straight, copy)
    record = json.loads((copy / "run.json").read_text())
    record["environments"][ENV]["prompt_hash"] = "0" * 16
    write_record(copy / "run.json", record)
    with pytest.raises(UserError, match="changed since that run began"):
        vldac.train(Config(out=copy, resume=True))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"env": "vlgym/NumberLin-v0"}, "NumberLine"),
        ({"env": ""}, "NumberLine"),
        ({"env": f"{ENV},{ENV}"}, "twice"),
        ({"clip": 0.0}, "--clip"),
        ({"gamma": 1.5}, "--gamma"),
        ({"scoring": "best"}, "--scoring"),
        ({"track": "paper"}, "--track"),
        ({"model": "no/such-model"}, "no such model"),
        ({"warm": WarmConfig(noise=2.0)}, "noise"),
    ],
)
def test_bad_options_are_refused_with_a_clear_message(tmp_path, change, words):
    if change.get("env") == "":
        change = {"env": ","}
    with pytest.raises(UserError, match=words):
        vldac.train(replace(SMALL, out=tmp_path / "run", **change))


def test_the_command_line_prints_an_error_without_a_traceback():
    bad = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "baselines.vldac", "--env", "vlgym/Nothing-v0"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert bad.returncode == 2
    assert bad.stderr.startswith("error: ")
    assert "Traceback" not in bad.stderr


def test_help_names_every_option(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["vldac", "--help"])
    with pytest.raises(SystemExit) as ended:
        main(Config, vldac.train, vldac.__doc__)
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(option in shown for option in ("--env", "--resume", "--kl-coef", "--warm.noise"))


def set_the_stage(**changes) -> tuple[VLDAC, Batch]:
    """A learner and a rollout of 12 steps with advantages from -1 to 1."""
    learner = on_stage(vldac, **changes)
    batch, _ = learner.collect()
    batch.advantages = torch.linspace(-1, 1, 12)
    return learner, batch


def gradients_of(learner: VLDAC, batch: Batch, rows: torch.Tensor, size: int) -> list[torch.Tensor]:
    """What one gradient step of the policy would apply."""
    found: list[torch.Tensor] = []
    learner.optimizers.named["policy"].step = lambda: found.extend(
        p.grad.clone() for p in learner.weights.parameters if p.grad is not None
    )
    learner.policy_step(batch, rows, size, Metrics())
    return found


@pytest.mark.parametrize("smaller", [{"micro_batch": 5}, {"micro_tokens": 700}])
@pytest.mark.parametrize("loss", ["token", "step"])
def test_micro_batches_give_the_gradient_of_the_whole_minibatch(smaller, loss):
    gradients = []
    for change in ({"micro_batch": 12}, smaller):
        learner, batch = set_the_stage(policy_loss=loss, lr=1e-3, max_grad_norm=1e9, **change)
        rows = torch.arange(12)
        assert (len(micro_batches(batch, rows, learner.config)) > 1) == (change is smaller)
        gradients.append(gradients_of(learner, batch, rows, 12))
    for a, b in zip(*gradients, strict=True):
        assert (a - b).norm() <= 1e-4 * a.norm() + 1e-6


def test_a_non_finite_loss_is_skipped_and_counted_and_three_in_a_row_end_the_run():
    learner, batch = set_the_stage(minibatch=6, micro_batch=6, epochs=1, value_warmup=0, lr=1e-3)
    parameters = learner.weights.parameters
    batch.advantages[0] = math.nan
    before = [p.clone() for p in parameters]
    learner.learn(batch, 1)
    assert learner.optimizers.skips == 1
    assert all(torch.isfinite(p).all() for p in parameters)
    assert any(not torch.equal(a, b) for a, b in zip(before, parameters, strict=True))  # from the clean minibatch
    batch.advantages[:] = math.nan
    batch.returns[:] = math.nan
    with pytest.raises(UserError, match="3 gradient steps in a row"):
        learner.learn(batch, 1)


def test_the_value_loss_reaches_the_model_only_without_a_stop_gradient():
    for stop_gradient in (True, False):
        learner, batch = set_the_stage(stop_gradient=stop_gradient, value_coef=1.0, lr=1e-3, max_grad_norm=1e9)
        batch.advantages[:] = 0.0  # the policy loss has no gradient, so whatever comes is the value loss's
        batch.returns[:] = 1.0
        torch.nn.init.ones_(learner.value.outer.weight)
        found = gradients_of(learner, batch, torch.arange(12), 12)
        assert (sum(float(g.abs().sum()) for g in found) > 0) != stop_gradient


def test_truncated_episodes_bootstrap_with_the_value_of_their_final_observation_and_terminated_ones_do_not():
    learner = on_stage(vldac, rollout_steps=1, gamma=0.5, gae_lambda=1.0)
    torch.nn.init.constant_(learner.value.outer.bias, 7.0)  # V = 7 everywhere
    envs = [make(ENV, max_turns=1), make(ENV, max_turns=1, invalid_action="terminate")]
    learner.collector = Collector([Runner(envs, split="train")], learner.run.policy)
    batch, metrics = learner.collect()  # an untrained model's reply is unreadable: truncated there, terminated here
    assert metrics["rollout/invalid_rate"] == 1.0
    assert batch.returns.tolist() == pytest.approx([3.5, 0.0])


def test_noisy_labels_are_counted_and_the_warm_start_learns_them():
    family = load_family("tiny", image_tokens=4)
    config = WarmConfig(steps=60, samples=256, batch=32, check_every=100, noise=0.5)
    data, replaced = collect([ENV], config, 0, {}, family)
    assert len(data) >= 256
    assert 0.15 < replaced < 0.35  # half of the random actions are the oracle's by chance
    engine = Engine(family, max_new_tokens=64)
    report = warm_start(engine, [ENV], config, seed=0)
    assert report.labels_replaced == replaced
    assert report.steps == 60
    assert report.loss < 2.5  # mean over the steps; log(1624) = 7.4 at the start
    assert engine.max_new_tokens == report.longest_reply + report.longest_reply // 2
    reply = engine.sample([data[0][0]], torch.Generator().manual_seed(0), greedy=True).texts[0]
    assert reply.endswith(("<action>+</action>", "<action>-</action>"))


def test_the_noisy_oracle_without_noise_is_the_oracle():
    import numpy as np

    runner = Runner([make(ENV)], split="train", episodes=5)
    policy = NoisyOracle(0.0, np.random.default_rng(0))
    while not runner.done:
        (record,) = runner.step(policy)
        assert record.reward >= 0
    assert policy.replaced == 0


def test_one_update_runs_on_several_environments_at_once(tmp_path):
    config = replace(
        SMALL, env=f"{ENV},vlgym/Blackjack-v0", updates=1, num_envs=2, out=tmp_path / "mixed", max_new_tokens=None
    )
    run = vldac.train(config)
    assert run.state.update == 1
    assert {e["env_id"] for e in run.state.evaluations} == {ENV, "vlgym/Blackjack-v0"}


def test_the_learning_rate_falls_by_a_cosine_after_the_warm_up():
    learner = on_stage(vldac, updates=12, value_warmup=1, lr=1.0, final_lr=0.1)
    rates = [learner.rate(update) for update in range(1, 13)]
    assert rates[0] == 0
    assert rates[1] == pytest.approx(1.0)
    assert rates[6] == pytest.approx(0.55)
    assert rates[11] == pytest.approx(0.1)
    assert MAX_SKIPS == 3
