"""Tiny vision-language models, built offline: one of the Qwen2-VL family, the default model of every command, and still
smaller ones of every supported family for the tests.

The default has `PARAMETERS` parameters, random weights, the word-list tokenizer of `tokenizer.py`. It is a real
`Qwen2VLForConditionalGeneration`, so whatever holds for it (positions, vision tokens, caching) holds for the published
ones; it knows nothing before its supervised warm start. So are the others of their families.

The initialisation matters more than the size: with the library's usual std of 0.02 a model this small sits on a plateau
where it ignores the image; with 0.08 (embeddings 0.02, patch embedding 0.03) it reads printed digits after a few
hundred batches.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from tokenizers import AddedToken
from torch import nn
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

from .tokenizer import EOS, IMAGE_PAD, PAD, VIDEO_PAD, VISION_END, VISION_START, build_tokenizer

PARAMETERS = 1_392_736
"""All parameters of the default model; pages and tests take the number from here."""
FamilyName = Literal["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3"]
GEMMA_TOKENS = (
    "<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>",
    "<image_soft_token>",
)  # fmt: skip


TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.content is string %}"
    "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}"
    "{% endif %}{% endfor %}{% for part in message.content %}{% if part.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The default model's layout (see `TinyQwen2VL`) for a server of its export: text first, no system message."""


@dataclass(frozen=True)
class TinyConfig:
    """Shape and initialisation of a tiny model.

    The image budget is a property of the run, not of the model (see `families.py`).
    """

    hidden_size: int = 128
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    intermediate_size: int = 256
    vision_depth: int = 1
    vision_width: int = 96
    vision_heads: int = 3
    std: float = 0.08
    embedding_std: float = 0.02
    patch_std: float = 0.03
    norm_std: float = 0.0
    """Spread of norm weights and biases around the library's initial values; tests want them all different."""


SMALLEST = TinyConfig(
    hidden_size=32, layers=3, intermediate_size=64, vision_depth=2, vision_width=16, vision_heads=2,
    std=0.2, embedding_std=0.2, patch_std=0.1, norm_std=0.2,
)  # fmt: skip
"""For tests of a family's arithmetic: every weight matters, nothing is learnt."""


