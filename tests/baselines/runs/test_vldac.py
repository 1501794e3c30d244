"""VL-DAC on the tiny model: exact resumption, stops, clear refusals, guarded steps."""

import json
import math
import os
import re
import shlex
import shutil
import signal
import sys
from dataclasses import replace

import pytest
import torch
from bandit import LONG, on_stage
from stage import ENV, FINISHED, assert_same_end, roll_out, rows_of

from baselines import vldac
from baselines.learning import command
from baselines.learning import run as run_module
from baselines.learning.state import saved_config
from baselines.models.load import load_family
from baselines.runs.folder import checkpoints, write_record
from baselines.runs.logs import RunLog, read_rows
from baselines.studies import study
from vlgym.errors import UserError


def test_three_updates_equal_two_then_ctrl_c_then_resume_bit_for_bit(finished, tmp_path, monkeypatch, capsys):
    out, write = tmp_path / "stopped", RunLog.write

    def write_and_interrupt(self, row):
        write(self, row)
        if row["update"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(RunLog, "write", write_and_interrupt)
        vldac.train(replace(FINISHED, out=out))
    assert f"--resume --out {out}" in capsys.readouterr().out.replace("\n", "")
    assert checkpoints(out / "checkpoints")[-1].name == "update-000002"
    vldac.train(vldac.Config(out=out, resume=True))
    assert_same_end(finished, out)


def test_a_run_leaves_its_record_log_curve_evaluations_and_model(finished):
    record = json.loads((finished / "run.json").read_text())
    assert record["config"]["model"] == "tiny"
    assert {"spec_hash", "prompt_hash", "parser"} <= record["environments"][ENV].keys()
    assert "null" not in (finished / "run.json").read_text()  # what has a value is resolved, what has none is left out
    described = record["environments"][ENV]
    assert {"max_turns": 3, "parser": "auto-v1"}.items() <= described["arguments"].items()
    assert (described["history"], described["distribution"]) == ({"turns": 0, "images": 1}, "vlgym-cards")
    assert {"torch", "transformers", "vlgym", "vlgym-cards", "pillow"} <= record["versions"].keys()
    policy = {"temperature": 1.0, "seed": 1, "image_tokens": 4, "dtype": "float32", "device": "cpu"}
    assert policy.items() <= record["policy"].items()
    state = json.loads((checkpoints(finished / "checkpoints")[-1] / "state.json").read_text())
    assert record["policy"]["max_new_tokens"] == state["max_new_tokens"] > 0
    assert record["episodes"]["held_out"] == {"split": "test", "first": 0, "end": 1, "sampler_seed": 0}
    assert record["config"]["out"] == str(finished)
    assert (finished / "curve.png").read_bytes().startswith(b"\x89PNG")
    evaluations = json.loads((finished / "evaluation.json").read_text())
    assert [(e["update"], e["split"], e["episodes"]) for e in evaluations] == [(0, "test", 1), (3, "test", 1)]
    assert type(load_family(str(finished / "model"))).__name__ == "TinyQwen2VL"
    rows = read_rows(finished / "log.jsonl")
    assert [row["update"] for row in rows] == [1, 2, 3]
    wanted = {
        "episode/success", "episode/return", "rollout/invalid_rate", "rollout/logp_diff_mean", "loss/policy",
        "loss/value", "loss/kl", "value/explained_variance", "speed/env_steps_per_s", "seconds/update",
    }  # fmt: skip
    assert wanted <= rows[0].keys()
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in rows)
    assert all(0 < row["seconds/env"] < row["seconds/rollout"] for row in rows)
    assert all(0.1 < row["speed/peak_memory_gib"] < 64 for row in rows)  # torch alone is more than that


