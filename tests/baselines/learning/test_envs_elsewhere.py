"""Training with environments in worker processes: the same run bit for bit, with workers killed on
the way."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from stage import SMALL, assert_same_end

from baselines import self_play, vldac
from baselines.learning.collect import Collector
from baselines.learning.warm_start import WarmConfig
from vlgym.env_groups.workers import WorkerGroup
from vlgym.errors import UserError

BRIEF = {
    **SMALL, "updates": 2, "rollout_steps": 2, "minibatch": 4, "save_every": 2, "record_every": 1,
    "env_kwargs": ("max_turns=4",), "warm": WarmConfig(steps=2, samples=16, batch=4, check_every=2, val_episodes=4),
}  # fmt: skip


def test_a_run_with_killed_workers_ends_as_the_undisturbed_one(tmp_path, monkeypatch, capsys):
    config = replace(vldac.Config(**BRIEF), value_warmup=1)
    vldac.train(replace(config, out=tmp_path / "local"))
    waits, wait, play, played = [0], WorkerGroup.wait, Collector.play, []

    def kill(group: Any) -> None:
        longest = max(group._places.values(), key=lambda place: len(place.steps))
        played.append(len(longest.steps))
        os.kill(longest.worker.link.pid, signal.SIGKILL)

    def waiting(self: WorkerGroup, ticket: Any) -> Any:
        waits[0] += 1
        if waits[0] == 60:  # in the warm start
            kill(self)
        return wait(self, ticket)

    def playing(self: Collector, steps: int) -> Any:
        kill(self.runner.slots[0].env._caller)
        return play(self, steps)

    monkeypatch.setattr(WorkerGroup, "wait", waiting)
    monkeypatch.setattr(Collector, "play", playing)
    vldac.train(replace(config, out=tmp_path / "processes", envs="processes:2"))
    assert played[-1] == 2  # the rollout of the second update goes on with episodes of two steps
    assert capsys.readouterr().out.count("was given up: it was ended by signal 9") == len(played) == 3
    assert_same_end(tmp_path / "local", tmp_path / "processes")


def test_self_play_stays_in_this_process():
    with pytest.raises(UserError, match="does not go with --envs"):
        replace(self_play.Config(), envs="processes").resolve()
