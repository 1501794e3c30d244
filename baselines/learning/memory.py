"""How much memory a run takes, computed before it begins: weights, optimizer, keys and values, activations, in bytes.

Weights are counted one by one on the meta device, activations by a dry run there (`engine/dry_run.py`), caches from
their shapes. What libraries take for themselves is not counted: a tenth of the device is left to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ..engine.dry_run import update_bytes
from ..engine.engine import Engine
from ..engine.graphed import BLOCK, SMALLEST
from ..engine.prefill import CACHED_IMAGES, CACHED_PROMPTS, PREFILL_TOKENS
from ..engine.scorer import LOGIT_CHUNK
from ..models import lora
from ..models.family import Family, Prompt
from .config import RunConfig

GIB = 2**30
SHARE = 0.9  # of a device that is planned with
_VISION = "activations of the vision tower (estimate)"
PACKED = 0.516  # bytes of a weight in 4 bits, with its share of the quantised constants
Phase = Literal["always", "rollout", "update"]


@dataclass(frozen=True)
class Item:
    """Something that takes memory.

    Attributes:
        name: in words; size: bytes; phase: when it is there.
        there: whether it is allocated before the first rollout.
    """

    name: str
    size: int
    phase: Phase = "always"
    there: bool = False


@dataclass(frozen=True)
class MemoryPlan:
    """What takes how much memory in a run.

    Attributes:
        items: in the order of the table.
        device_bytes: of the device; None where that is not known.
        rows: environment steps of a forward and backward pass; prompt, reply: tokens of each, at most.
    """

    items: tuple[Item, ...]
    device_bytes: int | None
    rows: int
    prompt: int
    reply: int

    def total(self, phase: Phase) -> int:
        """Bytes in a phase, with what is always there."""
        return sum(item.size for item in self.items if item.phase in ("always", phase))

    @property
    def peak(self) -> int:
        """Most bytes at once."""
        return max(self.total("rollout"), self.total("update"))

    @property
    def fits(self) -> bool:
        """Whether all of it fits into the share of the device that is planned with."""
        return self.device_bytes is None or self.peak <= SHARE * self.device_bytes


def gib(size: float) -> str:
    """Bytes in GiB, two digits after the point below ten."""
    return f"{size / GIB:.2f}" if size < 10 * GIB else f"{size / GIB:.1f}"


def device_bytes(device: str) -> int:
    """Memory of a CUDA device, or of this machine."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(torch.device(device))[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def prepare(family: Family, config: RunConfig) -> Engine:
    """Put a family on the meta device into the state in which the run trains it; return its engine."""
    for parameter in family.vision_parameters():
        parameter.requires_grad_(config.train_vision)
    if config.lora.rank:
        lora.add_adapters(family, config.lora, seed=0)
    if config.recompute:
        family.recompute_activations()
    return Engine(family, max_new_tokens=1)


