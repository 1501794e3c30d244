"""What may go wrong in a long run: a kill, a full disk, an environment that breaks, memory that runs out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stage import SMALL, on_stage

from baselines import loop, vldac
from baselines.learning.collect import Collector
from baselines.learning.environments import Environments
from baselines.learning.update import memory_advice
from baselines.runs import checkpoint, folder
from baselines.runs.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from baselines.runs.logs import read_rows
from baselines.vldac import VLDAC, Config
from vlgym.env_failures import FAILURES_IN_A_ROW
from vlgym.errors import UserError

ROOT = Path(__file__).parents[2]
OPTIONS = [
    "--env", "vlgym/NumberLine-v0", "--updates", "6", "--num-envs", "4", "--rollout-steps", "3", "--minibatch", "6",
    "--image-tokens", "4", "--max-new-tokens", "12", "--eval-episodes", "3", "--save-every", "1", "--threads", "1",
    "--warm.steps", "3", "--warm.samples", "64", "--warm.batch", "8", "--warm.check-every", "50",
]  # fmt: skip


def test_a_run_that_is_killed_goes_on_from_its_newest_checkpoint_to_the_same_end(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [sys.executable, "-m", "baselines.vldac"]
    subprocess.run([*command, *OPTIONS, "--out", str(whole)], cwd=ROOT, check=True, capture_output=True)
    process = subprocess.Popen([*command, *OPTIONS, "--out", str(killed)], cwd=ROOT, stdout=subprocess.DEVNULL)
    while not (killed / "checkpoints" / "update-000002").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.05 * (os.getpid() % 7))  # wherever it then is: in a rollout, an update, or writing a checkpoint
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "model").exists()
    subprocess.run([*command, "--resume", "--out", str(killed)], cwd=ROOT, check=True, capture_output=True)
    logs = [
        [
            {name: value for name, value in row.items() if not name.startswith(("seconds", "speed"))}
            for row in read_rows(folder / "log.jsonl")
        ]
        for folder in (whole, killed)
    ]
    assert logs[0] == logs[1]
    first, second = (
        load_file(checkpoints(folder / "checkpoints")[-1] / "tensors.safetensors") for folder in (whole, killed)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_crash_while_a_checkpoint_is_written_loses_nothing(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, {"x": torch.ones(2)}, {"update": 1})

    def full(tensors, path):
        Path(path).write_bytes(b"half")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", full)
        with pytest.raises(OSError, match="No space"):
            save_checkpoint(tmp_path, {"x": torch.zeros(2)}, {"update": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["update-000001"]  # half of one fills a full disk
    tensors, state = load_checkpoint(tmp_path)
    assert state["update"] == 1
    assert tensors["x"].tolist() == [1.0, 1.0]
    save_checkpoint(tmp_path, {"x": torch.zeros(2)}, {"update": 2})
    assert load_checkpoint(tmp_path)[1]["update"] == 2


def test_two_processes_cannot_work_in_one_runs_folder(tmp_path):
    out = tmp_path / "run"
    vldac.train(replace(Config(**SMALL), updates=1, eval_episodes=0, out=out))
    lock = folder.claim(out)
    with pytest.raises(UserError, match="Another process is at work"):
        vldac.train(Config(out=out, resume=True, updates=2))
    lock.close()
    assert vldac.train(Config(out=out, resume=True, updates=2)).state.update == 2


def break_env(env, at: int) -> None:
    """Let an environment's `at`-th step raise."""
    step, count = env.step, [0]

    def broken(reply):
        count[0] += 1
        if count[0] == at:
            raise RuntimeError("the engine fell over")
        return step(reply)

    env.step = broken


def test_an_environment_that_raises_is_noted_and_restarted_and_the_batch_is_whole(monkeypatch):
    learner = on_stage(vldac, num_envs=3)
    runner = learner.collector.runners[0]
    runner.remake = learner.run.envs.make
    broken = runner.slots[1].env
    break_env(broken, 2)
    batch, _ = learner.collect()
    assert len(batch.samples) == 9
    (failure,) = learner.run.envs.failures
    assert (failure["env_id"], failure["episode"], failure["turn"]) == ("vlgym/NumberLine-v0", 1, 1)
    assert failure["error"] == "RuntimeError: the engine fell over"
    assert failure["reply"] == learner.weights.family.decode(batch.samples[4].ids.tolist())
    assert runner.slots[1].env is not broken
    assert runner.slots[1].episode == 1 + 3
    assert all(value == value for value in learner.learn(batch, 10).values())


