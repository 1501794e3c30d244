"""The vision towers' attention by groups against the library's loop."""

from __future__ import annotations

import pytest
import torch
from samples import picture

from baselines.models.load import load_family

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


@pytest.mark.parametrize("name", ["qwen2_5_vl", "qwen3_vl"])
def test_attention_by_groups_has_the_librarys_features_and_gradients(name, model_folder):
    family = load_family(str(model_folder(name)), image_tokens=64)
    (one, gradients), (two, expected) = encode(family, ours=True), encode(family, ours=False)
    torch.testing.assert_close(one, two, atol=2e-5, rtol=1e-5)
    assert len(gradients) == len(expected) > 10
    for a, b in zip(gradients, expected, strict=True):
        torch.testing.assert_close(a, b, atol=3e-4, rtol=1e-3)
