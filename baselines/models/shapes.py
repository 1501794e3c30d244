"""A model's shapes without its weights: the family on torch's meta device, for what is to be known before any weight is
loaded.

It needs a config.json, no more. Whatever is computed with it has a shape and a type, and no values.
"""

from __future__ import annotations

from typing import Any

import torch

from vlgym.errors import UserError

from .family import Family
from .load import FAMILIES, find_model, first_line, list_families
from .qwen import TinyQwen2VL
from .tiny import SMALLEST, build_tiny

META = torch.device("meta")


def shape_family(model: str, *, image_tokens: int | None = None, dtype: str = "float32") -> tuple[Family, bool]:
    """Build a model of a supported family on the meta device.

    Args:
        model: `tiny`, a folder with a config.json, or a Hub name.
        image_tokens: most tokens per image; None: the family's default.
        dtype: `float32` or `bfloat16`.

    Returns:
        (the family; whether the tokenizer is the model's own: without its files the tiny models' stands in for it,
        which writes prompts in somewhat more tokens).

    Raises:
        UserError: no such model, or a family that is not supported.
    """
    kind = getattr(torch, dtype)
    if model == "tiny":
        net: Any
        net, words = build_tiny()
        return TinyQwen2VL(net.to(META, kind), words, image_tokens=image_tokens), True
    hint = f"Choose tiny (built offline), a folder with a config.json, or the Hub name of a {list_families()} model."
    config, source = find_model(model, hint)
    if config.model_type not in FAMILIES:
        raise UserError(f"--model {model} is of the family {config.model_type!r}; supported: {list_families()}. {hint}")
    from transformers import AutoModelForImageTextToText

    try:
        with META:
            net = AutoModelForImageTextToText.from_config(config, dtype=kind).eval()
    except Exception as error:  # whatever a library raises on a configuration that is not its own
        raise UserError(f"--model {model}: its config.json makes no model ({first_line(error)}). {hint}") from None
    chosen: Any = TinyQwen2VL if getattr(config, "vlgym_tiny", None) else FAMILIES[config.model_type][1]
    own = _own_tokenizer(model, source)
    if own is not None:
        try:
            return chosen(net, own, image_tokens=image_tokens), True
        except UserError:
            pass  # files of another model, or none: the library makes a tokenizer up
    standing_in: Any = build_tiny(SMALLEST, family=config.model_type)[1]
    return chosen(net, standing_in, image_tokens=image_tokens), False


def _own_tokenizer(model: str, source: dict[str, Any]) -> Any:
    """The model's tokenizer; None where its files are missing."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(model, **source)
    except Exception:  # whatever a library raises on missing files
        return None
