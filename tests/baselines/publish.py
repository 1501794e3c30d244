"""Tiny models as published ones are: with chat template and processor next to the weights.

The templates say in our own words what the families' published ones lay out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BaseImageProcessor

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
    """Copy a saved tiny model and add a chat template and an image processor.

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
