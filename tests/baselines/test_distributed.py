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
from baselines.runs import distributed, joining
from baselines.runs.distributed import ALONE, World, split

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


def order(learner) -> list[tuple[list[int], int]]:
    """The minibatches of one pass over a rollout of one process."""
    run, (batch, _) = learner.run, learner.collect()
    found = minibatches(batch.units, learner.config.minibatch, run.envs.shares, run.order)
    return [(rows.tolist(), size) for rows, size in found]


def test_minibatches_of_all_processes_are_those_of_one():
    parts = order(on_stage(vldac))
    assert sorted(row for rows, _ in parts for row in rows) == list(range(12))
    learner = on_stage(vldac)
    shared = []
    for rank, count in enumerate((2, 1, 1)):
        learner.run.order.manual_seed(0)
        found = minibatches([[i] for i in range(3 * count)], 6, split(4, World(rank, 3)), learner.run.order)
        shared.append([(rows.tolist(), size) for rows, size in found])
    for (rows, size), *own in zip(parts, *shared, strict=True):
        # Process 0 has environments 0 and 1, process 1 has 2, process 2 has 3.
        merged = [
            row // count * 4 + first + row % count
            for (part, _), first, count in zip(own, (0, 2, 3), (2, 1, 1), strict=True)
            for row in part
        ]
        assert sorted(merged) == sorted(rows)
        assert size == len(rows)
        assert all(length == size for _, length in own)


def test_one_process_needs_no_group_and_changes_nothing():
    x = torch.tensor([1.0, 2.0])
    assert joining.join("cpu") == ALONE
    assert distributed.gather(x, ALONE) is x
    assert distributed.gather_texts("here", ALONE) == ["here"]
    assert distributed.sum_values([1.0, 2.0], ALONE) == [1.0, 2.0]
    assert distributed.any_of(True, ALONE)
    assert not distributed.any_of(False, ALONE)


def test_groups_of_an_episode_are_not_split_over_processes():
    from vlgym.errors import UserError

    with pytest.raises(UserError, match="evenly"):
        on_stage(loop, num_envs=4, group=3)
