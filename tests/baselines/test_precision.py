"""Training of 16-bit weights: small steps add up in float32 masters."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from baselines.learning.optimizers import Metrics, Optimizers, policy_optimizer


def half(*values: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=torch.bfloat16))


def trained(parameters: list[nn.Parameter], lr: float) -> Optimizers:
    return Optimizers({"policy": policy_optimizer(parameters, lr)}, max_grad_norm=1e9)


def test_steps_too_small_for_bfloat16_add_up_until_the_weight_moves():
    weight = half(1.0)
    optimizers = trained([weight], lr=1e-3)  # a step of Adam's is the rate; bfloat16's next number below 1 is 0.996
    seen = []
    for _ in range(4):
        weight.sum().backward()
        optimizers.step("policy", 0.0, Metrics())
        seen.append(weight.item())
    assert seen[0] == 1.0
    assert seen[-1] == 0.99609375
    (master,) = optimizers.named["policy"].param_groups[0]["params"]
    assert master.dtype == torch.float32
    assert master.item() == pytest.approx(1 - 4e-3, abs=1e-5)


def test_a_skipped_step_leaves_weights_and_masters():
    weight = half(1.0)
    optimizers = trained([weight], lr=0.1)
    (weight.float() * float("nan")).sum().backward()
    optimizers.step("policy", 0.0, Metrics())
    assert optimizers.skips == 1
    assert weight.item() == 1.0
    weight.sum().backward()
    optimizers.step("policy", 0.0, Metrics())
    assert weight.item() == torch.tensor(0.9).bfloat16().item()
