"""Every learner keeps its tensors on the device that it is given; no accelerator is needed to see that."""

from __future__ import annotations

from dataclasses import replace

import gpu_speed
import numpy as np
import pytest
import torch
from devices import away_from_the_host
from pretend import Misplaced, accelerator
from stage import SMALL

from baselines import archer, loop, rl4vlm, vldac
from baselines.learning import run as run_module
from baselines.learning.warm_start import WarmConfig
from baselines.models.lora import LoraOptions

WARM = WarmConfig(steps=2, samples=16, batch=8, check_every=50, val_episodes=2)
SHORT = {**SMALL, "warm": WARM, "updates": 1, "rollout_steps": 2, "eval_episodes": 1, "device": "cuda"}
ADAPTERS = {"lora": LoraOptions(rank=2), "dtype": "bfloat16"}


def test_the_pretend_accelerator_is_as_strict_as_a_real_one():
    with accelerator():
        here, there = torch.arange(3), torch.arange(3, device="cuda")
        assert (there * 2).device == there[:1].device == here.to(there.device).device == torch.device("cuda", 0)
        assert here.device == there.cpu().device == torch.zeros_like(here).device == torch.device("cpu")
        assert there.is_cuda
        assert (there + here[0].clone()).is_cuda  # a single number of the host goes anywhere
        assert there[here].is_cuda  # and so do indices of the host
        for mix in (
            lambda: here + there,
            lambda: here[there],
            lambda: here[there > 1],
            lambda: torch.cat([here, there]),
            lambda: there.index_select(0, here),
            lambda: there.masked_fill(here > 1, 0),
            lambda: there.numpy(),
            lambda: np.asarray(there),
            lambda: torch.rand(2, device="cuda", generator=torch.Generator()),
            lambda: torch.zeros(2, device="cuda").normal_(generator=torch.Generator()),
        ):
            with pytest.raises(Misplaced):
                mix()


@pytest.mark.on_device
@pytest.mark.parametrize(
    ("learner", "more"),
    [
        (vldac, ADAPTERS),
        (vldac, {"train_vision": True, "recompute": True, "scoring": "shared", "stop_gradient": False}),
        (rl4vlm, {}),
        (loop, {"group": 2, "minibatch": 2, **ADAPTERS}),
        (archer, {}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value.__name__,
)
def test_a_run_and_its_continuation_keep_to_one_device(tmp_path, learner, more):
    config = learner.Config(**{**SHORT, "out": tmp_path / "run", **more})
    with away_from_the_host():
        learner.train(config)
        run = learner.train(replace(config, resume=True, updates=2))
        assert run.state.update == 2
        networks = [run.weights.family.model, *run.kept.modules.values()]
        assert all(x.is_cuda for network in networks for x in network.parameters())


@pytest.mark.on_device
@pytest.mark.parametrize("name", ["qwen2_5_vl", "qwen3_vl", "gemma3"])
def test_every_family_keeps_to_one_device(tmp_path, model_folder, name):
    more = {"model": str(model_folder(name)), "out": tmp_path / "run", "value_warmup": 0}
    with away_from_the_host():
        assert vldac.train(vldac.Config(**{**SHORT, **ADAPTERS, **more})).state.update == 1


@pytest.mark.parametrize("part", gpu_speed.PARTS)
def test_the_gpu_benchmark_keeps_to_one_device(part, monkeypatch):
    monkeypatch.setattr(run_module, "load_family", run_module.load_family)  # the benchmark exchanges it
    with away_from_the_host():
        bench = gpu_speed.Bench("tiny", torch.device("cuda", 0))
        bench.scale = replace(
            bench.scale, batches=(16,), new_tokens=8, images=2, micro=(2,), num_envs=4, rollout_steps=2, updates=1
        )
        assert getattr(gpu_speed, f"measure_{part}")(bench)["rows"]
