"""Stops at bad moments: in the warm start, in the first evaluation, after the end; and options that
are given twice."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace

import pytest
from stage import FINISHED, assert_same_end, rows_of

from baselines import vldac
from baselines.learning import command
from baselines.learning import run as run_module
from baselines.learning.state import saved_config
from baselines.studies import study
from vlgym.errors import UserError


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
    out, exported = tmp_path / "a copy", tmp_path / "exported"
    shutil.copytree(finished, out)
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
    with pytest.raises(SystemExit) as ended:
        command.main(vldac.Config, stop, "")
    assert ended.value.code == 130


def test_giving_a_list_option_again_adds():
    config = command.parse(vldac.Config, "", ["--env-kwargs=a=1", "--seed=4", "--env-kwargs", "b=2"])
    assert (config.env_kwargs, config.seed) == (("a=1", "b=2"), 4)
    options = command.parse(study.Config, "", ["algorithms", "--options=--a=1", "--options=--b"]).options
    assert options == ("--a=1", "--b")