def build_tiny(
    config: TinyConfig = TinyConfig(), seed: int = 0, family: FamilyName = "qwen2_vl"
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Build a model and its tokenizer. The same seed gives the same weights; no global generator is read or moved.

    A saved Qwen2-VL of these is known again as the tiny default; the other families are loaded as published models are.
    """
    tokenizer = build_tokenizer()
    if family == "gemma3":
        tokenizer.add_tokens([AddedToken(x, special=True, normalized=False) for x in GEMMA_TOKENS], special_tokens=True)
        tokenizer.pad_token, tokenizer.eos_token, tokenizer.bos_token = GEMMA_TOKENS[:3]
    ids: Any = tokenizer.convert_tokens_to_ids
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "max_position_embeddings": 8192,
        "bos_token_id": None,
        "eos_token_id": ids(EOS),
        "pad_token_id": ids(PAD),
    }
    with torch.random.fork_rng(devices=[]):  # the library's own initialisation would move the global generator
        model = _BUILDERS[family](config, text, ids)
    _initialise(model, config, seed)
    model.generation_config.eos_token_id = model.config.text_config.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    if family == "qwen2_vl":
        tokenizer.chat_template = TEMPLATE
    return model.eval(), tokenizer


def _qwen_ids(ids: Any) -> dict[str, Any]:
    return {
        "image_token_id": ids(IMAGE_PAD), "video_token_id": ids(VIDEO_PAD),
        "vision_start_token_id": ids(VISION_START), "vision_end_token_id": ids(VISION_END),
    }  # fmt: skip


def _rope(config: TinyConfig) -> dict[str, Any]:
    head = config.hidden_size // config.heads // 2  # mRoPE: the three sections must sum to half a head
    section = [head // 4, (head - head // 4) // 2, head - head // 4 - (head - head // 4) // 2]
    return {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section}


def _qwen2_vl(config: TinyConfig, text: dict[str, Any], ids: Any) -> PreTrainedModel:
    vision: dict[str, Any] = {
        "depth": config.vision_depth,
        "embed_dim": config.vision_width,
        "hidden_size": config.hidden_size,
        "num_heads": config.vision_heads,
        "mlp_ratio": 2,
    }
    hf_config = Qwen2VLConfig(
        text_config=text | {"rope_parameters": _rope(config)},
        vision_config=vision,
        architectures=["Qwen2VLForConditionalGeneration"],
        **_qwen_ids(ids),
    )
    hf_config.vlgym_tiny = asdict(config)  # saved with the model; by it a saved tiny model is known again
    return Qwen2VLForConditionalGeneration(hf_config)


def _qwen2_5_vl(config: TinyConfig, text: dict[str, Any], ids: Any) -> PreTrainedModel:
    vision: dict[str, Any] = {
        "depth": config.vision_depth,
        "hidden_size": config.vision_width,
        "intermediate_size": 2 * config.vision_width,
        "num_heads": config.vision_heads,
        "out_hidden_size": config.hidden_size,
        "window_size": 56,
        "fullatt_block_indexes": [config.vision_depth - 1],
    }
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(text_config=text | {"rope_parameters": _rope(config)}, vision_config=vision, **_qwen_ids(ids))
    )


def _qwen3_vl(config: TinyConfig, text: dict[str, Any], ids: Any) -> PreTrainedModel:
    vision: dict[str, Any] = {
        "depth": config.vision_depth,
        "hidden_size": config.vision_width,
        "intermediate_size": 2 * config.vision_width,
        "num_heads": config.vision_heads,
        "out_hidden_size": config.hidden_size,
        "patch_size": 16,
        "num_position_embeddings": 16,
        "deepstack_visual_indexes": list(range(config.vision_depth)),
    }
    rope = _rope(config) | {"mrope_interleaved": True, "mrope_section": sorted(_rope(config)["mrope_section"])[::-1]}
    head = {"head_dim": config.hidden_size // config.heads, "rope_parameters": rope}
    return Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(text_config=text | head, vision_config=vision, tie_word_embeddings=True, **_qwen_ids(ids))
    )


def _gemma3(config: TinyConfig, text: dict[str, Any], ids: Any) -> PreTrainedModel:
    pad, eos, bos, _, end_of_turn, image_start, image_end, image = ids(list(GEMMA_TOKENS))
    vision: dict[str, Any] = {
        "num_hidden_layers": config.vision_depth,
        "hidden_size": config.vision_width,
        "intermediate_size": 2 * config.vision_width,
        "num_attention_heads": config.vision_heads,
        "image_size": 56,
        "patch_size": 14,
        "vision_use_head": False,
    }
    kinds = ["sliding_attention", "full_attention"]
    head = config.hidden_size // config.heads
    own: dict[str, Any] = {
        "head_dim": head,
        "query_pre_attn_scalar": 2 * head,
        "sliding_window": 16,
        "layer_types": [kinds[i % 2] for i in range(config.layers)],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
        "bos_token_id": bos, "eos_token_id": [eos, end_of_turn], "pad_token_id": pad,
    }  # fmt: skip
    return Gemma3ForConditionalGeneration(
        Gemma3Config(
            text_config=text | own, vision_config=vision, mm_tokens_per_image=4,
            boi_token_index=image_start, eoi_token_index=image_end, image_token_index=image,
        )
    )  # fmt: skip


_BUILDERS = {"qwen2_vl": _qwen2_vl, "qwen2_5_vl": _qwen2_5_vl, "qwen3_vl": _qwen3_vl, "gemma3": _gemma3}


@torch.no_grad()
def _initialise(model: nn.Module, config: TinyConfig, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:  # norms and biases; the library's values are not random
            if config.norm_std:
                parameter.add_(torch.empty_like(parameter).normal_(0.0, config.norm_std, generator=generator))
            continue
        std = config.std
        if "embed_tokens" in name:
            std = config.embedding_std
        elif "patch_embed" in name:
            std = config.patch_std
        parameter.normal_(0.0, std, generator=generator)
