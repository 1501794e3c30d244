"""A learner without folder and warm start: the parts of a run that it uses, on the tiny model."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch

from baselines.engine.engine import Engine
from baselines.engine.policy import ModelPolicy
from baselines.learning.environments import Environments
from baselines.learning.warm_start import WarmConfig
from baselines.learning.weights import AllWeights
from baselines.models.load import load_family
from baselines.runs.distributed import ALONE, World

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
    """What a learner uses of a `Run`."""

    def __init__(self, config: Any, world: World = ALONE, *, keep_reference: bool = False) -> None:
        self.config, self.world = config, world
        self.envs = Environments(config, world)
        engine = Engine(load_family("tiny", image_tokens=4, dtype=config.dtype), max_new_tokens=6)
        self.weights = AllWeights(engine, train_vision=False, keep_reference=keep_reference)
        shares = self.envs.shares
        self.policy = ModelPolicy(engine, torch.Generator().manual_seed(0), world=world, shares=shares)
        self.order = torch.Generator().manual_seed(0)
        self.state = SimpleNamespace(env_steps=0)


def on_stage(module: Any, *args: Any, world: World = ALONE, **changes: Any) -> Any:
    """The learner of a module with `SMALL` settings, changed; `args` go to it after the stage."""
    learner = next(getattr(module, name) for name in ("VLDAC", "LOOP", "ArCHer") if hasattr(module, name))
    return learner(Stage(replace(module.Config(**SMALL), **changes).resolve(), world), *args)