def test_a_broken_off_episode_bootstraps_with_the_value_of_its_last_state():
    learner = on_stage(vldac, num_envs=1, rollout_steps=1, gamma=0.5, gae_lambda=1.0)
    torch.nn.init.constant_(learner.value.outer.bias, 7.0)
    runner = learner.collector.runners[0]
    runner.remake = learner.run.envs.make
    break_env(runner.slots[0].env, 1)
    batch, _ = learner.collect()
    assert batch.returns.tolist() == pytest.approx([3.5])


def test_groups_survive_a_broken_environment_too():
    learner = on_stage(loop, num_envs=4, group=2)
    break_env(learner.collector.envs[2], 1)
    batch, row = learner.collect()
    assert len(batch.units) == 4
    assert len(batch.units[2]) == 1
    assert row["episode/count"] == 4
    assert len(learner.run.envs.failures) == 1
    learner.collect()
    assert len(learner.run.envs.failures) == 1


def test_an_environment_that_never_works_ends_the_run_with_its_error():
    learner = on_stage(vldac, num_envs=2)

    def remake(index):
        env = learner.run.envs.make(index)
        break_env(env, 1)
        return env

    runner = learner.collector.runners[0]
    runner.remake = remake
    break_env(runner.slots[0].env, 1)
    with pytest.raises(UserError, match=f"failed {FAILURES_IN_A_ROW} times in a row.*the engine fell over"):
        learner.collect()


def test_failures_are_written_to_the_runs_folder(tmp_path, monkeypatch):
    made = Environments.make

    def make_env(self, index):
        env = made(self, index)
        if index == 0 and not (tmp_path / "once").exists():
            (tmp_path / "once").touch()
            break_env(env, 2)
        return env

    monkeypatch.setattr(Environments, "make", make_env)
    out = tmp_path / "run"
    vldac.train(replace(Config(**SMALL), updates=2, eval_episodes=0, out=out))
    (failure,) = map(json.loads, (out / "failures.jsonl").read_text().splitlines())
    assert (failure["update"], failure["turn"]) == (1, 1)
    assert [json.loads(line)["env/failures"] for line in (out / "log.jsonl").read_text().splitlines()] == [1.0, 0.0]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried ..."),
    ],
)
def test_running_out_of_memory_names_the_micro_batch_to_try(tmp_path, monkeypatch, error):
    def fail(self, batch, update):
        raise error

    monkeypatch.setattr(VLDAC, "learn", fail)
    out = tmp_path / "run"
    with pytest.raises(UserError, match=r"Out of memory .*--resume --out .* --micro-batch 32, or with --recompute"):
        vldac.train(replace(Config(**SMALL), eval_episodes=0, micro_batch=64, out=out))
    monkeypatch.undo()
    run = vldac.train(Config(out=out, resume=True, micro_batch=32, updates=1))
    assert run.config.micro_batch == 32


def test_a_run_that_recomputes_activations_ends_with_the_same_weights(tmp_path):
    config = replace(Config(**SMALL), updates=1, value_warmup=0, eval_episodes=0)
    kept = vldac.train(replace(config, out=tmp_path / "kept"))
    again = vldac.train(replace(config, recompute=True, out=tmp_path / "again"))
    assert again.weights.family.decoder.recompute
    assert not kept.weights.family.decoder.recompute
    for one, other in zip(kept.weights.parameters, again.weights.parameters, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    with pytest.raises(RuntimeError, match="size mismatch"), memory_advice("try less"):
        raise RuntimeError("size mismatch")


def test_double_buffering_plays_all_environments_and_resumes_exactly(tmp_path):
    config = replace(Config(**SMALL), double_buffer=True, updates=2, final_lr=1.0, lr=3e-4, eval_episodes=0)
    vldac.train(replace(config, out=tmp_path / "whole"))
    vldac.train(replace(config, updates=1, out=tmp_path / "stopped"))
    vldac.train(Config(out=tmp_path / "stopped", resume=True, updates=2))
    first, second = (checkpoints(tmp_path / name / "checkpoints")[-1] for name in ("whole", "stopped"))
    a, b = load_file(first / "tensors.safetensors"), load_file(second / "tensors.safetensors")
    assert all(torch.equal(a[name], b[name]) for name in a)
    state = json.loads((first / "state.json").read_text())
    assert state["env_steps"] == 24
    assert [len(runner["slots"]) for runner in state["collectors"][0]["runners"]] == [2, 2]


def test_double_buffering_gives_every_environment_its_own_reply():
    learner = on_stage(vldac)
    halves = [learner.run.envs.make_runners()[0] for _ in range(2)]
    rows = Collector(halves, learner.run.policy).play(3)
    assert [len(row) for row in rows] == [8, 8, 8]
    for row in rows:
        for record in row:
            assert record.extra.prompt.key == learner.weights.family.encode(record.messages).key
