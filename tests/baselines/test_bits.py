"""Fewer bits: moments of 8, base weights of 4, by bitsandbytes where it is installed, refused where it is not."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from samples import messages, picture
from stage import SMALL

from baselines import loop, vldac
from baselines.engine.engine import Engine
from baselines.learning.optimizers import policy_optimizer
from baselines.models import lora
from baselines.models.load import FAMILIES, load_family
from baselines.models.lora import LoraOptions, add_adapters, trainable_parameters
from baselines.runs.checkpoint import checkpoints, load_optimizer, optimizer_tensors
from baselines.runs.logs import read_rows
from vlgym.errors import UserError

HERE = importlib.util.find_spec("bitsandbytes") is not None
real = pytest.mark.skipif(not HERE, reason="bitsandbytes is not installed")
EIGHT = replace(vldac.Config(**SMALL), optimizer="adamw8bit", lr=1e-3).resolve() if HERE else None
RUN = replace(
    vldac.Config(**SMALL), updates=2, eval_episodes=0, record_every=0, value_warmup=0, lr=3e-3, final_lr=1.0,
    invalid_penalty=0.5,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"optimizer": "adamw8bit"}, "--optimizer adamw8bit needs bitsandbytes, which is not installed"),
        ({"quantize": "nf4", "lora": LoraOptions(rank=2)}, "--quantize nf4 needs bitsandbytes, which is not installed"),
    ],
)
def test_without_bitsandbytes_its_options_are_refused_with_what_to_install(changes, words, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "bitsandbytes" else find(name))
    with pytest.raises(UserError, match=words) as error:
        replace(RUN, **changes).resolve()
    assert "pip install" in str(error.value)
    assert "[quant]" in str(error.value)
    assert "\n" not in str(error.value)
    replace(RUN).resolve()


@real
def test_packed_weights_without_adapters_are_refused():
    with pytest.raises(UserError, match=r"--quantize nf4: packed weights cannot be trained.*--lora\.rank 32"):
        replace(RUN, quantize="nf4").resolve()


# ---- moments of 8 bits -----------------------------------------------------------------------------------------------


def steps(parameter, optimizer, gradients):
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()


@real
def test_8_bit_moments_step_as_32_bit_ones_do_to_a_few_percent():
    start, generator = torch.randn(80, 100), torch.Generator().manual_seed(0)
    gradients = torch.randn(20, 80, 100, generator=generator)
    gradients += torch.randn(80, 100, generator=generator)  # a direction that stays, and noise
    gradients *= torch.logspace(0, -1, 20)[:, None, None]  # so that it matters how long large ones are remembered
    moved = {}
    for name in ("adamw", "adamw8bit"):
        parameter = torch.nn.Parameter(start.clone())
        steps(parameter, policy_optimizer([parameter], replace(EIGHT, optimizer=name)), gradients)
        moved[name] = parameter.detach() - start
    far = (moved["adamw8bit"] - moved["adamw"]).norm() / moved["adamw"].norm()
    assert 0 < far < 0.05
    parameter = torch.nn.Parameter(start.clone())
    optimizer = policy_optimizer([parameter], EIGHT)
    steps(parameter, optimizer, gradients[:1])
    assert {k: v.dtype for k, v in optimizer.state[parameter].items() if k.startswith("state")} == {
        "state1": torch.uint8, "state2": torch.uint8,
    }  # fmt: skip


@real
def test_8_bit_moments_go_on_exactly_from_a_checkpoint():
    gradients = torch.randn(6, 80, 100)
    small = torch.randn(6, 10)
    ends = []
    for stop in (None, 3):
        parameters = [torch.nn.Parameter(torch.ones(80, 100)), torch.nn.Parameter(torch.ones(10))]
        optimizer = policy_optimizer(parameters, EIGHT)
        for i in range(6):
            if i == stop:
                saved = {name: tensor.clone() for name, tensor in optimizer_tensors("policy", optimizer).items()}
                optimizer = policy_optimizer(parameters, EIGHT)
                load_optimizer("policy", optimizer, saved)
                assert {type(optimizer.state[parameter]["step"]) for parameter in parameters} == {int}
            parameters[0].grad, parameters[1].grad = gradients[i].clone(), small[i].clone()
            optimizer.step()
        ends.append([parameter.detach().clone() for parameter in parameters])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


@real
def test_the_engine_notices_a_step_of_the_8_bit_optimizer(engine, prompts):
    family = engine.family
    optimizer = policy_optimizer(family.language_model.parameters(), EIGHT)
    first = engine.sample(prompts, torch.Generator().manual_seed(0))
    engine.score(prompts, first.ids, first.mask).sum().backward()
    optimizer.step()
    second = engine.sample(prompts, torch.Generator().manual_seed(0))
    assert not torch.equal(first.hidden, second.hidden)
    with torch.no_grad():
        torch.testing.assert_close(engine.score(prompts, second.ids, second.mask), second.logp, atol=2e-5, rtol=0)


# ---- weights of 4 bits -----------------------------------------------------------------------------------------------


def packed(source, rank=2, dtype="float32"):
    """A family with packed weights and adapters that have learnt something."""
    family = load_family(source, dtype=dtype)
    lora.pack(family, "cpu")
    add_adapters(family, LoraOptions(rank=rank), seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in trainable_parameters(family):
            parameter.normal_(0.0, 0.05, generator=generator)
    return family


def weighed(family):
    """Bytes of the language model's linear layers."""
    tensors = [p for n, p in family.language_model.named_parameters() if n.endswith("proj.weight")]
    return sum(p.numel() * p.element_size() for p in tensors)


