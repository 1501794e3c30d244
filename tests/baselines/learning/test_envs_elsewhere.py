"""A learner on an environment of every family, and on environments in worker processes."""

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from samples import DEVICE
from stage import ONE_UPDATE, SMALL, assert_same_end

from baselines import self_play, vldac
from baselines.learning.collect import Collector
from baselines.learning.warm_start import WarmConfig
from baselines.runs.logs import read_rows
from vlgym.env_groups.workers import WorkerGroup
from vlgym.errors import UserError

BRIEF = {
    **SMALL, "updates": 2, "num_envs": 2, "rollout_steps": 2, "minibatch": 4, "save_every": 2, "record_every": 1,
    "epochs": 1, "max_new_tokens": 9, "eval_episodes": 0, "env_kwargs": ("max_turns=4",),
    "warm": WarmConfig(steps=2, samples=16, batch=4, check_every=2, val_episodes=2),
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


BROWSER = [pytest.mark.xdist_group("browser"), pytest.mark.exhaustive]
CASES = [
    pytest.param("vlgym/SeeDigit-v0", (), id="sight"),
    *(pytest.param(env_id, arguments, id=family, marks=pytest.mark.exhaustive) for family, env_id, *arguments in (
        ("sokoban", "vlgym/Sokoban-v0", "group=small-v0", "planner=global", "max_turns=4"),
        ("pettingzoo", "vlgym/TicTacToe-v0"), ("cards", "vlgym/EZPoints-v0", "max_turns=4"),
        ("miniworld", "vlgym/OneRoom-v0", "max_turns=4"), ("football", "vlgym/Football-v0", "max_turns=3"),
        ("alfworld", "vlgym/ALFWorld-v0", "image_size=[112, 112]", "max_turns=4"),
    )),
    pytest.param("vlgym/WebShop-v0", ("max_turns=4",), id="webshop", marks=BROWSER),
    pytest.param("vlgym/WebUI-v0", ("max_turns=2",), id="webui", marks=BROWSER),
]  # fmt: skip


@pytest.mark.on_device
@pytest.mark.parametrize(("env_id", "arguments"), CASES)
def test_an_update_runs_and_sampling_agrees_with_scoring(tmp_path, env_id, arguments):
    run = vldac.train(replace(
        vldac.Config(**ONE_UPDATE), env=env_id, env_kwargs=tuple(arguments), minibatch=2, eval_episodes=1,
        max_new_tokens=None, device=DEVICE, out=tmp_path / "run",
        warm=WarmConfig(steps=1, samples=8, batch=4, val_episodes=1),
    ))  # fmt: skip
    (row,) = read_rows(run.out / "log.jsonl")
    assert (row["env_steps"], row["env/failures"]) == (4, 0)
    assert row["rollout/logp_diff_max"] < (1e-4 if DEVICE == "cpu" else 1e-3)
    assert row["policy/grad_norm"] >= 0
    assert [e["episodes"] for e in run.state.evaluations] == [1, 1]
    assert run.state.warm.longest_reply > 0
