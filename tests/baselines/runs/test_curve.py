"""The learning curve shows what its reader must not miss."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.figure import Figure

from baselines.learning.collect import Environments
from baselines.learning.evaluation import find_blind
from baselines.runs.logs import draw_success
from vlgym.registry.registry_file import read_registry

REPORT = {
    "success": 0.9, "success_low": 0.8, "success_high": 0.95, "mean_return": 0.7, "return_se": 0.1,
    "invalid_rate": 0.25, "cut_rate": 0.125,
}  # fmt: skip
ROWS = [
    {
        "env_steps": n, "episode/success": 0.5, "episode/return": 0.1, "episode/count": 2.0,
        "rollout/invalid_rate": n / 100, "rollout/cut_rate": 0.0,
    } for n in (10, 20)
]  # fmt: skip


def draw(path, monkeypatch, rows, evaluations, num_envs=1, **more) -> Figure:
    figures = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: (figures.append(figure), save(figure, *a, **k)))
    bound = {"success": 0.2, "return": -1.0, "se": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_success(
            path, rows, title="t", name="VL-DAC", num_envs=num_envs, warm=[],
            evaluations=evaluations, floor=bound, oracle=bound, **more,
        )  # fmt: skip
    return figures[0]


def test_unreadable_and_cut_replies_are_drawn(tmp_path, monkeypatch):
    evaluations = [{"env_steps": 0, **REPORT}, {"env_steps": 20, **REPORT, "invalid_rate": 0.0}]
    axis = draw(tmp_path / "curve.png", monkeypatch, ROWS, evaluations).axes[3]
    lines = {line.get_label(): np.asarray(line.get_xydata()).tolist() for line in axis.get_lines()}
    assert lines["unreadable, training"] == [[10, 0.1], [20, 0.2]]
    assert lines["cut, training"] == [[10, 0.0], [20, 0.0]]
    assert lines["unreadable, held-out"] == [[0, 0.25], [20, 0.0]]
    assert lines["cut, held-out"] == [[0, 0.125], [20, 0.125]]


def test_success_is_drawn_once_as_many_episodes_ended(tmp_path, monkeypatch):
    panels = draw(tmp_path / "curve.png", monkeypatch, ROWS, [], 4).axes
    for axis in panels[1:3]:  # before, only short episodes have ended
        (line,) = [line for line in axis.get_lines() if line.get_label().startswith("training")]
        assert line.get_xdata().tolist() == [20]
        assert line.get_label() == "training (mean of 5 updates, from 4 episodes on)"


def test_success_with_other_pictures_is_a_line_each(tmp_path, monkeypatch):
    controls = {"grey": [(0, 0.5), (20, 0.25)], "shuffled": []}
    evaluations = [{"env_steps": 20, **REPORT}]
    axis = draw(tmp_path / "curve.png", monkeypatch, ROWS, evaluations, controls=controls).axes[1]
    (known,) = [line for line in axis.get_lines() if "pictures" in line.get_label()]
    assert known.get_label() == "held-out episodes, grey pictures"
    assert known.get_xydata().tolist() == [[0, 0.5], [20, 0.25]]
    assert axis.get_title() == "reinforcement learning (VL-DAC)"


def test_the_blind_line_is_the_registrys_and_missing_where_arguments_differ():
    entry = read_registry()["vlgym/NumberLine-v0"]["blind"]
    env_id = "vlgym/NumberLine-v0"
    cases = ((env_id, {}), (env_id, {"targets": 3}), ("x/Gone-v0", {}))
    found = [find_blind(name, Environments([env_id], kwargs, 1)) for name, kwargs in cases]
    assert found == [entry, None, None]
    assert {"success", "return", "se"} <= set(entry)


def test_a_run_that_has_hardly_begun_has_a_curve(tmp_path, monkeypatch):
    draw(tmp_path / "curve.png", monkeypatch, [], [])
    assert (tmp_path / "curve.png").is_file()


def test_levels_played_are_drawn_as_shares_of_the_turns(tmp_path, monkeypatch):
    played = [
        {**row, "curriculum/level_mean": 0.5, "curriculum/A-v0/0": low, "curriculum/A-v0/1": 4 - low}
        for row, low in zip(ROWS, (4.0, 1.0), strict=True)
    ]
    axis = draw(tmp_path / "curve.png", monkeypatch, played, []).axes[5]
    assert axis.get_title() == "levels played, share of turns"
    easy, hard = axis.collections
    assert [easy.get_label(), hard.get_label()] == ["0", "1"]
    assert {round(float(y), 3) for _, y in easy.get_paths()[0].vertices} == {0.0, 0.25, 1.0}
    assert {round(float(y), 3) for _, y in hard.get_paths()[0].vertices} == {0.25, 1.0}
