"""Which model families there are, and how a model is loaded.

Supported: `tiny` (built offline by `tiny.py`, a Qwen2-VL) and any Hugging Face name or folder of a Qwen2-VL,
Qwen2.5-VL, Qwen3-VL or Gemma3 model. What they share is in `family.py`; what differs is one class each in `qwen.py` and
`gemma.py`. A further family is one more class, plus its decoder if its layers differ, and one entry in `FAMILIES`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from vlgym.errors import UserError, nearest
from vlgym.terminal import is_live, open_console

from .family import Family
from .gemma import Gemma3
from .qwen import Qwen3VL, QwenVL, TinyQwen2VL
from .tiny import build_tiny

# By the model type of config.json: name and class.
FAMILIES: dict[str, tuple[str, type[QwenVL] | type[Gemma3]]] = {
    "qwen2_vl": ("Qwen2-VL", QwenVL),
    "qwen2_5_vl": ("Qwen2.5-VL", QwenVL),
    "qwen3_vl": ("Qwen3-VL", Qwen3VL),
    "gemma3": ("Gemma3", Gemma3),
}


def load_family(
    model: str, *, image_tokens: int | None = None, seed: int = 0, dtype: str = "float32", device: str = "cpu"
) -> Family:
    """Build `tiny`, or load a model of a supported family from a folder or from the Hugging Face Hub.

    Args:
        model: `tiny`, a folder, or a Hub name.
        image_tokens: most tokens per image; None: 16 for tiny, 256 for published models.
        seed: initialisation of `tiny`.
        dtype: `float32` or `bfloat16`.
        device: a torch device.

    Raises:
        UserError: no such model, a family that is not supported, or an unknown dtype.
    """
    if not is_live(open_console(stderr=True)):
        disable_progress_bar()  # transformers would draw bars into pipes and log files, too
    if dtype not in ("float32", "bfloat16"):
        raise UserError(f"dtype {dtype!r} is not supported; choose float32 or bfloat16.")
    if model == "tiny":
        net: Any
        net, words = build_tiny(seed=seed)
        for parameter in net.parameters():  # the parameters alone: rotation frequencies stay float32
            parameter.data = parameter.data.to(getattr(torch, dtype))
        return TinyQwen2VL(net.to(device), words, image_tokens=image_tokens)
    from transformers import AutoConfig, AutoModelForImageTextToText, AutoTokenizer

    names = [name for name, _ in FAMILIES.values()]
    listed = f"{', '.join(names[:-1])} or {names[-1]}"
    hint = f"Choose tiny (built offline), a folder with a config.json, or the Hub name of a {listed} model."
    if Path(model).exists() and not (Path(model) / "config.json").is_file():
        raise UserError(f"--model {model}: that folder holds no config.json, so it is not a saved model. {hint}")
    try:
        config = AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        raise UserError(f"--model {model}: no such model ({first}).{nearest(model, ['tiny'])} {hint}") from None
    if config.model_type not in FAMILIES:
        raise UserError(f"--model {model} is of the family {config.model_type!r}; supported: {listed}. {hint}")
    try:
        loaded: Any = AutoModelForImageTextToText.from_pretrained(model, dtype=getattr(torch, dtype))
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise UserError(
            f"--model {model}: the model cannot be loaded ({str(error).strip().splitlines()[0]}). {hint}"
        ) from None
    tiny = getattr(config, "vlgym_tiny", None)
    chosen = TinyQwen2VL if tiny else FAMILIES[config.model_type][1]
    family = chosen(loaded.to(device).eval(), tokenizer, image_tokens=image_tokens)
    _read_normalisation(family, model)
    return family


def _read_normalisation(family: Family, model: str) -> None:
    """Take mean and standard deviation of pixels from the model's own image processor, where one is saved with it."""
    from transformers.image_processing_base import ImageProcessingMixin

    try:
        saved, _ = ImageProcessingMixin.get_image_processor_dict(model)
    except (OSError, ValueError):
        return
    family.mean, family.std = saved.get("image_mean", family.mean), saved.get("image_std", family.std)
