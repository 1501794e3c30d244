"""--overwrite asks, says what it deletes, and deletes nothing but a run's own files; the places of results are checked
before work."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from stage import SMALL

from baselines import vldac
from baselines.learning.warm_start import WarmConfig
from baselines.models.lora import check_export
from baselines.runs import folder, logs
from vlgym.errors import UserError, check_writable

CONFIG = replace(vldac.Config(**SMALL), updates=1, eval_episodes=0, warm=WarmConfig(steps=0))


class Terminal(io.StringIO):
    """Someone who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(finished, tmp_path):
    """A copy of it, to spoil."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def files(out: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in out.rglob("*")}


def test_overwriting_asks_and_says_what_it_deletes(run, monkeypatch, capsys):
    before, again = files(run), replace(CONFIG, out=run, overwrite=True, seed=1)
    with pytest.raises(UserError, match=r"no terminal to ask. If it is meant, add --yes"):
        vldac.train(again)
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    with pytest.raises(UserError, match="Nothing was deleted"):
        vldac.train(again)
    assert files(run) == before
    told = capsys.readouterr().out
    assert (
        f"--overwrite deletes VL-DAC, vlgym/NumberLine-v0 (max_turns=4), tiny, seed 0 in {run} (checkpoints, curve.png"
        in told
    )
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    vldac.train(again)
    assert json.loads((run / "run.json").read_text())["config"]["seed"] == 1
    assert [row["update"] for row in logs.read_rows(run / "log.jsonl")] == [1]
    assert vldac.train(vldac.Config(out=run, resume=True)).state.update == 1  # it is a run like any other


def test_what_is_not_a_runs_is_never_deleted(run, tmp_path):
    (run / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"also holds notes.txt, which is not the run's; nothing was deleted"):
        vldac.train(replace(CONFIG, out=run, overwrite=True, yes=True))
    other = tmp_path / "photos"
    other.mkdir()
    (other / "holiday.jpg").write_text("mine")
    with pytest.raises(UserError, match=r"already holds other files; nothing was overwritten. You can choose another"):
        vldac.train(replace(CONFIG, out=other, overwrite=True, yes=True))
    assert (run / "notes.txt").exists()
    assert (run / "model" / "config.json").exists()
    assert (other / "holiday.jpg").exists()


def test_a_run_at_work_is_not_deleted(run):
    with folder.claim(run), pytest.raises(UserError, match="Another process is at work"):
        vldac.train(replace(CONFIG, out=run, overwrite=True, yes=True))
    assert (run / "model" / "config.json").exists()


def test_overwriting_nothing_in_particular_is_refused(tmp_path):
    for change, words in (({"resume": True}, "leave one of them out"), ({"out": None}, "--overwrite needs the folder")):
        with pytest.raises(UserError, match=words):
            vldac.train(replace(CONFIG, **{"out": tmp_path, "overwrite": True, **change}))


def test_a_model_never_replaces_files_that_are_no_models(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    check_export(tmp_path)
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match=r"holds thesis.tex, which is no model's"):
        vldac.train(replace(CONFIG, out=tmp_path / "run", export=tmp_path))
    assert not (tmp_path / "run").exists()


def test_a_read_only_folder_is_refused(tmp_path, monkeypatch):
    def refuse(**given):
        raise PermissionError  # root may write wherever the disk can be written

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(UserError, match=f"nothing can be written to {tmp_path}"):
        check_writable("--out", tmp_path / "a" / "b")


def test_a_tracker_that_does_not_start_ends_the_command_before_the_warm_start(tmp_path, monkeypatch):
    (tmp_path / "wandb.py").write_text("def init(**kwargs): raise RuntimeError('nobody is logged in')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("baselines.learning.run.warm_start", lambda *args, **kwargs: pytest.fail("work was begun"))
    config = replace(CONFIG, out=tmp_path / "run", track="wandb", warm=SMALL["warm"])
    with pytest.raises(UserError, match=r"--track wandb does not start \(RuntimeError: nobody is logged in\)"):
        vldac.train(config)
    with pytest.raises(UserError, match=r"trackio is not installed. Install it: pip install trackio"):
        vldac.train(replace(config, track="trackio"))
