"""A learner without folder and warm start: the parts of a run that it uses, on the tiny model."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from baselines import vldac
from baselines.engine.engine import Engine, ModelPolicy
from baselines.learning.state import Weights
from baselines.learning.warm_start import WarmConfig
from baselines.runs.distributed import ALONE, World
from baselines.runs.folder import checkpoints
from baselines.runs.logs import read_rows

ENV = "vlgym/NumberLine-v0"
SMALL: dict[str, Any] = {
    "env": ENV, "updates": 3, "num_envs": 4, "rollout_steps": 3, "minibatch": 6, "epochs": 2,
    "eval_episodes": 2, "eval_controls": False, "save_every": 1, "image_tokens": 4,
    "max_new_tokens": 12, "threads": 1,
    "warm": WarmConfig(steps=1, samples=16, batch=8, val_episodes=1),
}  # fmt: skip

ONE_UPDATE: dict[str, Any] = {
    **SMALL, "updates": 1, "num_envs": 2, "rollout_steps": 2, "minibatch": 4, "epochs": 1,
    "eval_episodes": 0, "max_new_tokens": 9, "record_every": 0, "value_warmup": 0,
    "warm": WarmConfig(steps=0),
}  # fmt: skip
"""Options of VL-DAC for a run of one update."""

FINISHED = replace(
    vldac.Config(**SMALL), num_envs=2, rollout_steps=2, minibatch=2, epochs=1, max_new_tokens=9,
    eval_episodes=1, value_warmup=1, final_lr=1.0, record_every=1, env_kwargs=("max_turns=3",),
)  # fmt: skip
"""Configuration of the fixture `finished`: episodes of three turns in rollouts of two steps."""


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in row.items() if not k.startswith(("seconds", "speed"))} for row in read_rows(out / "log.jsonl")
    ]


def files_of(folders: Iterable[Path]) -> dict[str, bytes]:
    return {str(p.relative_to(f)): p.read_bytes() for f in folders for p in sorted(f.rglob("*")) if p.is_file()}


def assert_same_end(one: Path, other: Path) -> None:
    """Two runs left the same state, log, evaluations and model, bit for bit."""
    newest = [checkpoints(out / "checkpoints")[-1] for out in (one, other)]
    assert newest[0].name == newest[1].name
    states = [json.loads((path / "state.json").read_text()) for path in newest]
    for state in states:
        state["warm"].pop("seconds")
    assert states[0] == states[1]
    assert rows_of(one) == rows_of(other)
    assert (newest[0] / "tensors.safetensors").read_bytes() == (newest[1] / "tensors.safetensors").read_bytes()
    ends = [files_of([out / "model"]) for out in (one, other)]
    for files, out in zip(ends, (one, other), strict=True):
        if (out / "evaluation.json").exists():
            files["evaluation.json"] = (out / "evaluation.json").read_bytes()
    assert ends[0].keys() == ends[1].keys()
    assert [name for name, data in ends[0].items() if data != ends[1][name]] == []


def rewind(out: Path, to: Path) -> Path:
    """Copy a finished run as a kill in its last update would have left it; return the copy."""
    results = ("model", "adapter", "base", "best", "rating", "curve.png", "evaluation.json")
    shutil.copytree(out, to, ignore=shutil.ignore_patterns(*results))
    shutil.rmtree(checkpoints(to / "checkpoints")[-1])
    return to


def resume_exactly(module: Any, config: Any, folder: Path) -> Any:
    """Make a run, and one that is killed in its last update and resumed; they must end alike."""
    run = module.train(replace(config, out=folder / "whole"))
    module.train(module.Config(out=rewind(run.out, folder / "stopped"), resume=True))
    assert_same_end(run.out, folder / "stopped")
    return run


class Stage:
    """The parts of a `Run` that a learner uses."""

    def __init__(self, config: Any, engine: Engine, world: World = ALONE, *, keep_reference: bool = False) -> None:
        self.config, self.world, self.envs = config, world, config.make_environments(world)
        self.weights: Any = Weights(engine, config.lora, keep_reference=keep_reference)
        self.policy = ModelPolicy(self.weights.engine, torch.Generator().manual_seed(1 + world.rank))
        self.order = torch.Generator().manual_seed(2)
        self.state = SimpleNamespace(env_steps=0)


def learner_of(module: Any) -> Any:
    names = ("RL4VLM", "VLDAC", "GRPO", "LOOP", "ArCHer")
    return next(getattr(module, name) for name in names if hasattr(module, name))


def roll_out(learner: Any) -> tuple[Any, dict[str, float]]:
    """Let a learner play a rollout and compute its advantages; return batch and metrics."""
    batch, played, metrics = learner.play()
    values = [learner.compute_values(batch, played)] if hasattr(learner, "compute_values") else []
    return batch, metrics | (learner.compute_advantages(batch, played, *values) or {})
