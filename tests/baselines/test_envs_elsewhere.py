"""Training with environments in worker processes: the same run bit for bit, with workers killed on the way."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from stage import SMALL

from baselines import grpo, vldac
from baselines.learning.collect import Collector
from baselines.learning.warm_start import WarmConfig
from baselines.runs.checkpoint import checkpoints
from baselines.runs.logs import read_rows
from vlgym.env_groups.workers import WorkerGroup
from vlgym.errors import UserError

BRIEF = {
    **SMALL, "updates": 2, "rollout_steps": 2, "minibatch": 4, "save_every": 2, "record_every": 1,
    "env_kwargs": ("max_turns=4",), "warm": WarmConfig(steps=2, samples=16, batch=4, check_every=2, val_episodes=4),
}  # fmt: skip


def end_of(out: Path) -> Any:
    """What a run left: its last weights, log and evaluations, wall time apart."""
    tensors = load_file(checkpoints(out / "checkpoints")[-1] / "tensors.safetensors")
    rows = [
        {name: str(value) for name, value in row.items() if not name.startswith(("seconds", "speed"))}
        for row in read_rows(out / "log.jsonl")
    ]
    pictures = sorted(path.name for path in out.glob("episodes/*/images/*"))
    evaluation = out / "evaluation.json"
    return tensors, rows, json.loads(evaluation.read_text()) if evaluation.exists() else None, pictures


def assert_same(a: Any, b: Any) -> None:
    assert a[1:] == b[1:]
    assert a[0].keys() == b[0].keys()
    assert all(torch.equal(a[0][name], b[0][name]) for name in a[0])


def test_a_run_with_killed_workers_ends_as_the_undisturbed_one(tmp_path, monkeypatch, capsys):
    config = replace(vldac.Config(**BRIEF), value_warmup=1)
    vldac.train(replace(config, out=tmp_path / "local"))
    waits, wait, play, played = [0], WorkerGroup.wait, Collector.play, []

    def kill(group: Any) -> None:
        longest = max(group._places.values(), key=lambda place: len(place.steps))
        played.append(len(longest.steps))
        os.kill(longest.worker.pid, signal.SIGKILL)

    def waiting(self: WorkerGroup, ticket: Any) -> Any:
        waits[0] += 1
        if waits[0] in (60, 256, 800):  # in warm start and evaluations
            kill(self)
        return wait(self, ticket)

    def playing(self: Collector, steps: int) -> Any:
        kill(self.runners[0].slots[0].env._caller)
        return play(self, steps)

    monkeypatch.setattr(WorkerGroup, "wait", waiting)
    monkeypatch.setattr(Collector, "play", playing)
    vldac.train(replace(config, out=tmp_path / "processes", envs="processes:2"))
    assert played[-2] == 2  # the rollout of the second update goes on with episodes of two steps
    assert capsys.readouterr().out.count("was given up: it was ended by signal 9") == len(played) == 5
    assert_same(end_of(tmp_path / "local"), end_of(tmp_path / "processes"))


def test_whole_episodes_in_groups_are_the_same_elsewhere(tmp_path):
    config = replace(grpo.Config(**BRIEF), num_envs=4, group=2, updates=1, eval_episodes=0, warm=WarmConfig(steps=0))
    for name in ("local", "processes:1"):
        grpo.train(replace(config, out=tmp_path / name, envs=name))
    assert_same(end_of(tmp_path / "local"), end_of(tmp_path / "processes:1"))


def test_self_play_stays_in_this_process():
    with pytest.raises(UserError, match="does not go with --envs"):
        replace(vldac.Config(), self_play=True, envs="processes").resolve()
