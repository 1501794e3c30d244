"""List of model families, and loading of a model.

`tiny` is built offline by `tiny.py`, `smollm2` by `smollm.py` with pretrained language; both are
Qwen2-VL. Qwen2-VL, Qwen2.5-VL and Qwen3-VL have a fast path (`qwen.py`). Every other chat model for
images is a `LibraryFamily`, and a language model, which reads words alone, a `TextFamily`.
"""

import re
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from vlgym.errors import UserError, check_choice, check_finite, nearest
from vlgym.terminal import is_live, open_console

from .family import Family
from .folders import SETTINGS, check_whole, first_line, read_processor, read_settings
from .library import LibraryFamily, TextFamily, is_language_model, load_processor
from .lora import find_base, is_adapter, merge_adapter
from .qwen import Qwen3VL, QwenVL, TinyQwen2VL
from .smollm import NOTICE, SMOLLM2, find_smollm2
from .tiny import build_tiny

# Families with a fast path, by the model type of config.json.
FAMILIES: dict[str, type[QwenVL]] = {"qwen2_vl": QwenVL, "qwen2_5_vl": QwenVL, "qwen3_vl": Qwen3VL}
HINT = (
    "Choose tiny (built offline), smollm2 (of a pip package), a folder with a config.json, or the Hub name of a chat "
    "model."
)
BUILT = ("tiny", SMOLLM2)  # their sight is untrained, so learners begin with a warm start
DTYPES = ("float32", "bfloat16")
SAMPLE_REPLY = "<action>turn left</action>"  # any tokenizer gives it back
HUB_SECONDS = 10  # to wait for the Hub's first answer; the library waits half a minute


def load_family(
    model: str, *, image_tokens: int | None = None, seed: int = 0, dtype: str = "float32",
    device: str = "cpu", system: str | None = None, plain: bool = False,
) -> Family:  # fmt: skip
    """Build `tiny`, or load `smollm2`, or a model from a folder or from the Hugging Face Hub.

    Images are sized, and conversations laid out, as by the model's own processor and chat template.
    A model that is missing, damaged, or does not chat is a `UserError`.

    Args:
        model: `tiny`, `smollm2`, a folder, or a Hub name; adapters are merged into their model.
        image_tokens: most tokens per image; None: 16 for tiny, else what the processor allows.
        seed: initialisation of `tiny`.
        dtype: one of `DTYPES`.
        system: the system message; None: what the model's chat template has without one.
        plain: load it as a `LibraryFamily` though it has a fast path.
    """
    check_choice("--dtype", dtype, DTYPES)
    if not is_live(open_console(stderr=True)):
        disable_progress_bar()  # transformers would draw bars into pipes and log files, too

    # Adapters name the model that they belong to.
    whole, adapted = model, is_adapter(model)
    if adapted:
        check_whole(Path(model))
        whole = find_base(model)

    options: dict[str, Any] = {"image_tokens": image_tokens, "system": system}
    if whole == "tiny":
        weights, words = build_tiny(seed=seed)
        for parameter in weights.parameters():  # rotation frequencies stay float32
            parameter.data = parameter.data.to(getattr(torch, dtype))
        family: Family = TinyQwen2VL(weights, words, **options)
    else:
        if whole == SMOLLM2:
            open_console(stderr=True).print(NOTICE)
            whole = str(find_smollm2())
        else:
            check_whole(Path(whole))
        family = _load(whole, dtype, plain, options)
    family.model.to(device)
    if adapted:
        merge_adapter(family, model)
    return family


