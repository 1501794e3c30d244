"""Adapters on the language model: LoRA layers in place, the model without them, and their exports.

The adapters (Hu et al., 2021, arXiv 2106.09685) are layers of `peft`, put into the model in place.
In bfloat16 their first steps are smaller than half a step of the base's product, and a sum that is
rounded loses them. So `Summed` adds in float32, and the model samples with base and adapters apart
(docs/log.md). `peft.PeftModel.from_pretrained(base, folder)` reads the folders written here, and
`--model` takes those that PEFT wrote.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, inject_adapter_in_model
from peft.tuners.lora import Linear as LoraLinear
from peft.tuners.lora import LoraLayer
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from vlgym.errors import UserError, check_finite, check_number
from vlgym.files import CHECKSUMS, write_whole, written_whole

from .family import Family, Float32Product
from .folders import CARD_FILE, EVALUATION, FILE, check_replaceable, first_line, write_notes

NAME = "default"  # peft can hold several adapters by name; here there is one
ALONG = ("tokenizer*", "special_tokens_map.json", "chat_template.jinja", FILE, CHECKSUMS)
MODEL_FILES = (  # of a saved model, which an export replaces
    *ALONG, "config.json", "generation_config.json", "model*.safetensors",
    "model.safetensors.index.json", "added_tokens.json", "vocab.json", "merges.txt",
    "*processor_config.json", EVALUATION, CARD_FILE,
)  # fmt: skip
CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
ADAPTER_FILES = (*ALONG, CONFIG, ADAPTER_WEIGHTS, CARD_FILE)
TARGETS = r"layers\.\d+\.(self_attn|mlp)\.\w+_proj"  # all linear layers of the language model


@dataclass(frozen=True)
class LoraOptions:
    """LoRA adapters on all linear layers of the language model, or full fine-tuning.

    There is no dropout: probabilities at sampling and at scoring would differ.
    """

    rank: int | None = None
    """Rank of the adapters; 0 trains all weights of the language model instead.

    Default 16 for published models on CUDA (the paper's code has 16), otherwise 0.
    """
    alpha: float | None = None
    """The adapters' product is scaled by alpha / rank; default twice the rank."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        check_number("--lora.rank", self.rank or 0, 0, hint="0 trains all weights.")
        if self.alpha is not None:
            if not self.rank:
                raise UserError(f"--lora.alpha {self.alpha} means nothing without adapters; add, say, --lora.rank 32.")
            check_number("--lora.alpha", self.alpha, above=0, hint="Leave it out for twice the rank.")


class Factor(nn.Linear):
    """One of an adapter's matrices: float32, and applied in the precision of its input."""

    def __init__(self, inputs: int, outputs: int, device: torch.device) -> None:
        super().__init__(inputs, outputs, bias=False, device="meta")  # moves no global generator
        self.weight = nn.Parameter(torch.zeros(outputs, inputs, device=device))
        self._copy, self._version = torch.empty(0), -1

    def forward(self, x: Tensor) -> Tensor:
        """[..., inputs] of any float type -> [..., outputs] of the same type."""
        return F.linear(x, self.cast(x.dtype))

    def cast(self, dtype: torch.dtype) -> Tensor:
        """The weight in that type. Without gradients a copy stays in one place until the weight
        changes: decoding casts no factor at every token, and a CUDA graph finds it."""
        if torch.is_grad_enabled() or dtype == self.weight.dtype:
            return self.weight.to(dtype)
        if self._copy.dtype != dtype or self._copy.device != self.weight.device:
            self._copy, self._version = torch.empty_like(self.weight, dtype=dtype), -1
        if self._version != self.weight._version:
            self._copy.copy_(self.weight)
            self._version = self.weight._version
        return self._copy


class Summed(LoraLinear):
    """An adapted layer of a 16-bit model: base and adapter are added in float32."""

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """[..., inputs] -> [..., outputs] of the same type."""
        base: Any = self.base_layer
        factors: list[Any] = [self.lora_A[NAME], self.lora_B[NAME]]
        flat, (down, up) = x.flatten(0, -2), (factor.cast(x.dtype) for factor in factors)
        total = Float32Product.apply(flat, base.weight)
        if base.bias is not None:
            total = total + base.bias
        added = Float32Product.apply(F.linear(flat, down), up)
        total = torch.add(total, added, alpha=self.scaling[NAME])
        return total.to(x.dtype).unflatten(0, x.shape[:-1])


# ---- adapters ----------------------------------------------------------------------------------


def add_adapters(family: Family, options: LoraOptions, *, seed: int) -> None:
    """Freeze the model, and put an adapter around each linear layer of its language model.

    The second factors begin at 0, the first, drawn by `seed`, uniform in +-1 / sqrt(inputs). An
    `Engine` made earlier does not watch the adapters. Rank 0 is a `UserError`.
    """
    options.validate()
    if not options.rank:
        raise UserError("--lora.rank 0 trains all weights, without adapters; for adapters give, say, --lora.rank 32.")

    # On the meta device peft initialises nothing, and so moves no global generator. The layers do
    # not need `peft_config`, and copies without adapters must not have it.
    family.model.requires_grad_(False)
    alpha: Any = 2 * options.rank if options.alpha is None else options.alpha
    config = LoraConfig(r=options.rank, lora_alpha=alpha, target_modules=TARGETS, lora_dropout=0.0)
    inject_adapter_in_model(config, family.language_model, NAME, low_cpu_mem_usage=True)
    del family.language_model.peft_config

    # Our factors in the place of peft's.
    generator = torch.Generator().manual_seed(seed)
    for _, layer in adapted_layers(family):
        layer.cast_input_dtype_enabled = False  # see Factor
        if layer.base_layer.weight.dtype != torch.float32:
            layer.__class__ = Summed
        down = Factor(layer.in_features, options.rank, family.device)
        up = Factor(options.rank, layer.out_features, family.device)
        bound = layer.in_features**-0.5
        with torch.no_grad():
            initial = torch.empty(down.weight.shape)  # on the CPU: the same for every device
            down.weight.copy_(initial.uniform_(-bound, bound, generator=generator))
        layer.lora_A[NAME], layer.lora_B[NAME] = down, up


def adapted_layers(family: Family) -> Iterator[tuple[str, Any]]:
    """(path in the language model, layer) of all adapted layers, in the model's order."""
    for path, module in family.language_model.named_modules():
        if isinstance(module, LoraLayer):
            yield path, module


def adapters(family: Family) -> nn.ModuleDict:
    """All factors by name, such as `layers/0/self_attn/q_proj/A`, float32."""
    factors = {}
    for path, layer in adapted_layers(family):
        key = path.replace(".", "/")
        factors[f"{key}/A"], factors[f"{key}/B"] = layer.lora_A[NAME], layer.lora_B[NAME]
    return nn.ModuleDict(factors)


# ---- the same model without adapters -----------------------------------------------------------


def reference(family: Family) -> Family:
    """The model without its adapters, over the same base weights. Give it a separate engine."""
    return _rebuilt(family, {id(layer): layer.base_layer for _, layer in adapted_layers(family)})


@torch.no_grad()
def merged_copy(family: Family) -> Family:
    """The model with plain linear layers: base + scale * B A, added in float32."""

    def plain(layer: Any) -> nn.Linear:
        bias = layer.base_layer.bias
        linear: nn.Linear = copy.deepcopy(layer.base_layer, {id(bias): bias})
        up, down = layer.lora_B[NAME].weight, layer.lora_A[NAME].weight
        linear.weight.copy_(torch.addmm(linear.weight.float(), up, down, alpha=layer.scaling[NAME]))
        return linear

    return _rebuilt(family, {id(layer): plain(layer) for _, layer in adapted_layers(family)})


def _rebuilt(family: Family, exchanged: Mapping[int, nn.Module]) -> Family:
    """A second tree of modules over the same tensors, with other layers by `id`."""
    tensors = (*family.model.parameters(), *family.model.buffers())
    return family.twin({id(tensor): tensor for tensor in tensors} | dict(exchanged))


# ---- checkpoints -------------------------------------------------------------------------------


def export_merged(family: Family, folder: Path, notes: Mapping[str, Any] | None = None) -> Path:
    """Write the model, adapters merged, for `--model` and for transformers' `from_pretrained`, whole
    or not at all, over an older model. `notes` are further files, name -> JSON data."""
    check_export(folder)
    with written_whole(folder, without=(EVALUATION,)) as part:
        merged_copy(family).model.save_pretrained(part)
        family.tokenizer.save_pretrained(part)
        write_notes(part, {**family.processor_files(), **(notes or {})})
        if card := getattr(family.model.config, "vlgym_card", None):
            write_whole(part / CARD_FILE, str(card))
    return folder


def check_export(folder: Path) -> None:
    """Raise `UserError` unless a folder is new, empty, or an older model's."""
    check_replaceable(folder, "--export", MODEL_FILES, "config.json", "model")


# ---- folders as PEFT keeps them ----------------------------------------------------------------


def is_tiny(model: str) -> bool:
    """Return whether a model is `tiny`, or a saved one, adapters of it included."""
    model = find_base(model) if model != "tiny" and is_adapter(model) else model
    try:
        file = Path(model) / "config.json"
        return model == "tiny" or "vlgym_tiny" in json.loads(file.read_bytes())
    except (OSError, ValueError, TypeError):  # loading the model says what is wrong
        return False


def export_adapter(family: Family, folder: Path, base: str, notes: Mapping[str, Any] | None = None) -> Path:
    """Write the adapters of a model, whole or not at all, over older ones; `notes` as in
    `export_merged`. `base` is the Hub name or folder of the model without them."""
    check_adapter(folder)

    # The tensors have the names that PEFT gives them in the whole model.
    layers, modules = dict(adapted_layers(family)), family.model.named_modules()
    inside = next(name for name, module in modules if module is family.language_model)
    tensors: dict[str, torch.Tensor] = {}
    for path, layer in layers.items():
        for side in ("lora_A", "lora_B"):
            weight = getattr(layer, side)[NAME].weight.detach().cpu().contiguous()
            tensors[f"base_model.model.{inside}.{path}.{side}.weight"] = weight

    first = next(iter(layers.values()))
    rank, alpha = first.r[NAME], first.lora_alpha[NAME]
    config = LoraConfig(
        r=rank, lora_alpha=int(alpha) if alpha == int(alpha) else alpha, lora_dropout=0.0,
        target_modules=rf"{re.escape(inside)}\.{TARGETS}", bias="none", task_type="CAUSAL_LM",
        base_model_name_or_path=base, inference_mode=True,
    )  # fmt: skip
    with written_whole(folder, without=(EVALUATION,)) as part:
        config.save_pretrained(str(part))
        save_file(tensors, part / ADAPTER_WEIGHTS, metadata={"format": "pt"})
        write_notes(part, notes or {})
    return folder


def check_adapter(folder: Path) -> None:
    """Raise `UserError` unless a folder is new, empty, or older adapters'."""
    check_replaceable(folder, "--export-adapter", ADAPTER_FILES, CONFIG, "adapter")


def is_adapter(model: str) -> bool:
    """True if `--model` names a folder of adapters without their model."""
    return (Path(model) / CONFIG).is_file() and not (Path(model) / "config.json").is_file()


def find_base(model: str) -> str:
    """Return the Hub name or folder of the model to which a folder of adapters belongs."""
    # PEFT imports modules that other types name.
    try:
        config = json.loads((Path(model) / CONFIG).read_text())
        base = config["base_model_name_or_path"]
        if config.get("peft_type") != "LORA" or config.get("megatron_config"):
            raise ValueError("only plain LoRA is read")
        if not isinstance(base, str) or not base:
            raise ValueError("it names no model")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"--model {model}: its {CONFIG} cannot be read ({error}). Save the adapters again with "
            "base_model_name_or_path, or name a whole model."
        ) from None

    # PEFT would unpickle other formats.
    if not (Path(model) / ADAPTER_WEIGHTS).is_file():
        raise UserError(f"--model {model}: {ADAPTER_WEIGHTS} is missing. Save the adapters again, as safetensors.")

    # A folder that was moved together with the adapters stands next to them.
    neighbour = Path(model).resolve().parent / Path(base).name
    if not Path(base).exists() and (neighbour / "config.json").is_file():
        base = str(neighbour)
    if is_adapter(base):
        raise UserError(f"--model {model}: it names {base}, which holds adapters, too. Name a whole model in {CONFIG}.")
    return base


def merge_adapter(family: Family, model: str) -> None:
    """Add a folder's adapters to a model's weights, in place; a `UserError` where they do not fit."""
    try:
        check_finite(ADAPTER_WEIGHTS, load_file(Path(model) / ADAPTER_WEIGHTS))
        with torch.no_grad():
            adapted: Any = PeftModel.from_pretrained(family.model, model, low_cpu_mem_usage=True)
            merged = adapted.merge_and_unload(safe_merge=True)
    except Exception as error:  # whatever a library raises on a file that is not its own
        raise UserError(
            f"--model {model}: the adapters cannot be loaded ({first_line(error)}). They belong to {find_base(model)}; "
            "save them again, or name a whole model."
        ) from None
    family.adopt(merged)
