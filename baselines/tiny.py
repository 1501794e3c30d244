"""A tiny vision-language model of the Qwen2-VL family, built offline: the default model of every command and of the
tests.

1.2 million parameters, random weights, the word-list tokenizer of `tokenizer.py`. It is a real
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
from torch import nn
from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

from .tokenizer import EOS, IMAGE_PAD, PAD, VIDEO_PAD, VISION_END, VISION_START, build_tokenizer


@dataclass(frozen=True)
class TinyConfig:
    """Shape and initialisation of the tiny model.

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


def build_tiny(
    config: TinyConfig = TinyConfig(), seed: int = 0
) -> tuple[Qwen2VLForConditionalGeneration, PreTrainedTokenizerFast]:
    """Build the model and its tokenizer. The same seed gives the same weights; no global generator is read or moved."""
    tokenizer = build_tokenizer()
    ids: Any = tokenizer.convert_tokens_to_ids
    head = config.hidden_size // config.heads // 2  # mRoPE: the three sections must sum to half a head
    section = [head // 4, (head - head // 4) // 2, head - head // 4 - (head - head // 4) // 2]
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": section},
        "bos_token_id": None,
        "eos_token_id": ids(EOS),
        "pad_token_id": ids(PAD),
    }
    vision: dict[str, Any] = {
        "depth": config.vision_depth,
        "embed_dim": config.vision_width,
        "hidden_size": config.hidden_size,
        "num_heads": config.vision_heads,
        "mlp_ratio": 2,
    }
    hf_config = Qwen2VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids(IMAGE_PAD),
        video_token_id=ids(VIDEO_PAD),
        vision_start_token_id=ids(VISION_START),
        vision_end_token_id=ids(VISION_END),
        architectures=["Qwen2VLForConditionalGeneration"],
    )
    hf_config.vlgym_tiny = asdict(config)  # saved with the model; by it a saved tiny model is known again
    with torch.random.fork_rng(devices=[]):  # the library's own initialisation would move the global generator
        model = Qwen2VLForConditionalGeneration(hf_config)
    _initialise(model, config, seed)
    model.generation_config.eos_token_id = ids(EOS)
    model.generation_config.pad_token_id = ids(PAD)
    return model.eval(), tokenizer


@torch.no_grad()
def _initialise(model: nn.Module, config: TinyConfig, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter.fill_(1.0 if name.endswith("weight") else 0.0)  # norms are one, biases zero
            continue
        std = config.std
        if "embed_tokens" in name:
            std = config.embedding_std
        elif "patch_embed" in name:
            std = config.patch_std
        parameter.normal_(0.0, std, generator=generator)
