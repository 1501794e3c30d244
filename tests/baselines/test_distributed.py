"""Several processes make the rollout and the update that one makes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from processes import together
from safetensors.torch import load_file, save_file
from stage import SMALL, on_stage

from baselines import archer, vldac
from baselines.learning.warm_start import WarmConfig
from baselines.models.load import load_family
from baselines.runs import distributed
from baselines.runs.distributed import World
from vlgym.errors import UserError


def one_update(module: Any, world: World, **options: Any) -> dict[str, torch.Tensor]:
    """Two rollouts and an update on the second by plain gradient descent, with made-up advantages.

    Adam would turn rounding differences of gradients near zero into whole steps, so it could not show that gradients
    agree.
    """
    learner = on_stage(module, world=world, **options)
    learner.optimizers.named["policy"] = torch.optim.SGD(learner.weights.parameters, lr=0.1)
    learner.collect()
    batch, _ = learner.collect()
    shares = learner.run.envs.shares
    for at, unit in enumerate(batch.units):  # step and environment say which advantage
        step, env = divmod(at, shares.own)
        batch.advantages[unit] = batch.returns[unit] = 0.1 * (7 * step + 3 * (shares.first + env)) % 2 - 1
    learner.learn(batch, 10)
    name = learner.config.algorithm
    found = {f"{name}.{key}": x.clone() for key, x in learner.weights.family.language_model.state_dict().items()}
    if hasattr(learner, "value"):
        found[f"{name}.value"] = learner.value.outer.weight.detach().clone()
    padded = torch.nn.functional.pad(batch.ids, (0, 6 - batch.ids.shape[1]), value=-1)
    keys = torch.tensor([int.from_bytes(s.prompt.key[:7]) for s in batch.samples])  # rows in any order, by their prompt
    rows = distributed.gather(torch.cat([keys.unsqueeze(1), padded], 1), world).tolist()
    return found | {
        f"{name}.rows": torch.tensor(sorted(rows)),
        f"{name}.state": learner.run.policy.generator.get_state(),
    }


def make_updates(out) -> None:
    torch.set_num_threads(1)
    world = distributed.join("cpu")
    found = one_update(vldac, world, num_envs=4, minibatch=5, lr=0.1, final_lr=1.0)
    if world.first:
        save_file(found, out)
    distributed.leave()


def test_two_processes_sample_and_learn_what_one_does(tmp_path):
    for count in (1, 2):
        together(count, lambda count=count: make_updates(tmp_path / f"{count}"), tmp_path / f"log-{count}")
    one, two = load_file(tmp_path / "1"), load_file(tmp_path / "2")
    before = load_family("tiny", image_tokens=4).language_model.state_dict()
    assert torch.equal(one["VL-DAC.rows"], two["VL-DAC.rows"])
    assert torch.equal(one["VL-DAC.state"], two["VL-DAC.state"])  # of the sampler's generator
    torch.testing.assert_close(one, two, atol=2e-5, rtol=1e-4)
    moved = [float((one[f"VL-DAC.{key}"] - value).abs().max()) for key, value in before.items()]
    assert max(moved) > 1e-3  # far beyond the tolerance: they did learn


def run_and_resume(out, stop: int | None) -> None:
    """A run of two updates, stopped and resumed after `stop` of them."""
    torch.set_num_threads(1)
    warm = WarmConfig(steps=1, samples=16, batch=2, val_episodes=1)
    options = {"num_envs": 2, "minibatch": 4, "epochs": 1, "eval_episodes": 2, "value_warmup": 0, "warm": warm}
    config = vldac.Config(**{**SMALL, **options, "updates": 2, "final_lr": 1.0, "out": out})
    if stop is not None:
        vldac.train(replace(config, updates=stop))
    vldac.train(replace(config, resume=stop is not None))
    distributed.leave()


def test_a_run_of_two_processes_is_resumed_exactly(tmp_path):
    for name, stop in (("whole", None), ("resumed", 1)):
        together(2, lambda name=name, stop=stop: run_and_resume(tmp_path / name, stop), tmp_path / f"log-{name}")
    (newest,) = (tmp_path / "whole" / "checkpoints").glob("update-000002")
    other = tmp_path / "resumed" / "checkpoints" / newest.name
    assert len(json.loads((newest / "state.json").read_text())["collectors"]) == 2
    assert (newest / "tensors.safetensors").read_bytes() == (other / "tensors.safetensors").read_bytes()


def test_archer_keeps_to_one_process(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(UserError, match="one process, but 2 were started"):
        archer.Config().resolve()
