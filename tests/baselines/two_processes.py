"""Run by test_distributed.py, alone and under torchrun: one rollout and one update of two learners by plain gradient
descent, written by the first process.

Adam would turn rounding differences of gradients near zero into whole steps, so it could not show that gradients agree.
"""

from __future__ import annotations

import sys

import torch
from safetensors.torch import save_file
from stage import ENV, SMALL, Stage

from baselines.loop import LOOP
from baselines.runs import distributed
from baselines.vldac import VLDAC
from vlgym import make
from vlgym.rollout import Runner

ENVS = 4


class Share(Stage):
    """The part of a session's environments that this process plays."""

    def __init__(self, config, world):
        super().__init__(config, world)
        self.num_envs = ENVS // world.size
        self.policy.world = world

    def make_runners(self):
        envs = [make(ENV) for _ in range(self.num_envs)]
        return [Runner(envs, split="train", first_episode=self.world.rank * self.num_envs, stride=ENVS)]


def run(learner_class, world, **options) -> dict[str, torch.Tensor]:
    config = learner_class.Config(**{**SMALL, "num_envs": ENVS, **options}).resolve()
    learner = learner_class(Share(config, world))
    session = learner.session
    learner.policy_optimizer = learner.optimizers["policy"] = torch.optim.SGD(session.parameters, lr=0.1)
    batch, _ = learner.collector.collect()
    ids = distributed.gather(torch.nn.functional.pad(batch.ids, (0, 6 - batch.ids.shape[1]), value=-1), world)
    n = len(batch.units) // session.num_envs
    whole = torch.linspace(-1, 1, n * ENVS).view(n, ENVS)
    own = whole[:, world.rank * session.num_envs :][:, : session.num_envs].flatten()
    for unit, advantage in zip(batch.units, own, strict=True):
        batch.advantages[unit] = advantage
        batch.returns[unit] = advantage
    learner.set_learning_rate = lambda update: 0.1
    learner.train_on(batch, 10)
    name = learner_class.name
    found = {f"{name}.{key}": value.clone() for key, value in session.family.language_model.state_dict().items()}
    return found | {f"{name}.ids": ids.sort(0).values, f"{name}.value": session.value.outer.weight.detach().clone()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = distributed.join("cpu")
    result = run(VLDAC, here, minibatch=5) | run(LOOP, here, group=2, minibatch=3)
    if here.first:
        save_file(result, sys.argv[1])
    distributed.leave()
