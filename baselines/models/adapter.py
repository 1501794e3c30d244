"""Adapters as PEFT keeps them: a folder with adapter_config.json and adapter_model.safetensors.

`peft.PeftModel.from_pretrained(base, folder)` reads what is written here, and what PEFT wrote elsewhere is read here:
`--model` takes such a folder. It holds the adapters alone; the model that they belong to is named in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel
from safetensors.torch import load_file, save_file

from vlgym.errors import UserError, check_finite
from vlgym.files import CHECKSUMS, written_whole

from . import lora
from .family import Family
from .folders import EVALUATION, FILE, check_replaceable, write_notes
from .processor import first_line

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
ADAPTER_FILES = (
    CONFIG,
    WEIGHTS,
    FILE,
    CHECKSUMS,
    "README.md",
    "tokenizer*",
    "special_tokens_map.json",
    "chat_template.jinja",
)
"""Files of an adapter's folder, ours or another program's; an older one is replaced, nothing else is."""


def is_tiny(model: str) -> bool:
    """Return whether a model is `tiny`, or a saved one, adapters of it included; any other is a published one."""
    model = find_base(model) if model != "tiny" and is_adapter(model) else model
    try:
        return model == "tiny" or "vlgym_tiny" in json.loads((Path(model) / "config.json").read_bytes())
    except (OSError, ValueError, TypeError):  # whoever loads the model says what is wrong
        return False


def export_adapter(family: Family, folder: Path, base: str, notes: Mapping[str, Any] | None = None) -> Path:
    """Write the adapters of a model; whole or not at all, in place of older ones.

    `base` is the Hub name or folder of the model without them; `notes` are files that go along, name -> JSON data. A
    folder that holds something else is a `UserError`.
    """
    check_adapter(folder)
    layers = dict(lora.adapted_layers(family))
    first = next(iter(layers.values()))
    inside = next(name for name, module in family.model.named_modules() if module is family.language_model)
    tensors: dict[str, torch.Tensor] = {}
    for path, layer in layers.items():
        for side in ("lora_A", "lora_B"):
            weight = getattr(layer, side)[lora.NAME].weight
            tensors[f"base_model.model.{inside}.{path}.{side}.weight"] = weight.detach().cpu().contiguous()
    rank, alpha = first.r[lora.NAME], first.lora_alpha[lora.NAME]
    config = LoraConfig(
        r=rank, lora_alpha=int(alpha) if alpha == int(alpha) else alpha, lora_dropout=0.0, bias="none",
        target_modules=rf"{re.escape(inside)}\.{lora.TARGETS}",
        task_type="CAUSAL_LM", base_model_name_or_path=base, inference_mode=True,
    )  # fmt: skip
    with written_whole(folder, without=(EVALUATION,)) as part:
        config.save_pretrained(str(part))
        save_file(tensors, part / WEIGHTS, metadata={"format": "pt"})
        write_notes(part, notes or {})
    return folder


def check_adapter(folder: Path, name: str = "--export-adapter") -> None:
    """Raise `UserError` unless adapters can be written to a folder: new, empty, or older adapters'."""
    check_replaceable(folder, name, ADAPTER_FILES, CONFIG, "adapter")


def is_adapter(model: str) -> bool:
    """True if `--model` names a folder of adapters without their model."""
    return (Path(model) / CONFIG).is_file() and not (Path(model) / "config.json").is_file()


def find_base(model: str) -> str:
    """The model that a folder of adapters belongs to: a Hub name, or a folder.

    A folder that was moved is looked for next to the adapters, under the same name.

    Raises:
        UserError: the folder does not say, or its weights are no safetensors.
    """
    path = Path(model) / CONFIG
    try:
        config = json.loads(path.read_text())
        base = config["base_model_name_or_path"]
        if config.get("peft_type") != "LORA" or config.get("megatron_config"):  # PEFT imports what others name
            raise ValueError("only plain LoRA is read")
        if not isinstance(base, str) or not base:
            raise ValueError("it names no model")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"--model {model}: its {CONFIG} cannot be read ({error}). Save the adapters again with "
            "base_model_name_or_path, or name a whole model."
        ) from None
    if not (Path(model) / WEIGHTS).is_file():  # PEFT would unpickle other formats
        raise UserError(f"--model {model}: {WEIGHTS} is missing. Save the adapters again, as safetensors.")
    beside = Path(model).resolve().parent / Path(base).name
    found = str(beside) if not Path(base).exists() and (beside / "config.json").is_file() else base
    if is_adapter(found):
        raise UserError(
            f"--model {model}: it names {found}, which holds adapters, too. Name a whole model in {CONFIG}."
        )
    return found


def merge_adapter(family: Family, model: str) -> None:
    """Add the adapters of a folder to a model's weights, in place.

    Raises:
        UserError: they cannot be loaded, or belong to another model.
    """
    try:
        check_finite(WEIGHTS, load_file(Path(model) / WEIGHTS))
        with torch.no_grad():
            adapted: Any = PeftModel.from_pretrained(family.model, model, low_cpu_mem_usage=True)
            merged = adapted.merge_and_unload(safe_merge=True)
    except Exception as error:  # whatever a library raises on a file that is not its own
        raise UserError(
            f"--model {model}: the adapters cannot be loaded ({first_line(error)}). They belong to {find_base(model)}; "
            "save them again, or name a whole model."
        ) from None
    family.adopt(merged)
