"""The choice of attention kernels, and the vision towers' attention by groups against the library's loop."""

from __future__ import annotations

import pytest
import torch
from samples import messages, picture

from baselines.engine.engine import Engine
from baselines.models import attention as attention_module
from baselines.models.attention import choose_attention
from baselines.models.load import load_family
from vlgym.errors import UserError

SIZES = ((96, 130), (200, 64), (96, 130), (64, 64), (130, 96))  # two alike, windows cut at edges


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


@pytest.mark.parametrize(("name", "kernels"), [("qwen2_5_vl", "sdpa"), ("qwen3_vl", "eager")])
def test_attention_by_groups_has_the_librarys_features_and_gradients(name, kernels, model_folder):
    family = load_family(str(model_folder(name)), image_tokens=64, attention=kernels)
    assert family.model.config.vision_config._attn_implementation == kernels
    (one, gradients), (two, expected) = encode(family, ours=True), encode(family, ours=False)
    torch.testing.assert_close(one, two, atol=2e-5, rtol=1e-5)
    assert len(gradients) == len(expected) > 10
    for a, b in zip(gradients, expected, strict=True):
        torch.testing.assert_close(a, b, atol=3e-4, rtol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("name", ["tiny", "gemma3"])
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


def test_where_flash_attention_runs_gemma_takes_it_for_its_tower_alone(monkeypatch):
    monkeypatch.setattr(attention_module, "is_flash_attn_2_available", lambda: True)
    options = {"device": "cuda:1", "dtype": "bfloat16"}
    assert choose_attention("flash_attention_2", model_type="qwen3_vl", **options) == "flash_attention_2"
    chosen = choose_attention("flash_attention_2", model_type="gemma3", **options)
    assert chosen == {"text_config": "sdpa", "vision_config": "flash_attention_2"}
