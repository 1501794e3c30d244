"""The choice of attention kernels, and the vision towers' attention by groups against the library's loop."""

from __future__ import annotations

import pytest
import torch
from samples import messages, picture
from stage import SMALL
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from baselines import vldac
from baselines.engine.engine import Engine
from baselines.learning.run import Run
from baselines.learning.warm_start import WarmConfig
from baselines.models import attention as attention_module
from baselines.models.adapter import export_adapter
from baselines.models.attention import choose_attention
from baselines.models.load import FAMILIES, load_family
from baselines.models.lora import LoraOptions, add_adapters
from vlgym.errors import UserError

QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
SIZES = ((96, 130), (200, 64), (96, 130), (64, 64), (130, 96))  # two alike, windows cut at edges


def calls_of_sdpa(monkeypatch) -> list[tuple[int, ...]]:
    """Shapes of the queries of every call of torch's attention from now on."""
    found, real = [], torch.nn.functional.scaled_dot_product_attention

    def note(query, *args, **kwargs):
        found.append(tuple(query.shape))
        return real(query, *args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", note)
    return found


def encode(family, *, ours: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Features of the pictures, and gradients of the tower's weights."""
    for block in family.model.model.visual.blocks:
        if not ours:
            block.attn.__dict__.pop("forward", None)
    family.model.zero_grad()
    features = torch.cat(family.encode_images([family.prepare_image(picture(n, s)) for n, s in enumerate(SIZES)]))
    (features * torch.linspace(-1, 1, len(features)).unsqueeze(1)).sum().backward()
    tower = family.model.model.visual
    return features.detach(), [p.grad.clone() for p in tower.parameters() if p.grad is not None]


@pytest.mark.parametrize("kernels", ["sdpa", "eager"])
@pytest.mark.parametrize("name", QWEN)
def test_attention_by_groups_has_the_librarys_features_and_gradients(name, kernels, model_folder):
    family = load_family(str(model_folder(name)), image_tokens=64, attention=kernels)
    assert family.model.config.vision_config._attn_implementation == kernels
    (one, gradients), (two, expected) = encode(family, ours=True), encode(family, ours=False)
    torch.testing.assert_close(one, two, atol=2e-5, rtol=1e-5)
    assert len(gradients) == len(expected) > 10
    for a, b in zip(gradients, expected, strict=True):
        torch.testing.assert_close(a, b, atol=3e-4, rtol=1e-3)


@torch.no_grad()
def test_one_call_serves_all_images_or_windows_of_a_length(model_folder, monkeypatch):
    family = load_family(str(model_folder("qwen2_5_vl")), image_tokens=64)
    images = [family.prepare_image(picture(n, (224, 224))) for n in range(5)]
    calls = calls_of_sdpa(monkeypatch)
    family.encode_images(images)
    # Windows of 56 pixels: 16 an image; then the layer that sees whole images.
    assert [shape[:1] + shape[2:3] for shape in calls] == [(80, 16), (5, 256)]


@torch.no_grad()
def test_features_of_an_image_do_not_depend_on_the_others_and_are_the_librarys_to_the_bit_for_one(model_folder):
    family = load_family(str(model_folder("qwen2_vl")), image_tokens=64)
    images = [family.prepare_image(picture(n, s)) for n, s in enumerate(SIZES)]
    together = family.encode_images(images)
    for image, features in zip(images, together, strict=True):
        torch.testing.assert_close(family.encode_images([image])[0], features, atol=1e-5, rtol=1e-5)
    alone = family.encode_images(images[:1])[0]
    for block in family.model.model.visual.blocks:
        block.attn.__dict__.pop("forward", None)
    assert torch.equal(family.encode_images(images[:1])[0], alone)


@torch.no_grad()
def test_a_copy_groups_by_its_own_weights(model_folder):
    family = load_family(str(model_folder("qwen2_vl")), image_tokens=64)
    image = family.prepare_image(picture(1))
    copy = family.frozen_copy(share_vision=False)
    before = copy.encode_images([image])[0].clone()
    for p in family.vision_parameters():
        p.mul_(1.5)
    assert torch.equal(copy.encode_images([image])[0], before)
    assert not torch.equal(family.encode_images([image])[0], before)


@torch.no_grad()
@pytest.mark.parametrize("name", ["tiny", *FAMILIES])
def test_every_kernel_gives_the_same_flat_scores_and_is_used(name, model_folder):
    source = "tiny" if name == "tiny" else str(model_folder(name))
    found = []
    for kernels in ("auto", "sdpa", "eager"):
        family = load_family(source, attention=kernels, image_tokens=None if name == "gemma3" else 9)
        used = "sdpa" if kernels == "auto" else kernels
        for config in (family.model.config.text_config, family.model.config.vision_config):
            assert config._attn_implementation == used
        prompt = family.encode(messages(picture(1), "Which way?"))
        ids = torch.tensor([family.encode_reply("target 3")])
        found.append(Engine(family, max_new_tokens=4).score_flat([prompt], ids, torch.ones_like(ids, dtype=torch.bool)))
    for scores in found[1:]:
        torch.testing.assert_close(scores, found[0], atol=3e-5, rtol=0)


def test_a_run_and_a_model_under_adapters_take_the_kernels_that_were_asked_for(model_folder, tmp_path):
    base = str(model_folder("qwen2_5_vl"))
    family = load_family(base)
    add_adapters(family, LoraOptions(rank=2), seed=0)
    adapter = export_adapter(family, tmp_path / "adapter", base)
    assert load_family(str(adapter), attention="eager").model.config.vision_config._attn_implementation == "eager"
    for asked, used in (("eager", "eager"), ("auto", "sdpa")):
        config = vldac.Config(**{**SMALL, "warm": WarmConfig(steps=0)}, attention=asked, out=tmp_path / asked)
        with Run(config) as run:
            assert run.weights.family.model.config.vision_config._attn_implementation == used


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attention": "flash"}, "--attention='flash' is not one of auto, sdpa, flash_attention_2, eager"),
        ({"attention": "flash_attention_2"}, "CUDA with 16-bit weights alone, not on cpu with float32"),
        ({"attention": "flash_attention_2", "device": "cuda"}, "16-bit weights alone, not on cuda with float32"),
        ({"attention": "flash_attention_2", "device": "cuda", "dtype": "bfloat16"}, "needs the package flash-attn"),
    ],
)
def test_kernels_that_cannot_run_are_refused_before_any_weight_is_read(options, words, model_folder, monkeypatch):
    monkeypatch.setattr("baselines.models.load.load_weights", lambda *args, **kwargs: pytest.fail("read weights"))
    with pytest.raises(UserError, match=words) as told:
        load_family(str(model_folder("qwen2_5_vl")), **options)
    assert "\n" not in str(told.value)


