"""Several processes make the update that one makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stage import on_stage

from baselines import loop, vldac
from baselines.learning.batch import minibatches
from baselines.models.load import load_family
from baselines.runs import distributed
from baselines.runs.distributed import ALONE, World

HERE = Path(__file__).parent
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29617"]


def update(launcher: list[str], out: Path) -> dict[str, torch.Tensor]:
    command = [sys.executable, *launcher, str(HERE / "two_processes.py"), str(out)]
    path = os.pathsep.join([str(HERE.parents[1]), str(HERE)])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return load_file(out)


def test_two_processes_sample_and_learn_what_one_does(tmp_path):
    one, two = update([], tmp_path / "one"), update(TORCHRUN, tmp_path / "two")
    assert one.keys() == two.keys()
    assert torch.equal(one["VL-DAC.ids"], two["VL-DAC.ids"])
    before = load_family("tiny", image_tokens=4).language_model.state_dict()
    for learner in ("VL-DAC", "LOOP"):
        names = [name for name in one if name.startswith(learner)]
        for name in names:
            torch.testing.assert_close(one[name], two[name], atol=2e-5, rtol=1e-4)
        moved = [float((one[f"{learner}.{key}"] - value).abs().max()) for key, value in before.items()]
        assert max(moved) > 1e-3  # far beyond the tolerance: they did learn


def order(learner, world: World = ALONE) -> list[tuple[list[int], int]]:
    """The minibatches of one pass over a rollout of one process."""
    run, (batch, _) = learner.run, learner.collect()
    found = minibatches(batch.units, learner.config.minibatch, run.envs.count, run.order, world)
    return [(rows.tolist(), size) for rows, size in found]


def test_minibatches_of_all_processes_are_those_of_one():
    parts = order(on_stage(vldac))
    assert sorted(row for rows, _ in parts for row in rows) == list(range(12))
    halves = [order(on_stage(vldac, num_envs=2), World(rank, 2)) for rank in (0, 1)]
    for (rows, size), (first, _), (second, _) in zip(parts, *halves, strict=True):
        # Row t * 2 + n of process r is row t * 4 + 2 r + n of one process.
        merged = [row // 2 * 4 + row % 2 for row in first] + [row // 2 * 4 + 2 + row % 2 for row in second]
        assert sorted(merged) == sorted(rows)
        assert size == len(rows)


def test_one_process_needs_no_group_and_changes_nothing():
    x = torch.tensor([1.0, 2.0])
    assert distributed.join("cpu") == ALONE
    assert distributed.gather(x, ALONE) is x
    assert distributed.gather_texts("here", ALONE) == ["here"]
    assert distributed.mean({"a": 1.0}, ALONE) == {"a": 1.0}
    assert distributed.any_of(True, ALONE)
    assert not distributed.any_of(False, ALONE)


def test_groups_of_an_episode_are_not_split_over_processes():
    from vlgym.errors import UserError

    with pytest.raises(UserError, match="evenly"):
        on_stage(loop, num_envs=4, group=3)
