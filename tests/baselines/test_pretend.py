"""A learner keeps its tensors on the device that it is given; no accelerator is needed to see that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from devices import away_from_the_host
from pretend import Misplaced, accelerator
from stage import SMALL

from baselines import vldac
from baselines.learning.warm_start import WarmConfig
from baselines.models.lora import LoraOptions

SHORT = {
    **SMALL, "warm": WarmConfig(steps=1, samples=16, batch=2, val_episodes=1), "updates": 1, "num_envs": 2,
    "rollout_steps": 1, "minibatch": 2, "epochs": 1, "eval_episodes": 0, "device": "cuda",
}  # fmt: skip


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
def test_a_run_and_its_continuation_keep_to_one_device(tmp_path):
    config = vldac.Config(**{**SHORT, "lora": LoraOptions(rank=2), "value_warmup": 0, "out": tmp_path / "run"})
    with away_from_the_host():
        vldac.train(config)
        run = vldac.train(replace(config, resume=True, updates=2))
        assert run.state.update == 2
        networks = [run.weights.family.model, *run.kept.modules.values()]
        assert all(x.is_cuda for network in networks for x in network.parameters())
