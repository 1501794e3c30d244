"""Adapters, the views of the model without them, and plain checkpoints."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from samples import messages, picture
from tiny_families import EACH
from torch import nn
from torch.testing import assert_close
from transformers import AutoModelForImageTextToText, AutoTokenizer

from baselines.engine.engine import Engine
from baselines.models.load import load_family
from baselines.models.lora import LoraOptions, adapters, add_adapters, export_merged, merged_copy, reference
from vlgym.errors import UserError


def randomise(family, seed: int = 1) -> None:
    """Give the adapters weights as if they had learnt something."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in list(adapters(family).parameters()):
            parameter.normal_(0.0, 0.05, generator=generator)


def replies(family, prompts) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.tensor([family.encode_reply("target 3 current 7")] * len(prompts))
    return ids, torch.ones_like(ids, dtype=torch.bool)


@torch.no_grad()
def scores(family, prompts) -> torch.Tensor:
    return Engine(family, max_new_tokens=10).score(prompts, *replies(family, prompts))


def linears(family) -> dict[str, nn.Linear]:
    return {n: m for n, m in family.language_model.named_modules() if type(m) is nn.Linear}


def sampled(engine, prompts):
    return engine.sample(prompts, torch.Generator().manual_seed(0))


# ---- adding adapters ---------------------------------------------------------------------------


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
                factor.weight.fill_(0.5 if name.endswith("A") else 0.25)  # each entry of B A is 4 * 0.5 * 0.25 = 0.5
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
def test_without_gradients_a_factor_is_cast_once_per_change_into_one_place(prompts):
    family = load_family("tiny", dtype="bfloat16")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    engine, factors = Engine(family, max_new_tokens=4), list(adapters(family).children())
    before, copies = sampled(engine, prompts), [factor.cast(torch.bfloat16) for factor in factors]
    copies[0].fill_(7)
    assert (factors[0].cast(torch.bfloat16) == 7).all(), "it is cast again"
    randomise(family, seed=2)
    for factor, copy in zip(factors, copies, strict=True):
        assert factor.cast(torch.bfloat16).data_ptr() == copy.data_ptr()
        assert torch.equal(copy, factor.weight.bfloat16())
    assert not torch.equal(sampled(engine, prompts).logp, before.logp)
    with torch.enable_grad():
        assert factors[0].cast(torch.bfloat16).requires_grad


# ---- reference and merged copy -----------------------------------------------------------------


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
    family = load_family(str(model_folder(name)))
    prompts = [family.encode(messages(picture(seed), "Say a word.")) for seed in (1, 2)]
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    apart, merged = Engine(family, max_new_tokens=10), Engine(merged_copy(family), max_new_tokens=10)
    one, two = sampled(apart, prompts), sampled(merged, prompts)
    assert torch.equal(one.ids, two.ids)
    assert_close(one.logp, two.logp, atol=2e-5, rtol=0)
    with torch.no_grad():
        assert_close(apart.score(prompts, one.ids, one.mask), two.logp, atol=2e-5, rtol=0)
        assert_close(merged.score(prompts, one.ids, one.mask), two.logp, atol=2e-5, rtol=0)
    assert not torch.allclose(scores(reference(family), prompts), scores(family, prompts), atol=1e-2)


def test_an_exported_model_is_a_plain_checkpoint_with_the_merged_models_logits(family, tmp_path):
    family.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    family.model.save_pretrained(tmp_path / "before")
    add_adapters(family, LoraOptions(rank=4), seed=0)
    randomise(family)
    folder = export_merged(family, tmp_path / "model")
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "generation_config.json", "model.safetensors", "chat_template.jinja"} <= names
    assert "adapter_config.json" not in names
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("before", "model"))
    assert {n: (t.shape, t.dtype) for n, t in before.items()} == {n: (t.shape, t.dtype) for n, t in after.items()}
    config, old = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("model", "before"))
    assert config == old
    loaded = AutoModelForImageTextToText.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([tokenizer.encode("target 3 current 7", add_special_tokens=False)])
    assert ids[0].tolist() == family.encode_text("target 3 current 7")
    expected = merged_copy(family).model(input_ids=ids).logits
    assert torch.equal(loaded(input_ids=ids).logits, expected)
    assert torch.allclose(family.model(input_ids=ids).logits, expected, atol=1e-4)
    assert list(tmp_path.glob(".*")) == []


def test_an_export_does_not_delete_a_folder_that_holds_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="choose a new or empty folder"):
        export_merged(load_family("tiny"), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
