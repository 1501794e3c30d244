"""Run by test_distributed.py, alone and under torchrun: one rollout and one update of two learners by plain gradient
descent, written by the first process.

Adam would turn rounding differences of gradients near zero into whole steps, so it could not show that gradients agree.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from safetensors.torch import save_file
from stage import on_stage

from baselines import loop, vldac
from baselines.runs import distributed, joining

ENVS = 4


def run(module: Any, world: distributed.World, **options: Any) -> dict[str, torch.Tensor]:
    """One rollout and one update of a module's learner."""
    learner = on_stage(module, world=world, num_envs=ENVS, **options)
    learner.optimizers.named["policy"] = torch.optim.SGD(learner.weights.parameters, lr=0.1)
    batch, _ = learner.collect()
    ids = distributed.gather(torch.nn.functional.pad(batch.ids, (0, 6 - batch.ids.shape[1]), value=-1), world)
    own = learner.run.envs.count
    n = len(batch.units) // own
    whole = torch.linspace(-1, 1, n * ENVS).view(n, ENVS)
    for unit, advantage in zip(batch.units, whole[:, world.rank * own :][:, :own].flatten(), strict=True):
        batch.advantages[unit] = advantage
        batch.returns[unit] = advantage
    learner.learn(batch, 10)
    name = learner.config.algorithm
    found = {f"{name}.{key}": x.clone() for key, x in learner.weights.family.language_model.state_dict().items()}
    if hasattr(learner, "value"):
        found[f"{name}.value"] = learner.value.outer.weight.detach().clone()
    return found | {f"{name}.ids": ids.sort(0).values}


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = joining.join("cpu")
    rate = {"lr": 0.1, "final_lr": 1.0}
    result = run(vldac, here, minibatch=5, **rate) | run(loop, here, group=2, minibatch=3, **rate)
    if here.first:
        save_file(result, sys.argv[1])
    joining.leave()
