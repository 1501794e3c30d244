"""The same command with the same seed trains the same model, in fresh processes, with several threads, and resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LEARNERS = ["sft", "VL-DAC", "RL4VLM", "LOOP", "GRPO", "ArCHer"]


def train(folder: Path, how: str) -> dict[str, str]:
    """The digest of each learner's weights after a run in a process of its own."""
    command = [sys.executable, str(HERE / "same_twice.py"), str(folder), how]
    # Waiting threads sleep: beside other tests they would take the processors from those that work.
    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_WAIT_POLICY": "PASSIVE"}
    environment.pop("OMP_NUM_THREADS", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    return {name: rest for name, rest in (row for row in rows if len(row) == 2) if name in LEARNERS}


def test_two_fresh_processes_with_two_threads_train_the_same_model_though_one_stops_and_resumes(tmp_path):
    first, second = train(tmp_path / "first", "whole"), train(tmp_path / "second", "resumed")
    assert list(first) == LEARNERS
    assert first == second
    assert all(found.endswith("trained") for name, found in first.items() if name != "sft")


def test_waiting_threads_sleep_unless_the_user_says_otherwise():
    show = "import baselines.engine, os; print(os.environ['OMP_WAIT_POLICY'])"
    plain = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    asked = {**plain, "OMP_WAIT_POLICY": "ACTIVE"}
    found = [
        subprocess.run(
            [sys.executable, "-c", show], env=environment, cwd=HERE.parents[1], capture_output=True, text=True
        )
        for environment in (plain, asked)
    ]
    assert [done.stdout.strip() for done in found] == ["PASSIVE", "ACTIVE"]
