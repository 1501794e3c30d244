"""A learner without folder and warm start: the parts of a session that it uses, on the tiny model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from baselines.engine.engine import Engine
from baselines.engine.policy import ModelPolicy
from baselines.learning.value import ValueHead
from baselines.learning.warm_start import WarmConfig
from baselines.models.load import load_family
from baselines.runs.distributed import ALONE, World
from vlgym import make
from vlgym.rollout import Runner

ENV = "vlgym/NumberLine-v0"
SMALL: dict[str, Any] = {
    "env": ENV,
    "updates": 4,
    "num_envs": 4,
    "rollout_steps": 3,
    "minibatch": 6,
    "epochs": 2,
    "eval_episodes": 3,
    "save_every": 1,
    "image_tokens": 4,
    "max_new_tokens": 12,
    "warm": WarmConfig(steps=3, samples=64, batch=8, check_every=50),
    "threads": 1,
}


class Stage:
    """What a learner uses of a `Session`."""

    def __init__(self, config: Any, world: World = ALONE) -> None:
        self.config, self.world, self.num_envs, self.env_steps = config, world, config.num_envs, 0
        self.family = load_family("tiny", image_tokens=4)
        for parameter in self.family.vision_parameters():
            parameter.requires_grad_(False)
        self.engine = self.sampler = Engine(self.family, max_new_tokens=6)
        self.value = ValueHead(128)
        self.parameters = list(self.family.language_model.parameters())
        self.order = torch.Generator().manual_seed(0)
        self.reference = self.builder = None
        self.policy = ModelPolicy(self.engine, torch.Generator().manual_seed(0))

    def make_env(self, index: int) -> Any:
        return make(ENV)

    def make_runners(self) -> list[Runner]:
        return [Runner([make(ENV) for _ in range(self.num_envs)], split="train")]

    def make_shaper(self, gamma: float) -> None:
        return None


def on_stage(learner: Any, **changes: Any) -> Any:
    """A learner with `SMALL` settings, changed."""
    return learner(Stage(replace(learner.Config(**SMALL), **changes).resolve()))
