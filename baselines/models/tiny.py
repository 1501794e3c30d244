"""The tiny vision-language model, built offline: the default model of every command.

The default has `PARAMETERS` parameters, random weights, the word-list tokenizer of `tokenizer.py`. It is a real
`Qwen2VLForConditionalGeneration`, so whatever holds for it (positions, vision tokens, caching) holds for the published
ones; it knows nothing before its supervised warm start.

The initialisation matters more than the size: with the library's usual std of 0.02 a model this small sits on a plateau
where it ignores the image; with 0.08 (embeddings 0.02, patch embedding 0.03) it reads printed digits after a few
hundred batches.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

from .tokenizer import EOS, IMAGE_PAD, PAD, VIDEO_PAD, VISION_END, VISION_START, build_tokenizer

PARAMETERS = 1_392_736
"""All parameters of the default model; pages and tests take the number from here."""

TEMPLATE = (
    "{% if tools %}<|im_start|>system\nTools:\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}Call one by "
    '<tool_call>\n{"name": NAME, "arguments": {...}}\n</tool_call><|im_end|>\n{% endif %}'
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.content is string %}"
    "{{ message.content }}{% else %}{% for part in message.content or [] %}{% if part.type == 'text' %}{{ part.text }}"
    "{% endif %}{% endfor %}{% for part in message.content or [] %}{% if part.type == 'image' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}{% endif %}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n{{ call.function | tojson }}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The default model's layout (see `TinyQwen2VL`) for a server of its export: text first, no system message. Tools, and
calls of them, are for TRL."""

CALLS = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}
"""The library's description of how a reply in that layout is read (`response_template`)."""


@dataclass(frozen=True)
class TinyConfig:
    """Shape and initialisation of a tiny model."""

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


def build_tiny(config: TinyConfig = TinyConfig(), seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Build the model and its tokenizer. The same seed gives the same weights; no global generator is read or moved.

    A saved one is known again as the tiny default.
    """
    tokenizer = build_tokenizer()
    tokenizer.chat_template, tokenizer.response_template = TEMPLATE, CALLS
    vision: dict[str, Any] = {
        "depth": config.vision_depth,
        "embed_dim": config.vision_width,
        "hidden_size": config.hidden_size,
        "num_heads": config.vision_heads,
        "mlp_ratio": 2,
    }
    hf_config = Qwen2VLConfig(
        text_config=text_options(config, tokenizer) | {"rope_parameters": rope_options(config)},
        vision_config=vision,
        architectures=["Qwen2VLForConditionalGeneration"],
        **media_options(tokenizer),
    )
    hf_config.vlgym_tiny = asdict(config)  # saved with the model; by it a saved tiny model is known again
    with torch.random.fork_rng(devices=[]):  # the library's own initialisation would move the global generator
        model = Qwen2VLForConditionalGeneration(hf_config)
    return initialise(model, tokenizer, config, seed), tokenizer


def text_options(config: TinyConfig, tokenizer: Any) -> dict[str, Any]:
    """Options of the library's text model."""
    ids = tokenizer.convert_tokens_to_ids
    return {
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


def media_options(tokenizer: Any) -> dict[str, Any]:
    """Ids of Qwen's placeholders."""
    ids = tokenizer.convert_tokens_to_ids
    return {
        "image_token_id": ids(IMAGE_PAD), "video_token_id": ids(VIDEO_PAD),
        "vision_start_token_id": ids(VISION_START), "vision_end_token_id": ids(VISION_END),
    }  # fmt: skip


def rope_options(config: TinyConfig) -> dict[str, Any]:
    """Multimodal rotary positions; the three sections sum to half a head."""
    head = config.hidden_size // config.heads // 2
    section = [head // 4, (head - head // 4) // 2, head - head // 4 - (head - head // 4) // 2]
    return {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section}


@torch.no_grad()
def initialise(model: PreTrainedModel, tokenizer: Any, config: TinyConfig, seed: int) -> PreTrainedModel:
    """Draw the weights; return the model, in eval mode."""
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
    model.generation_config.eos_token_id = model.config.text_config.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model.eval()
