"""Several processes make the rollout and the update that one makes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from bandit import LONG, SETTINGS, on_stage
from processes import fork
from safetensors.torch import load_file, save_file
from stage import rewind, roll_out

from baselines import archer, vldac
from baselines.learning.warm_start import WarmConfig
from baselines.runs import distributed
from baselines.runs.distributed import ALONE, World
from vlgym.errors import UserError


def in_two(work, logs) -> None:
    done = fork(2, work, logs)
    assert [status for status, _ in done] == [0, 0], "\n".join(text for _, text in done)


def make_updates(out) -> None:
    """An update of two processes, and of each alone on its own rollout."""
    torch.set_num_threads(1)
    world = distributed.join("cpu")
    learner = on_stage(
        vldac, world, env=LONG, num_envs=4, rollout_steps=3, minibatch=12, epochs=1, lr=0.1,
        final_lr=1.0, kl_coef=0.0,
    )  # fmt: skip
    named, weights = learner.optimizers.named, learner.weights.parameters
    named["policy"] = torch.optim.SGD(weights, lr=0.1)
    batch, _ = roll_out(learner)
    batch.advantages = torch.linspace(-1, 1, len(batch.samples)) * (1 + world.rank)
    before = [weight.detach().clone() for weight in weights]

    def change(world: World, minibatch: int) -> torch.Tensor:
        learner.run.world = learner.optimizers.world = world
        learner.config = replace(learner.config, minibatch=minibatch)
        learner.update(batch, 10)
        found = torch.cat([(now.detach() - old).flatten() for now, old in zip(weights, before, strict=True)])
        for now, old in zip(weights, before, strict=True):
            now.data.copy_(old)
        return found

    alone, together = change(ALONE, 6), change(world, 12)
    prompts = torch.tensor([[int.from_bytes(sample.prompt.key[:7]) for sample in batch.samples]])
    replies = torch.tensor([[float(sample.logp.sum()) for sample in batch.samples]])
    own = {"alone": alone[None], "together": together[None], "prompts": prompts, "replies": replies}
    found = {name: distributed.gather(x, world) for name, x in own.items()}
    if world.first:
        save_file(found, out)
    distributed.leave()


def test_the_update_of_two_processes_is_the_mean_of_their_own(tmp_path, some_bandits):
    in_two(lambda: make_updates(tmp_path / "found"), tmp_path / "log")
    found = load_file(tmp_path / "found")
    assert torch.equal(*found["together"])  # the weights stay the same in both
    torch.testing.assert_close(found["together"][0], found["alone"].mean(0), atol=1e-6, rtol=1e-4)
    assert (found["alone"][0] - found["alone"][1]).abs().max() > 1e-3
    assert not torch.equal(*found["prompts"])  # other episodes
    assert not torch.equal(*found["replies"])


def run_in_all(out, resume: bool) -> None:
    """A run of two updates, or what is left of it."""
    torch.set_num_threads(1)
    warm = WarmConfig(steps=1, samples=16, batch=2, val_episodes=1)
    options = {
        **SETTINGS, "env": LONG, "num_envs": 2, "rollout_steps": 3, "minibatch": 4, "epochs": 1,
        "eval_episodes": 1, "eval_controls": False, "value_warmup": 0, "updates": 2,
        "final_lr": 1.0, "save_every": 1, "warm": warm,
    }  # fmt: skip
    vldac.train(vldac.Config(**options, out=out, resume=resume))
    distributed.leave()


def test_a_run_of_two_processes_is_resumed_exactly(tmp_path, small_runs):
    in_two(lambda: run_in_all(tmp_path / "whole", False), tmp_path / "log")
    rewind(tmp_path / "whole", tmp_path / "resumed")
    in_two(lambda: run_in_all(tmp_path / "resumed", True), tmp_path / "log")
    (newest,) = (tmp_path / "whole" / "checkpoints").glob("update-000002")
    other = tmp_path / "resumed" / "checkpoints" / newest.name
    assert len(json.loads((newest / "state.json").read_text())["processes"]) == 2
    name = "tensors.safetensors"
    assert (newest / name).read_bytes() == (other / name).read_bytes()


def test_archer_keeps_to_one_process(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(UserError, match="one process, but 2 were started"):
        archer.Config().resolve()
