"""Outputs of a learning run: log, trackers, and the learning curve."""

import json
import math
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from bandit import ENDS, SETTINGS
from matplotlib.figure import Figure

from baselines import vldac
from baselines.learning.collect import Environments
from baselines.learning.evaluation import _mean, find_blind
from baselines.learning.run import Run
from baselines.runs import logs
from baselines.runs.logs import RunLog, draw_success, note_failures, read_rows, summary
from vlgym.errors import UserError
from vlgym.registry.registry_file import read_registry

ROW = {"update": 1, "episode/success": math.nan, "rollout/invalid_rate": 0.25, "loss/kl": 0.01}


def test_the_summary_leaves_out_what_an_update_has_no_number_of():
    assert summary(ROW) == "invalid 0.25  kl 0.010"
    assert summary({**ROW, "episode/success": 0.5}) == "success 0.50  invalid 0.25  kl 0.010"


def test_bounds_of_several_environments_have_the_standard_error_of_their_mean():
    first, second = {"success": 0.2, "return": 1.0, "se": 0.3}, {"success": 0.4, "return": 2.0, "se": 0.4}
    bounds = [first, second]
    assert _mean(bounds) == pytest.approx({"success": 0.3, "return": 1.5, "se": 0.25})
    assert _mean([*bounds, None]) is None


def test_a_number_that_is_none_is_null_in_the_log(tmp_path):
    log = RunLog(tmp_path, name="vldac", total=2, done=0)
    log.write({"update": 1, "env_steps": 4, "a": math.nan, "b": math.inf, "c": 0.5})
    log.close()
    (row,) = read_rows(tmp_path / "log.jsonl")
    assert row == {"update": 1, "env_steps": 4, "a": None, "b": None, "c": 0.5}


def test_a_critic_that_explains_nothing_is_told_of_once(tmp_path, capsys):
    log = RunLog(tmp_path, name="vldac", total=40, done=0)
    history = [0.01] * 9 + [0.3] + [-0.2, math.nan] * 9 + [0.0, 0.0, 0.0]
    for update, explained in enumerate(history, 1):
        if update == 29:
            assert "explained less than 2%" not in capsys.readouterr().out
        log.write({"update": update, "env_steps": update, "value/explained_variance": explained})
    log.close()
    assert capsys.readouterr().out.count("explained less than 2%") == 1


def test_rows_and_failures_are_on_the_disk_before_the_checkpoint_that_relies_on_them(tmp_path, monkeypatch):
    done: list[Any] = []
    monkeypatch.setattr(logs, "sync", lambda path: done.append(path.name))
    log = RunLog(tmp_path, name="vldac", total=3, done=0)
    note_failures(tmp_path, [{"env_id": "x", "error": "fell over"}], 1)
    state = SimpleNamespace(save=lambda folder, learner: done.append("checkpoint"))
    run: Any = SimpleNamespace(log=log, state=state, out=tmp_path, learner=None)
    Run.save(run)
    log.close()
    assert done == ["log.jsonl", "failures.jsonl", tmp_path.name, "checkpoint"]
    assert json.loads((tmp_path / "failures.jsonl").read_text())["update"] == 1


