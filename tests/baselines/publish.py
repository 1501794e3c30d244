"""Tiny models as published ones are: with chat template and processor beside the weights.

The templates say in our own words what the families' published ones lay out. A system without torchvision cannot load
the library's Qwen processors, because they also read videos; `load_processor` then leaves the videos out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import AutoProcessor, AutoTokenizer, BaseImageProcessor

TURNS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SYSTEM = "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
GEMMA = (
    "{{ bos_token }}{% set told = messages[0].role == 'system' %}{% set turns = messages[1:] if told else messages %}"
    "{% for message in turns %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('User and assistant must take turns') }}{% endif %}<start_of_turn>"
    "{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{% if loop.first and told %}{{ messages[0].content[0].text }}\n\n{% endif %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<start_of_image>{% else %}{{ part.text | trim }}{% endif %}{% endfor %}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
TEMPLATES = {"qwen2_vl": SYSTEM + TURNS, "qwen2_5_vl": SYSTEM + TURNS, "qwen3_vl": TURNS, "gemma3": GEMMA}


def publish(source: Path, target: Path, model_type: str) -> Path:
    """Copy a saved tiny model and put a chat template and an image processor beside it.

    It is then known as any model of its family, not as our tiny default.
    """
    shutil.copytree(source, target)
    config = json.loads((target / "config.json").read_text())
    config.pop("vlgym_tiny", None)
    (target / "config.json").write_text(json.dumps(config))
    (target / "chat_template.jinja").write_text(TEMPLATES[model_type])
    _image_processor(model_type).save_pretrained(target)
    if model_type == "gemma3":
        tokenizer = AutoTokenizer.from_pretrained(
            target, boi_token="<start_of_image>", eoi_token="<end_of_image>", image_token="<image_soft_token>",
            extra_special_tokens={
                "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>",
            },
        )  # fmt: skip
        tokenizer.save_pretrained(target)
        (target / "processor_config.json").write_text(
            json.dumps({"processor_class": "Gemma3Processor", "image_seq_length": 4})
        )
    return target


def _image_processor(model_type: str) -> BaseImageProcessor:
    if model_type == "gemma3":
        from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

        return Gemma3ImageProcessorPil(size={"height": 56, "width": 56})
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    options: dict[str, Any] = {"patch_size": 14}
    if model_type == "qwen3_vl":
        half = [0.5] * 3
        size = {"shortest_edge": 256 * 256, "longest_edge": 16 * 1024 * 1024}
        options = {"patch_size": 16, "image_mean": half, "image_std": half, "size": size}
    return Qwen2VLImageProcessorPil(merge_size=2, temporal_patch_size=2, **options)


def load_processor(folder: Path) -> Any:
    """The library's processor of a saved model, without videos where that needs a package that is not here."""
    try:
        return AutoProcessor.from_pretrained(folder)
    except ImportError:
        return _without_videos(folder)


def _without_videos(folder: Path) -> Any:
    from transformers import AutoImageProcessor
    from transformers.models.qwen2_vl.processing_qwen2_vl import Qwen2VLProcessor
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor

    family = json.loads((folder / "config.json").read_text())["model_type"]
    base: Any = Qwen3VLProcessor if family == "qwen3_vl" else Qwen2VLProcessor  # Qwen2.5-VL uses that of Qwen2-VL

    class Processor(base):
        def __init__(self, image_processor=None, tokenizer=None, chat_template=None):
            super().__init__(image_processor, tokenizer, None, chat_template=chat_template)

    parts = AutoImageProcessor.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    return Processor(*parts, chat_template=(folder / "chat_template.jinja").read_text())


def build_foreign(folder: Path) -> Path:
    """Save a tiny LLaVA, a family that our engine does not know, with random weights."""
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    from baselines.models.tokenizer import build_tokenizer

    tokenizer = build_tokenizer()
    ids: Any = tokenizer.convert_tokens_to_ids
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14
    )
    text = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, bos_token_id=None, eos_token_id=ids("<|im_end|>"), pad_token_id=ids("<|endoftext|>"),
    )  # fmt: skip
    config = LlavaConfig(
        text_config=text, vision_config=vision, image_token_index=ids("<|image_pad|>"), vision_feature_layer=-1,
        vision_feature_select_strategy="default",
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlavaForConditionalGeneration(config)
    model.generation_config.eos_token_id = ids("<|im_end|>")
    model.save_pretrained(folder)
    images = CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    template = TURNS.replace("<|vision_start|><|image_pad|><|vision_end|>", "<|image_pad|>")
    LlavaProcessor(
        images, tokenizer, patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1,
        image_token="<|image_pad|>", chat_template=template,
    ).save_pretrained(folder)  # fmt: skip
    return folder
