"""Adapters, the views of the model without them, and PEFT's own format."""

import json
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from samples import messages, picture
from stage import ONE_UPDATE, SMALL
from tiny_families import EACH
from torch import nn
from torch.testing import assert_close
from transformers import AutoModelForImageTextToText

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.models.load import load_family
from baselines.models.lora import (
    ADAPTER_WEIGHTS,
    CONFIG,
    LoraOptions,
    adapters,
    add_adapters,
    export_adapter,
    merged_copy,
    reference,
)
from baselines.plugin import make_hf
from vlgym.errors import UserError


def randomise(family, seed: int = 1):
    """The family, its adapters as if they had learnt something."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in list(adapters(family).parameters()):
            parameter.normal_(0.0, 0.05, generator=generator)
    return family


def learnt(family, rank: int = 4, alpha: float | None = None):
    add_adapters(family, LoraOptions(rank=rank, alpha=alpha), seed=0)
    return randomise(family)


def replies(family, prompts) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.tensor([family.encode_reply("target 3 current 7")] * len(prompts))
    return ids, torch.ones_like(ids, dtype=torch.bool)


@torch.no_grad()
def scores(family, prompts=None) -> torch.Tensor:
    prompts = prompts or [family.encode(messages(picture(1), "which way?"))]
    return Engine(family, max_new_tokens=10).score(prompts, *replies(family, prompts))


def linears(family) -> dict[str, nn.Linear]:
    return {n: m for n, m in family.language_model.named_modules() if type(m) is nn.Linear}


def sampled(engine, prompts):
    return engine.sample(prompts, torch.Generator().manual_seed(0))


def test_every_linear_layer_has_an_adapter_and_all_gradients_are_theirs(family, prompts):
    expected = {f"{name.replace('.', '/')}/{side}" for name in linears(family) for side in "AB"}
    add_adapters(family, LoraOptions(rank=4), seed=0)
    assert set(adapters(family)) == expected
    randomise(family)
    Engine(family, max_new_tokens=10).score(prompts, *replies(family, prompts)).sum().backward()
    trained = {id(p) for p in list(adapters(family).parameters())}
    for name, parameter in family.model.named_parameters():
        assert parameter.requires_grad is (id(parameter) in trained), name
        reached = parameter.grad is not None and bool(parameter.grad.abs().sum() > 0)
        assert reached is parameter.requires_grad, name


def test_the_product_is_scaled_by_alpha_over_rank_and_alpha_is_twice_the_rank_by_default():
    for alpha, added in ((None, 1.0), (1.0, 0.125)):
        family = load_family("tiny")
        add_adapters(family, LoraOptions(rank=4, alpha=alpha), seed=0)
        with torch.no_grad():
            for name, factor in adapters(family).items():
                factor.weight.fill_(0.5 if name.endswith("A") else 0.25)  # B A: 0.5
        base, merged = linears(reference(family)), linears(merged_copy(family))
        for name in base:
            assert_close(merged[name].weight, base[name].weight + added, atol=1e-6, rtol=0)


def test_options_that_mean_no_adapters_are_refused_with_the_way_out(family):
    for options, words in (
        (LoraOptions(rank=8, alpha=float("nan")), r"--lora\.alpha nan must be > 0"),
        (LoraOptions(alpha=16.0), r"add, say, --lora\.rank 32"),
        (LoraOptions(), r"--lora\.rank 0 trains all weights"),
    ):
        with pytest.raises(UserError, match=words):
            add_adapters(family, options, seed=0)
    assert all(p.requires_grad for p in family.language_model.parameters())
    LoraOptions().validate()  # full fine-tuning is a valid choice, only not one for add_adapters


@torch.no_grad()
def test_without_gradients_a_factor_is_cast_once_per_change_into_one_place():
    family = learnt(load_family("tiny", dtype="bfloat16"))
    factors = list(adapters(family).children())
    copies = [factor.cast(torch.bfloat16) for factor in factors]
    copies[0].fill_(7)
    assert (factors[0].cast(torch.bfloat16) == 7).all(), "it is cast again"
    randomise(family, seed=2)
    for factor, copy in zip(factors, copies, strict=True):
        assert factor.cast(torch.bfloat16).data_ptr() == copy.data_ptr()
        assert torch.equal(copy, factor.weight.bfloat16())
    with torch.enable_grad():
        assert factors[0].cast(torch.bfloat16).requires_grad


def test_the_reference_is_the_base_while_the_adapters_learn(family, engine, prompts):
    before, drawn = scores(family, prompts), sampled(engine, prompts)
    weights = {tensor.data_ptr() for tensor in family.model.parameters()}
    add_adapters(family, LoraOptions(rank=4), seed=0)
    assert torch.equal(scores(family, prompts), before)  # adapters begin as the identity
    base = reference(family)
    randomise(family)
    assert torch.equal(scores(base, prompts), before)
    again = sampled(Engine(base, max_new_tokens=10), prompts)
    assert torch.equal(again.ids, drawn.ids)
    assert torch.equal(again.logp, drawn.logp)
    assert (scores(family, prompts) - before).abs().max() > 1e-2
    assert {tensor.data_ptr() for tensor in base.model.parameters()} == weights  # nothing was copied


@pytest.mark.parametrize("name", EACH)
def test_the_merged_copy_samples_and_scores_as_base_and_adapters_do(name, model_folder):
    family = learnt(load_family(str(model_folder(name))))
    prompts = [family.encode(messages(picture(seed), "Say a word.")) for seed in (1, 2)]
    apart, merged = (Engine(x, max_new_tokens=10) for x in (family, merged_copy(family)))
    one, two = sampled(apart, prompts), sampled(merged, prompts)
    assert torch.equal(one.ids, two.ids)
    assert_close(one.logp, two.logp, atol=2e-5, rtol=0)
    with torch.no_grad():
        assert_close(apart.score(prompts, one.ids, one.mask), two.logp, atol=2e-5, rtol=0)
        assert_close(merged.score(prompts, one.ids, one.mask), two.logp, atol=2e-5, rtol=0)
    base = scores(reference(family), prompts)
    assert not torch.allclose(base, scores(family, prompts), atol=1e-2)


def peft_model(base, folder):
    return PeftModel.from_pretrained(AutoModelForImageTextToText.from_pretrained(base).eval(), folder)


@pytest.mark.parametrize("name", [pytest.param("qwen2_vl", marks=pytest.mark.exhaustive), "qwen3_vl"])
def test_peft_loads_exported_adapters_and_computes_what_we_compute(name, model_folder, tmp_path):
    base = str(model_folder(name))
    family = learnt(load_family(base), alpha=6.0)
    before = scores(load_family(base))
    adapted = peft_model(base, export_adapter(family, tmp_path / "adapter", base))
    assert adapted.peft_config["default"].base_model_name_or_path == base
    ours = scores(family)
    theirs = family.twin({})
    theirs.adopt(adapted.get_base_model())  # with PEFT's layers in it
    assert_close(scores(theirs), ours, atol=1e-5, rtol=0)
    assert (ours - before).abs().max() > 1e-2
    # As a user of the libraries alone has it: logits of plain text.
    ids = torch.tensor([family.encode_text("turn left, turn right")])
    with torch.no_grad():
        expected = family.model(input_ids=ids).logits
        assert_close(adapted(input_ids=ids).logits, expected, atol=1e-5, rtol=0)


def test_a_run_writes_the_merged_model_its_adapters_and_the_model_under_them(tmp_path):
    config = replace(
        vldac.Config(**ONE_UPDATE), lora=LoraOptions(rank=2, alpha=3.0), lr=3e-3,
        warm=SMALL["warm"], out=tmp_path / "run", export_adapter=tmp_path / "elsewhere",
    )  # fmt: skip
    run = vldac.train(config)
    expected, adapter = scores(run.weights.family), run.out / "adapter"
    base = json.loads((adapter / CONFIG).read_text())["base_model_name_or_path"]
    assert base == str(run.out / "base")
    family = load_family(base, image_tokens=4)
    assert not torch.allclose(scores(family), expected, atol=1e-3)
    family.adopt(peft_model(base, adapter).get_base_model())
    assert_close(scores(family), expected, atol=1e-5, rtol=0)
    for name in (CONFIG, ADAPTER_WEIGHTS):
        assert (tmp_path / "elsewhere" / name).read_bytes() == (adapter / name).read_bytes()
    settings = make_hf(str(adapter), temperature=0.0, threads=1).describe()
    assert settings["max_new_tokens"] == ONE_UPDATE["max_new_tokens"]
    moved = (tmp_path / "run").rename(tmp_path / "moved")  # the base is next to the adapters
    for folder in ("model", "adapter"):
        assert_close(scores(load_family(str(moved / folder), image_tokens=4)), expected, atol=1e-5, rtol=0)


def test_adapters_that_peft_wrote_are_loaded(model_folder, tmp_path):
    base = str(model_folder("qwen2_vl"))
    plain = AutoModelForImageTextToText.from_pretrained(base).eval()
    layers = r".*language_model.*\.(q_proj|down_proj)"
    config = LoraConfig(r=3, lora_alpha=5, target_modules=layers, init_lora_weights=False)
    adapted = get_peft_model(plain, config)
    adapted.save_pretrained(tmp_path / "adapter")
    family = load_family(str(tmp_path / "adapter"))
    ids = torch.tensor([family.encode_text("turn left, turn right")])
    with torch.no_grad():
        assert_close(family.model(input_ids=ids).logits, adapted(input_ids=ids).logits, atol=1e-5, rtol=0)
    assert (scores(family) - scores(load_family(base))).abs().max() > 1e-3  # our decoder sees them