def test_a_used_folder_is_refused_and_left_alone(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    with pytest.raises(UserError, match="already holds VL-DAC"):
        vldac.train(replace(FINISHED, out=finished))
    assert before == {path: path.stat().st_mtime_ns for path in finished.rglob("*")}


def test_resuming_nothing_or_with_another_environment_or_option_is_refused(finished, tmp_path):
    for change, words in (({"env": "vlgym/EZPoints-v0"}, f"--env {ENV}"), ({"num_envs": 7}, "--num-envs 2")):
        with pytest.raises(UserError, match=words):
            vldac.train(replace(vldac.Config(out=finished, resume=True), **change))
    with pytest.raises(UserError, match="--resume needs"):
        vldac.train(vldac.Config(resume=True))
    with pytest.raises(UserError, match="holds no run"):
        vldac.train(vldac.Config(resume=True, out=tmp_path))


def test_a_run_whose_prompts_have_changed_is_not_mixed_with_new_ones(finished, tmp_path):
    copy = shutil.copytree(finished, tmp_path / "copy")
    record = json.loads((copy / "run.json").read_text())
    record["environments"][ENV]["prompt_hash"] = "0" * 16
    write_record(copy / "run.json", record)
    with pytest.raises(UserError, match="changed since that run began"):
        vldac.train(vldac.Config(out=copy, resume=True))


@pytest.mark.parametrize(
    ("option", "fewest", "most", "named"), [("--help", 30, 40, "--kl-coef"), ("--help-all", 70, 90, "--warm.noise")]
)
def test_help_names_the_usual_options_help_all_every_one(monkeypatch, capsys, option, fewest, most, named):
    monkeypatch.setattr(sys, "argv", ["vldac", option])
    with pytest.raises(SystemExit, match=r"^0$"):
        command.main(vldac.Config, vldac.train, vldac.__doc__)
    options = r"^(?:  |.* )(--[a-z][a-z.-]+)(?:, --no|[ \n]+[{A-Z])"
    flags = {*re.findall(options, capsys.readouterr().out, re.MULTILINE)}
    assert fewest <= len(flags) <= most
    assert {"--env", "--resume", named} <= flags


def test_a_non_finite_loss_is_skipped_and_counted_and_three_in_a_row_end_the_run():
    options = {"env": LONG, "num_envs": 4, "rollout_steps": 3, "epochs": 1, "value_warmup": 0, "lr": 1e-3}
    learner = on_stage(vldac, minibatch=6, micro_batch=6, **options)
    (batch, _), parameters = roll_out(learner), learner.weights.parameters
    batch.advantages = torch.tensor([math.nan, *torch.linspace(-1, 1, 11).tolist()])
    before = [p.clone() for p in parameters]
    learner.update(batch, 1)
    assert learner.optimizers.skips == 1
    assert all(torch.isfinite(p).all() for p in parameters)
    assert any(not torch.equal(a, b) for a, b in zip(before, parameters, strict=True))  # from the clean minibatch
    batch.advantages[:] = math.nan
    batch.returns[:] = math.nan
    with pytest.raises(UserError, match="3 gradient steps in a row"):
        learner.update(batch, 1)


def stop(*args, **kwargs):
    raise KeyboardInterrupt


def test_a_stop_in_the_warm_start_begins_it_again_and_one_in_the_first_evaluation_does_not_lose_it(
    finished, tmp_path, monkeypatch, capsys
):
    config = replace(FINISHED, updates=1, out=tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "warm_start", stop)
        with pytest.raises(KeyboardInterrupt):
            vldac.train(config)
    assert "the same command begins it again" in capsys.readouterr().out
    with pytest.raises(UserError, match="the same command without --resume"):
        vldac.train(vldac.Config(out=config.out, resume=True))
    with monkeypatch.context() as patch:
        patch.setattr(run_module.evaluation, "held_out", stop)
        with pytest.raises(KeyboardInterrupt):
            vldac.train(config)
    monkeypatch.setattr(run_module, "warm_start", stop)  # it must not be made again
    vldac.train(vldac.Config(out=config.out, resume=True))
    assert rows_of(config.out) == rows_of(finished)[:1]


def test_a_finished_run_is_resumed_without_a_change_and_then_with_one(finished, tmp_path, capsys):
    out, exported = shutil.copytree(finished, tmp_path / "a copy"), tmp_path / "exported"
    capsys.readouterr()
    vldac.train(vldac.Config(out=out, resume=True))
    assert "all 3 updates have been made" in capsys.readouterr().out.replace("\n", " ")
    assert_same_end(finished, out)
    assert (out / "log.jsonl").read_text() == (finished / "log.jsonl").read_text()
    run = vldac.train(vldac.Config(out=out, resume=True, updates=4, export=exported))
    assert (run.state.update, (exported / "config.json").exists()) == (4, True)
    words = shlex.split(run._resume())[3:]
    assert words == ["--resume", "--out", str(out), "--export", str(exported)]
    assert saved_config(command.parse(vldac.Config, None, words)).updates == 4


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch):
    monkeypatch.setattr("sys.argv", ["vldac"])
    with pytest.raises(SystemExit, match=r"^130$"):
        command.main(vldac.Config, stop, "")


def test_giving_a_list_option_again_adds():
    config = command.parse(vldac.Config, "", ["--env-kwargs=a=1", "--seed=4", "--env-kwargs", "b=2"])
    assert (config.env_kwargs, config.seed) == (("a=1", "b=2"), 4)
    options = command.parse(study.Config, "", ["algorithms", "--options=--a=1", "--options=--b"]).options
    assert options == ("--a=1", "--b")