@real
@pytest.mark.parametrize("name", ["tiny", *(name for name in FAMILIES if name != "qwen2_vl")])
def test_packed_weights_sample_score_and_give_gradients_as_the_weights_do_that_they_stand_for(
    name, model_folder, prompts
):
    source = name if name == "tiny" else str(model_folder(name))
    before = weighed(load_family(source))
    family = packed(source)
    assert weighed(family) + sum(p.numel() * 4 for p in trainable_parameters(family)) < before
    base = [p for n, p in family.language_model.named_parameters() if n.endswith("base_layer.weight")]
    assert 7.9 * sum(p.numel() for p in base) < before <= 8.1 * sum(p.numel() for p in base)
    plain = lora.merged_copy(family)  # ordinary layers with the very weights that the packed ones stand for
    prompts = [family.encode(messages(picture(i), f"way {i}?")) for i in (1, 2, 1)]
    engine, other = Engine(family, max_new_tokens=8), Engine(plain, max_new_tokens=8)
    one, two = (each.sample(prompts, torch.Generator().manual_seed(0)) for each in (engine, other))
    assert torch.equal(one.ids, two.ids)
    torch.testing.assert_close(one.logp, two.logp, atol=5e-5, rtol=0)
    for score in (engine.score, engine.score_flat):
        family.model.zero_grad()
        found = score(prompts, one.ids, one.mask)
        torch.testing.assert_close(found.detach(), one.logp, atol=5e-5, rtol=0)
        found.sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in trainable_parameters(family))
    # The gradient, against that of adapters on ordinary layers with those weights.
    dequantised = load_family(source)
    values = dict(lora.merged_copy(lora.reference(family)).language_model.named_parameters())
    with torch.no_grad():
        for path, parameter in dequantised.language_model.named_parameters():
            parameter.copy_(values[path])
    add_adapters(dequantised, LoraOptions(rank=2), seed=0)
    with torch.no_grad():
        for mine, its in zip(trainable_parameters(dequantised), trainable_parameters(family), strict=True):
            mine.copy_(its)
    Engine(dequantised, max_new_tokens=8).score(prompts, one.ids, one.mask).sum().backward()
    for mine, its in zip(trainable_parameters(dequantised), trainable_parameters(family), strict=True):
        torch.testing.assert_close(its.grad, mine.grad, atol=2e-4 * float(mine.grad.abs().max()), rtol=2e-3)


@real
def test_a_run_with_packed_weights_resumes_exactly_and_leaves_a_plain_model_and_its_adapters(tmp_path):
    config = replace(RUN, quantize="nf4", lora=LoraOptions(rank=2), optimizer="adamw8bit")
    whole = vldac.train(replace(config, out=tmp_path / "whole"))
    assert all(row["rollout/logp_diff_max"] < 1e-4 for row in read_rows(whole.out / "log.jsonl"))
    assert whole.weights.sampler is whole.weights.scorer  # no merged copy: it would be larger than what packing saves
    vldac.train(replace(config, updates=1, out=tmp_path / "stopped"))
    again = vldac.train(vldac.Config(out=tmp_path / "stopped", resume=True, updates=2))
    first, second = (load_file(checkpoints(s.out / "checkpoints")[-1] / "tensors.safetensors") for s in (whole, again))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    engine = whole.weights.scorer
    prompt = engine.family.encode(messages(picture(1), "which way?"))
    ids = torch.tensor([engine.family.encode_reply("turn left")])
    mask = torch.ones_like(ids, dtype=torch.bool)
    expected = engine.score([prompt], ids, mask).detach()
    for folder in ("model", "adapter"):
        plain = load_family(str(whole.out / folder), image_tokens=4)
        got = Engine(plain, max_new_tokens=4).score([plain.encode(messages(picture(1), "which way?"))], ids, mask)
        torch.testing.assert_close(got.detach(), expected, atol=1e-4, rtol=0)
    assert "quantization_config" not in json.loads((whole.out / "model" / "config.json").read_text())
    reference = whole.weights.reference.score([prompt], ids, mask)
    assert not torch.allclose(reference, expected, atol=1e-4)


@real
def test_bfloat16_goes_with_packed_weights(prompts):
    family = packed("tiny", dtype="bfloat16")
    engine = Engine(family, max_new_tokens=8)
    out = engine.sample(prompts, torch.Generator().manual_seed(0))
    found = engine.score(prompts, out.ids, out.mask)
    assert float((found.detach() - out.logp).abs().max()) < 0.2
    found.sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in trainable_parameters(family))


@real
def test_another_learner_trains_with_both(tmp_path):
    config = replace(
        loop.Config(**SMALL), updates=1, eval_episodes=0, record_every=0, group=2, lr=1e-3, quantize="nf4",
        lora=LoraOptions(rank=2), optimizer="adamw8bit",
    )  # fmt: skip
    assert loop.train(replace(config, out=tmp_path / "run")).state.update == 1