def rows_of_pass(config: RunConfig, length: int) -> int:
    """Environment steps of the largest forward pass, if every row has so many tokens."""
    if config.micro_tokens is None:
        return min(config.micro_batch, config.minibatch)
    return min(max(1, config.micro_tokens // length), config.minibatch)


def plan_memory(
    config: RunConfig, engine: Engine, prompt: Prompt, *, new_tokens: int, device: int | None = None
) -> MemoryPlan:
    """Compute what a run takes.

    Args:
        config: resolved.
        engine: of the family on the meta device, as `prepare` made it.
        prompt: the longest one.
        new_tokens: longest reply.
        device: bytes of the device.
    """
    family, rows = engine.family, rows_of_pass(config, len(prompt) + new_tokens)
    items = standing_items(family, config, prompt, new_tokens)
    items += _passes(engine, config, prompt, new_tokens, rows)
    return MemoryPlan(tuple(item for item in items if item.size), device, rows, len(prompt), new_tokens)


def standing_items(family: Family, config: RunConfig, prompt: Prompt, new_tokens: int) -> list[Item]:
    """What a run takes beside the passes of its updates.

    Args:
        family: with its adapters, on the meta device or on any other.
        config: resolved.
        prompt: the longest one.
        new_tokens: longest reply.
    """
    return [*_weights(family, config), *_caches(family, config, prompt, new_tokens)]


def largest_rows(plan: MemoryPlan, engine: Engine, config: RunConfig) -> int:
    """Environment steps of the largest pass that fits the device, at most those of the plan; 0 where not one does."""
    vision = sum(item.size for item in plan.items if item.name == _VISION) // plan.rows
    one, two = (_activations(engine, config, plan.prompt, plan.reply, rows) + rows * vision for rows in (1, 2))
    always = sum(item.size for item in plan.items if item.phase == "always")
    room = SHARE * (plan.device_bytes or 0) - always - one
    return min(plan.rows, 1 + int(room // (two - one))) if room >= 0 else 0


def _weights(family: Family, config: RunConfig) -> list[Item]:
    """The model, its copies, and what its optimizer keeps."""
    model, rank = family.model, config.lora.rank
    vision = {id(p) for p in family.vision_parameters()}
    trained = [p for p in model.parameters() if p.requires_grad]
    adapters = {id(p) for p in trained} if rank else set()
    frozen = [p for p in model.parameters() if id(p) not in adapters]
    text = [p for p in frozen if id(p) not in vision]
    tower = [p for p in frozen if id(p) in vision]
    kind, linear = config.dtype, [layer.base_layer.weight for _, layer in lora.adapted_layers(family)]
    size, packed = _bytes(text), ""
    if config.quantize != "none":
        size += int(PACKED * sum(x.numel() for x in linear)) - _bytes(linear)
        packed = f", {_count(linear)} of them in 4 bits"
    items = [
        Item(f"language model, {_count(text)} in {kind}{packed}", size, there=True),
        Item(f"vision tower, {_count(tower)} in {kind}", _bytes(tower), there=True),
    ]
    reference = config.kl_coef > 0 or config.keeps_reference
    if rank:
        if config.lora.merge != "none":
            each = 4 if config.lora.merge == "float32" else linear[0].element_size()
            merged = each * sum(x.numel() for x in linear)
            items.append(Item("copy with adapters merged, for sampling", merged, there=True))
        items.append(Item(f"adapters, {_count(trained)} in float32", _bytes(trained), there=True))
    elif reference:
        copied = frozen if config.train_vision else text
        items.append(Item(f"reference, in {kind}", _bytes(copied), there=True))
    numbers = sum(p.numel() for p in trained)
    if config.dtype == "bfloat16" and not rank:
        items.append(Item("float32 copies of the trained weights", 4 * numbers))
    bits, each = (8, 2) if config.optimizer == "adamw8bit" else (32, 8)
    items.append(Item(f"optimizer, two moments of {bits} bits", each * numbers))
    return items


def _caches(family: Family, config: RunConfig, prompt: Prompt, new_tokens: int) -> list[Item]:
    """What sampling keeps."""
    text = family.language_model.config
    size, decoder = family.language_model.embed_tokens.weight.element_size(), family.decoder
    per_token = 2 * len(decoder.layers) * decoder.kv_heads * decoder.head_dim * size
    cuda, rows, length = config.device != "cpu", config.num_envs, len(prompt) + new_tokens
    if cuda:  # the buffers of `GraphedDecoding`
        rows, length = max(SMALLEST, 1 << (rows - 1).bit_length()), -(-length // BLOCK) * BLOCK
    steps = config.num_envs * config.rollout_steps
    prompts = max(config.num_envs, min(CACHED_PROMPTS, steps))
    width = text.hidden_size * (1 + len(getattr(_vision_config(family), "deepstack_visual_indexes", None) or ()))
    image_tokens = max((image.tokens for image in prompt.images), default=0)
    images = min(CACHED_IMAGES, steps + 2 * config.num_envs)
    prefill = min(PREFILL_TOKENS, max(config.num_envs * len(prompt), len(prompt)))
    layer = size * (3 * text.intermediate_size + 6 * text.hidden_size)
    vocabulary = family.model.lm_head.weight.shape[0]
    return [
        Item(f"vision features of {images} images", images * image_tokens * width * size if image_tokens else 0),
        Item(
            f"keys and values of {rows} replies while they are sampled", rows * length * per_token,
            "always" if cuda else "rollout",
        ),
        Item(f"keys and values of {prompts} prompts", prompts * len(prompt) * per_token, "rollout"),
        Item(f"one pass over {prefill} prompt tokens", prefill * (per_token + layer), "rollout"),
        Item("logits of a sampled token", 3 * 4 * rows * vocabulary, "rollout"),
    ]  # fmt: skip


def _passes(engine: Engine, config: RunConfig, prompt: Prompt, new_tokens: int, rows: int) -> list[Item]:
    """Forward and backward pass of an update."""
    trained = [p for p in engine.family.model.parameters() if p.requires_grad]
    whole = _activations(engine, config, len(prompt), new_tokens, rows)
    how = "recomputed" if config.recompute else "kept"
    vocabulary = engine.suppress.shape[0]
    logits = min(rows * new_tokens * vocabulary, LOGIT_CHUNK) * 4
    items = [
        Item("gradients in float32", 4 * sum(p.numel() for p in trained), "update"),
        Item(
            f"activations of {rows} x {len(prompt) + new_tokens} tokens, {how}",
            max(0, whole - _bytes(trained) - 3 * logits), "update",
        ),
        Item("logits of the update", 3 * logits, "update"),
    ]  # fmt: skip
    if config.train_vision:
        items.append(Item(_VISION, rows * vision_bytes(engine.family, prompt), "update"))
    return items


def _activations(engine: Engine, config: RunConfig, prompt: int, reply: int, rows: int) -> int:
    return update_bytes(engine, rows, prompt, reply, flat=config.flat)


def vision_bytes(family: Family, prompt: Prompt) -> int:
    """What the vision tower keeps of a prompt's images to be trained, roughly: per patch and layer ten times its width
    and twice that of its MLP."""
    vision = _vision_config(family)
    width = getattr(vision, "embed_dim", None) or vision.hidden_size
    depth = getattr(vision, "depth", None) or vision.num_hidden_layers
    mlp = getattr(vision, "intermediate_size", None) or width * vision.mlp_ratio
    patches = sum(image.grid[1] * image.grid[2] for image in prompt.images)
    size = family.language_model.embed_tokens.weight.element_size()
    return int(patches * depth * (10 * width + 2 * mlp) * size)


def _vision_config(family: Family) -> Any:
    return family.model.config.vision_config


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(x.numel() * x.element_size() for x in tensors)


def _count(tensors: Iterable[Tensor]) -> str:
    number = sum(x.numel() for x in tensors)
    return f"{number / 1e9:.2f} billion" if number >= 1e9 else f"{number / 1e6:.2f} million"