def test_a_tracker_gets_every_number_of_the_log_and_a_picture_with_its_reply(tmp_path, monkeypatch, small_runs):
    service, other = MagicMock(), MagicMock()
    for name, each in (("wandb", service), ("trackio", other)):
        each.__name__ = name
        each.Image = lambda picture, caption: (picture, caption)
        each.init.return_value = each
        monkeypatch.setitem(sys.modules, name, each)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: True)
    options = {**SETTINGS, "env": ENDS, "num_envs": 2, "rollout_steps": 3, "updates": 2, "record_every": 2}
    vldac.train(vldac.Config(**options, tracker="wandb", out=tmp_path / "run"))
    again = vldac.Config(resume=True, updates=3, out=tmp_path / "run")
    with pytest.raises(UserError, match=r"a service that gets .*command line \(--tracker wandb\)"):
        vldac.train(again)
    vldac.train(replace(again, tracker="wandb"))
    logs.open_tracker("trackio", tmp_path / "run", 3)
    first, again, third = (call.kwargs for call in service.init.call_args_list + other.init.call_args_list)
    assert (first["project"], first["resume"], service.finish.call_count) == ("vlgym", "allow", 2)
    assert first["name"] == again["name"] == third["name"]
    assert first["name"].startswith("run-")
    assert ("id" in first, "id" in third) == (True, False)
    entries = [(call.kwargs["step"], call.args[0]) for call in service.log.call_args_list]
    numbers = {step: row for step, row in entries if "sample" not in row}
    for row in read_rows(tmp_path / "run" / "log.jsonl"):
        known = {k: v for k, v in row.items() if v is not None and k != "update"}
        assert numbers[row["update"]] == known
    samples = [(step, *row["sample"]) for step, row in entries if "sample" in row]
    recorded = list((tmp_path / "run" / "episodes").glob("update-*"))
    assert len(samples) == len(recorded) == 2  # of the updates 1 and 3
    for _, picture, reply in samples:
        assert (picture.ndim, picture.shape[2], picture.dtype) == (3, 3, "uint8")
        assert isinstance(reply, str)
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_tensorboard_has_the_picture_with_its_reply_and_none_writes_nothing(finished, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished / "tensorboard")).Reload()
    recorded = sorted((finished / "episodes").glob("update-*"))
    assert [each.step for each in events.Images("sample")] == [int(path.name[-6:]) for path in recorded] != []
    assert [each.step for each in events.Scalars("rollout/reward")] == [1, 2, 3]
    assert events.Tags()["tensors"] == ["sample/text_summary"]
    RunLog(tmp_path, name="vldac", total=1, done=0, tracker="none").close()
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_tracker_without_its_package_is_one_line(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for name in ("wandb", "trackio"):
        words = rf"^--tracker {name}: the package {name} .* pip install {name}$"
        with pytest.raises(UserError, match=words):
            vldac.Config(tracker=name).resolve()
    with pytest.raises(UserError, match="--tracker"):
        vldac.Config(tracker="wand").resolve()


def test_the_blind_line_is_the_registrys_and_missing_where_arguments_differ():
    entry = read_registry()["vlgym/NumberLine-v0"]["blind"]
    env_id = "vlgym/NumberLine-v0"
    cases = ((env_id, {}), (env_id, {"targets": 3}), ("x/Gone-v0", {}))
    lines = [find_blind(name, Environments([env_id], kwargs, 1)) for name, kwargs in cases]
    assert lines == [entry, None, None]
    assert {"success", "return", "se"} <= set(entry)


@pytest.fixture
def draw(tmp_path, monkeypatch):
    """Draw a curve, which must warn of nothing; return its figure."""
    figures, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: (figures.append(figure), save(figure, *a, **k)))
    bound = {"success": 0.2, "return": -1.0, "se": 0.1}

    def draw(rows, evaluations, **more) -> Figure:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            draw_success(
                tmp_path / "curve.png", rows, title="t", name="VL-DAC", num_envs=4, warm=[],
                evaluations=evaluations, floor=bound, oracle=bound, **more,
            )  # fmt: skip
        return figures[-1]

    return draw


def test_the_curve_shows_what_its_reader_must_not_miss(draw):
    report = {
        "success": 0.9, "success_low": 0.8, "success_high": 0.95, "mean_return": 0.7, "return_se": 0.1,
        "invalid_rate": 0.25, "cut_rate": 0.125,
    }  # fmt: skip
    rows = [
        {
            "env_steps": n, "episode/success": 0.5, "episode/return": 0.1, "episode/count": 2.0,
            "rollout/invalid_rate": n / 100, "rollout/cut_rate": 0.0, "curriculum/level_mean": 0.5,
            "curriculum/A-v0/0": low, "curriculum/A-v0/1": 4 - low,
        } for n, low in ((10, 4.0), (20, 1.0))
    ]  # fmt: skip
    evaluations = [{"env_steps": 0, **report}, {"env_steps": 20, **report, "invalid_rate": 0.0}]
    axes = draw(rows, evaluations, controls={"grey": [(0, 0.5), (20, 0.25)], "shuffled": []}).axes
    lines = [{line.get_label(): line.get_xydata().tolist() for line in axis.get_lines()} for axis in axes]
    assert axes[1].get_title() == "reinforcement learning (VL-DAC)"
    assert lines[1]["held-out episodes, grey pictures"] == [[0, 0.5], [20, 0.25]]
    assert [label for label in lines[1] if "pictures" in label] == ["held-out episodes, grey pictures"]
    for panel in lines[1:3]:  # before, only short episodes have ended
        assert [x for x, _ in panel["training (mean of 5 updates, from 4 episodes on)"]] == [20]
    assert lines[3].items() >= {
        "unreadable, training": [[10, 0.1], [20, 0.2]], "cut, training": [[10, 0.0], [20, 0.0]],
        "unreadable, held-out": [[0, 0.25], [20, 0.0]], "cut, held-out": [[0, 0.125], [20, 0.125]],
    }.items()  # fmt: skip
    assert axes[5].get_title() == "levels played, share of turns"
    shares = [
        (part.get_label(), {round(float(y), 3) for _, y in part.get_paths()[0].vertices})
        for part in axes[5].collections
    ]
    assert [label for label, _ in shares] == ["0", "1"]
    assert shares[0][1] == {0.0, 0.25, 1.0}
    assert shares[1][1] == {0.25, 1.0}


def test_a_run_that_has_hardly_begun_has_a_curve(draw):
    assert draw([], []).axes