def _load(model: str, dtype: str, plain: bool, options: dict[str, Any]) -> Family:
    """A model from a folder or the Hub, on the CPU; `options` are of its family."""
    from transformers import AutoTokenizer

    # A fast path needs the tokenizer alone; other models for images need the library's processor.
    config, source = find_model(model)
    words_alone = is_language_model(config)
    reader: Any = None
    if not words_alone and (plain or config.model_type not in FAMILIES):
        reader = load_processor(model, source, config, HINT)
    weights = load_weights(model, source, dtype, words_alone).eval()
    try:
        tokenizer: Any = reader.tokenizer if reader else AutoTokenizer.from_pretrained(model, **source)
    except Exception as error:
        raise UserError(f"--model {model}: the model cannot be loaded ({first_line(error)}). {HINT}") from None
    processor = read_processor(model, source, tokenizer, ours=reader is None and not words_alone)
    tokenizer.chat_template = processor.template  # exports bring it along

    family: Family
    if words_alone:
        family = TextFamily(weights, tokenizer, processor=processor, **options)
    elif reader:
        family = LibraryFamily(weights, reader, processor=processor, **options)
    else:
        kind = TinyQwen2VL if getattr(config, "vlgym_tiny", None) else FAMILIES[config.model_type]
        family = kind(weights, tokenizer, processor=processor, **options)

    # Where a tokenizer's files are missing, the library makes one up.
    if family.decode(family.encode_text(SAMPLE_REPLY)) != SAMPLE_REPLY:
        raise UserError(
            f"--model {model}: its tokenizer is missing, or that of another model. Save or download the model again."
        )
    return family


def find_model(model: str) -> tuple[Any, dict[str, Any]]:
    """Return a model's configuration, and the arguments with which the library loads its parts."""
    from transformers import AutoConfig

    source = {"local_files_only": _stay_offline(model), "trust_remote_code": False}
    for name in SETTINGS:
        read_settings(model, source, name)
    try:
        config = AutoConfig.from_pretrained(model, **source)
    except Exception as error:  # whatever a library raises on a file that is not its own
        raise UserError(
            f"--model {model}: no such model ({first_line(error)}).{nearest(model, ['tiny'])} {HINT}"
        ) from None
    if quantized := getattr(config, "quantization_config", None):
        raise UserError(
            f"--model {model}: its weights are quantized ({quantized.get('quant_method', 'unknown method')}), and the "
            "learner reads 16 and 32 bits alone. Name the model that it was made from; adapters keep memory small "
            "(--preset 24gb)."
        )
    return config, source


def load_weights(model: str, source: dict[str, Any], dtype: str, words_alone: bool) -> Any:
    """Load the library's model on the CPU; a `UserError` where weights are damaged or missing."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    kind: Any = AutoModelForCausalLM if words_alone else AutoModelForImageTextToText
    options = {"output_loading_info": True, "use_safetensors": True, "ignore_mismatched_sizes": True}
    try:
        loaded, report = kind.from_pretrained(model, dtype=getattr(torch, dtype), **options, **source)
    except Exception as error:
        raise UserError(f"--model {model}: the model cannot be loaded ({first_line(error)}). {HINT}") from None

    # The library fills missing weights with random numbers.
    wrong = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if wrong:
        raise UserError(
            f"--model {model}: its weights are incomplete, or of another model than its config.json: {wrong[0]}"
            f"{f' and {len(wrong) - 1} more' if len(wrong) > 1 else ''}. Save or download the model again."
        )
    check_finite(f"--model {model}", dict(loaded.named_parameters()))
    return loaded


def _stay_offline(model: str) -> bool:
    """True if the Hub is not needed, or does not answer while the model is in its cache."""
    if Path(model).exists():
        if not (Path(model) / "config.json").is_file():
            raise UserError(f"--model {model}: that folder holds no config.json, so it is not a saved model. {HINT}")
        return True
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", model):
        raise UserError(
            f"--model {model}: no such model. There is no such folder, and a Hub name looks like OWNER/NAME."
            f"{nearest(model, ['tiny'])} {HINT}"
        )

    # The library would repeat its requests to a Hub that does not answer.
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.utils import get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
    except Exception as error:  # offline mode, no network, a proxy that refuses
        if not isinstance(try_to_load_from_cache(model, "config.json"), str):
            raise UserError(
                f"--model {model}: no such model on this machine, and the Hub cannot be reached ({first_line(error)}). "
                f"{HINT}"
            ) from None
        return True
    return False
