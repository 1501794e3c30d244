"""Training of 16-bit weights: small steps add up in float32 masters, gradients too, and all of it resumes exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from stage import ENV, SMALL, Stage
from torch import nn

from baselines import archer, loop, vldac
from baselines.engine.engine import Engine
from baselines.learning.optimizers import Metrics, Optimizers, policy_optimizer
from baselines.learning.precision import MasterWeights, masters_of
from baselines.learning.warm_start import WarmConfig, warm_start
from baselines.models.load import load_family
from baselines.runs.checkpoint import checkpoints

HALF = vldac.Config(**{**SMALL, "dtype": "bfloat16", "value_warmup": 0, "lr": 1e-5, "eval_episodes": 0})


def half(*values: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=torch.bfloat16))


def trained(parameters: list[nn.Parameter], lr: float) -> Optimizers:
    config = replace(HALF, model="tiny", lr=lr)
    return Optimizers({"policy": policy_optimizer(parameters, config)}, max_grad_norm=1e9)


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


def test_gradients_of_several_passes_are_summed_in_float32():
    weight = half(1.0)
    masters = MasterWeights([weight])
    for factor in (1.0, 2.0**-10, 2.0**-10):
        (weight.float() * factor).sum().backward()
    assert weight.grad is None
    assert masters.parameters[0].grad.item() == 1.0 + 2.0**-9  # bfloat16 would have kept 1


def test_float32_parameters_are_trained_themselves():
    weight, frozen = nn.Parameter(torch.ones(2)), half(1.0).requires_grad_(False)
    masters = MasterWeights([weight, frozen])
    assert masters.parameters[0] is weight
    assert masters.parameters[1] is frozen
    optimizer = policy_optimizer([weight], replace(HALF, lr=1.0))
    assert masters_of(optimizer) is None
    assert optimizer.param_groups[0]["params"][0] is weight


def test_the_clip_is_of_the_gradients_that_are_applied():
    weight = half(1.0, 1.0)
    optimizers, metrics = trained([weight], lr=1e-3), Metrics()
    (3e4 * weight[0] + 4e4 * weight[1]).backward()
    optimizers.step("policy", 0.0, metrics)
    assert metrics.values["policy/grad_norm"] == [pytest.approx(5e4, rel=1e-2)]
    assert optimizers.named["policy"].param_groups[0]["params"][0].grad is None


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


def test_an_engine_notices_a_step_of_the_masters_and_the_weights_stay_where_they_are(prompts):
    family = load_family("tiny", dtype="bfloat16")
    engine = Engine(family, max_new_tokens=4)
    parameters = list(family.language_model.parameters())
    optimizers, places = trained(parameters, lr=1e-2), [p.data_ptr() for p in parameters]
    before = engine.last_hidden(prompts)
    ids = torch.full((len(prompts), 2), 5)
    engine.score(prompts, ids, torch.ones_like(ids, dtype=torch.bool)).sum().backward()
    optimizers.step("policy", 0.0, Metrics())
    assert not torch.equal(engine.last_hidden(prompts), before)
    assert [p.data_ptr() for p in parameters] == places


@pytest.mark.parametrize(("module", "kind"), [(vldac, "VLDAC"), (loop, "LOOP"), (archer, "ArCHer")])
def test_every_learner_trains_float32_masters_of_a_bfloat16_model(module, kind):
    group = {"group": 2} if module is loop else {}
    config = module.Config(**{**SMALL, "dtype": "bfloat16", **group}).resolve()
    learner = getattr(module, kind)(Stage(config, keep_reference=True))
    trained = learner.optimizers.named["policy"].param_groups[0]["params"]
    assert {p.dtype for p in learner.weights.parameters} == {torch.bfloat16}
    assert {p.dtype for p in trained} == {torch.float32}
    assert len(trained) == len(learner.weights.parameters)


def test_two_updates_in_bfloat16_and_two_resumed_ones_equal_four_bit_for_bit(tmp_path):
    settings = {"num_envs": 2, "rollout_steps": 2, "minibatch": 2, "max_new_tokens": 6, "warm": WarmConfig(steps=0)}
    config = replace(HALF, final_lr=1.0, **settings)
    whole = vldac.train(replace(config, out=tmp_path / "whole")).out
    vldac.train(replace(config, out=tmp_path / "stopped", updates=2))
    resumed = vldac.train(vldac.Config(out=tmp_path / "stopped", resume=True, updates=4)).out
    a, b = (load_file(checkpoints(out / "checkpoints")[-1] / "tensors.safetensors") for out in (whole, resumed))
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)
    masters = [x for name, x in a.items() if name.startswith("master.policy.")]
    assert {x.dtype for x in masters} == {torch.float32}
    assert any(not torch.equal(x, x.bfloat16().float()) for x in masters)  # they hold what bfloat16 cannot


def test_a_checkpoint_without_masters_goes_on_from_the_weights_it_has(tmp_path):
    weight = half(1.0)
    optimizers = trained([weight], lr=1e-3)
    weight.sum().backward()
    optimizers.step("policy", 0.0, Metrics())
    tensors = optimizers.tensors()
    saved = {name: x.clone() for name, x in tensors.items() if not name.startswith("master")}
    assert len(saved) == len(tensors) - 1
    optimizers.restore(saved, optimizers.state())
    (master,) = optimizers.named["policy"].param_groups[0]["params"]
    assert master.item() == weight.item() == 1.0


def test_the_warm_start_of_a_bfloat16_model_trains_masters_and_leaves_none_behind():
    family = load_family("tiny", image_tokens=4, dtype="bfloat16")
    first = family.language_model.layers[0].mlp.up_proj.weight
    before = first.detach().clone()
    config = WarmConfig(steps=3, samples=32, batch=8, check_every=50, lr=1e-4, val_episodes=1)  # rate: 2e-6 to 6e-6
    warm_start(Engine(family, max_new_tokens=64), [ENV], config, seed=0, max_new_tokens=30)
    assert not torch.equal(first, before)
    first.sum().backward()
    assert first.grad is not None
