"""Failures of a long run: a kill, a full disk, an environment that breaks, memory that runs out."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from stage import SMALL, assert_same_end, on_stage, roll_out

from baselines import vldac
from baselines.learning.warm_start import WarmConfig
from baselines.runs.distributed import memory_advice
from baselines.vldac import VLDAC, Config
from vlgym.errors import UserError
from vlgym.files import lock_folder

ROOT = Path(__file__).parents[3]
OPTIONS = """
    --env vlgym/NumberLine-v0 --env-kwargs max_turns=4 --updates 3 --num-envs 2 --rollout-steps 3
    --minibatch 6 --epochs 2 --value-warmup 1 --final-lr 1.0 --image-tokens 4 --max-new-tokens 12
    --eval-episodes 2 --no-eval-controls --save-every 1 --record-every 1 --threads 1
    --warm.steps 1 --warm.samples 16 --warm.batch 8 --warm.val-episodes 1
"""  # of FINISHED


def test_a_command_that_is_killed_goes_on_in_another_process(finished, tmp_path):
    """The process is fresh and the moment is any: in a rollout, an update, or while a checkpoint is
    written."""
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "baselines.vldac", *OPTIONS.split(), "--out", str(out)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    while not (out / "checkpoints" / "update-000001").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "model").exists()
    vldac.train(Config(out=out, resume=True))
    assert_same_end(finished, out)


def test_two_processes_cannot_work_in_one_runs_folder(finished, tmp_path):
    out = shutil.copytree(finished, tmp_path / "run")
    with lock_folder(out), pytest.raises(UserError, match="Another process is at work"):
        vldac.train(Config(out=out, resume=True))


def test_a_broken_off_episode_bootstraps_with_the_value_of_its_last_state():
    learner = on_stage(vldac, num_envs=1, rollout_steps=1, gamma=0.5, gae_lambda=1.0)
    torch.nn.init.constant_(learner.steady.module.outer.bias, 7.0)
    runner = learner.collector.runner
    runner.remake = learner.run.envs.make
    runner.slots[0].env.step = lambda reply: 1 / 0
    batch, _ = roll_out(learner)
    assert batch.returns.tolist() == pytest.approx([3.5])


def test_running_out_of_memory_names_the_micro_batch_to_try(tmp_path, monkeypatch):
    def fail(self, batch, update):
        raise RuntimeError("[enforce fail] . DefaultCPUAllocator: can't allocate memory: ...")

    monkeypatch.setattr(VLDAC, "update", fail)
    out = tmp_path / "run"
    config = replace(Config(**SMALL), eval_episodes=0, micro_batch=64, warm=WarmConfig(steps=0))
    words = r"Out of memory .*--resume --out .* --micro-batch 32, or with --recompute"
    with pytest.raises(UserError, match=words):
        vldac.train(replace(config, out=out))
    with pytest.raises(RuntimeError, match="size mismatch"), memory_advice("try less"):
        raise RuntimeError("size mismatch")
