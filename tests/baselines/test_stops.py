"""Stops at bad moments: in the warm start, in the first evaluation, after the end; and options that are given twice."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from stage import ENV, SMALL

from baselines import study, vldac
from baselines.learning import command
from baselines.learning import run as run_module
from baselines.runs.checkpoint import checkpoints
from vlgym.errors import UserError

CONFIG = replace(vldac.Config(**SMALL), updates=1, value_warmup=0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run without a stop."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    vldac.train(replace(CONFIG, out=out))
    return out


def stop(*args, **kwargs):
    raise KeyboardInterrupt


def tensors(out):
    return load_file(checkpoints(out / "checkpoints")[-1] / "tensors.safetensors")


def assert_same_end(a, b):
    first, second = tensors(a), tensors(b)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert json.loads((a / "evaluation.json").read_text()) == json.loads((b / "evaluation.json").read_text())


def test_after_ctrl_c_in_the_warm_start_the_same_command_begins_again(whole, tmp_path, monkeypatch, capsys):
    config = replace(CONFIG, out=tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "warm_start", stop)
        with pytest.raises(KeyboardInterrupt):
            vldac.train(config)
    assert "the same command begins it again" in capsys.readouterr().out
    with pytest.raises(UserError, match="the same command without --resume"):
        vldac.train(vldac.Config(out=config.out, resume=True))
    vldac.train(config)
    assert_same_end(whole, config.out)


def test_a_stop_in_the_first_evaluation_loses_no_warm_start(whole, tmp_path, monkeypatch):
    config = replace(CONFIG, out=tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "held_out", stop)
        with pytest.raises(KeyboardInterrupt):
            vldac.train(config)
    monkeypatch.setattr(run_module, "warm_start", stop)  # it must not be made again
    vldac.train(vldac.Config(out=config.out, resume=True))
    assert_same_end(whole, config.out)


def test_resuming_a_finished_run_changes_nothing_and_says_how_to_go_on(whole, tmp_path, capsys):
    out = tmp_path / "copy"
    shutil.copytree(whole, out)
    capsys.readouterr()
    vldac.train(vldac.Config(out=out, resume=True))
    assert "all 1 updates of this run have been made" in capsys.readouterr().out.replace("\n", " ")
    assert_same_end(whole, out)
    assert (out / "log.jsonl").read_text() == (whole / "log.jsonl").read_text()
    assert [e["update"] for e in json.loads((out / "evaluation.json").read_text())] == [0, 1]


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch):
    monkeypatch.setattr("sys.argv", ["vldac"])
    with pytest.raises(SystemExit) as ended:
        command.main(vldac.Config, stop, "")
    assert ended.value.code == 130


@pytest.mark.parametrize(
    "words",
    [
        ["--env-kwargs", "a=1", "b=2", "--env-kwargs", "c=3", "--seed", "4"],
        ["--env-kwargs=a=1", "--seed=4", "--env-kwargs=b=2", "--env_kwargs", "c=3"],
    ],
)
def test_giving_a_list_option_again_adds(words):
    config = command.parse(vldac.Config, "", words)
    assert (config.env_kwargs, config.seed) == (("a=1", "b=2", "c=3"), 4)
    options = command.parse(study.Config, "", ["numberline", "--options=--a=1", "--options=--b"]).options
    assert options == ("--a=1", "--b")
    assert command.parse(vldac.Config, "", ["--env", ENV]).env_kwargs == ()
