"""Tiny models as published ones are: with chat template and processor next to the weights.

The templates say in our own words what the families' published ones lay out.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from transformers import BaseImageProcessor

TURNS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SYSTEM = "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
TEMPLATES = {"qwen2_vl": SYSTEM + TURNS, "qwen2_5_vl": SYSTEM + TURNS, "qwen3_vl": TURNS}


def publish(source: Path, target: Path, model_type: str) -> Path:
    """Copy a saved tiny model and add a chat template and an image processor.
    It is then known as any model of its family, not as our tiny default."""
    shutil.copytree(source, target)
    config = json.loads((target / "config.json").read_text())
    config.pop("vlgym_tiny", None)
    (target / "config.json").write_text(json.dumps(config))
    (target / "chat_template.jinja").write_text(TEMPLATES[model_type])
    _image_processor(model_type).save_pretrained(target)
    return target


def _image_processor(model_type: str) -> BaseImageProcessor:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    options: dict[str, Any] = {"patch_size": 14}
    if model_type == "qwen3_vl":
        half = [0.5] * 3
        size = {"shortest_edge": 256 * 256, "longest_edge": 16 * 1024 * 1024}
        options = {"patch_size": 16, "image_mean": half, "image_std": half, "size": size}
    return Qwen2VLImageProcessorPil(merge_size=2, temporal_patch_size=2, **options)
