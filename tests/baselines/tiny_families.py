"""Models of several families, smaller than the tiny default: every weight matters, nothing is learnt."""

from typing import Any

import pytest
import torch
from transformers import (
    PreTrainedModel,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

from baselines.models.tiny import TinyConfig, build_tiny, build_tokenizer, initialise, media_options, text_options

EACH = ("qwen2_vl", pytest.param("qwen2_5_vl", marks=pytest.mark.exhaustive), "qwen3_vl")
"""Families with a fast path, for `parametrize`; Qwen2.5-VL has the class of Qwen2-VL."""

SMALLEST = TinyConfig(
    hidden_size=32, layers=3, intermediate_size=64, vision_depth=2, vision_width=16, vision_heads=2,
    std=0.2, embedding_std=0.2, patch_std=0.1, norm_std=0.2,
)  # fmt: skip


def build(family: str) -> tuple[PreTrainedModel, Any]:
    """A model and its tokenizer."""
    if family == "qwen2_vl":
        return build_tiny(SMALLEST)
    tokenizer = build_tokenizer()
    builders = {"qwen2_5_vl": _qwen2_5_vl, "qwen3_vl": _qwen3_vl}
    with torch.random.fork_rng(devices=[]):
        model = builders[family](SMALLEST, text_options(SMALLEST, tokenizer), tokenizer)
    return initialise(model, tokenizer, SMALLEST, 0), tokenizer


def _vision(config: TinyConfig) -> dict[str, Any]:
    return {
        "depth": config.vision_depth, "hidden_size": config.vision_width,
        "intermediate_size": 2 * config.vision_width, "num_heads": config.vision_heads,
        "out_hidden_size": config.hidden_size,
    }  # fmt: skip


def _qwen2_5_vl(config: TinyConfig, text: dict[str, Any], tokenizer: Any) -> PreTrainedModel:
    vision = _vision(config) | {"window_size": 56, "fullatt_block_indexes": [config.vision_depth - 1]}
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(text_config=text, vision_config=vision, **media_options(tokenizer))
    )


def _qwen3_vl(config: TinyConfig, text: dict[str, Any], tokenizer: Any) -> PreTrainedModel:
    vision = _vision(config) | {
        "patch_size": 16, "num_position_embeddings": 16,
        "deepstack_visual_indexes": list(range(config.vision_depth)),
    }  # fmt: skip
    own = text["rope_parameters"]
    rope = own | {"mrope_interleaved": True, "mrope_section": sorted(own["mrope_section"])[::-1]}
    head = {"head_dim": config.hidden_size // config.heads, "rope_parameters": rope}
    return Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(
            text_config=text | head, vision_config=vision, tie_word_embeddings=True, **media_options(tokenizer)
        )
    )