@torch.no_grad()
def test_flash_attention_is_given_the_lengths_of_all_images_in_one_call_a_layer(model_folder, monkeypatch):
    family = load_family(str(model_folder("qwen2_vl")), image_tokens=64)
    calls = []

    def stand_in(module, query, key, value, attention_mask, **options):
        calls.append((options["cu_seq_lens_q"].tolist(), options["max_length_q"], options["is_causal"]))
        return torch.zeros_like(query).transpose(1, 2), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "flash_attention_2", stand_in)
    family.model.model.visual.config._attn_implementation_internal = "flash_attention_2"
    images = [family.prepare_image(picture(n, size)) for n, size in enumerate([(56, 56), (84, 112)])]
    family.encode_images(images)
    assert calls == [([0, 16, 64], 48, False)] * 2


def test_where_flash_attention_runs_gemma_takes_it_for_its_tower_alone(monkeypatch):
    monkeypatch.setattr(attention_module, "is_flash_attn_2_available", lambda: True)
    options = {"device": "cuda:1", "dtype": "bfloat16"}
    assert choose_attention("flash_attention_2", model_type="qwen3_vl", **options) == "flash_attention_2"
    chosen = choose_attention("flash_attention_2", model_type="gemma3", **options)
    assert chosen == {"text_config": "sdpa", "vision_config": "flash_attention_2"}
