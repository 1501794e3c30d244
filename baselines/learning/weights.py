"""The weights that a run trains: all of the model, or adapters around its linear layers.

Both kinds say which parameters an optimizer gets, which engine scores with them, which engine samples with them, which
one holds the frozen reference, and what a checkpoint stores.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from ..engine.engine import Engine
from ..engine.plain import make_engine
from ..models import lora
from ..models.family import Family
from ..models.lora import LoraOptions
from ..runs.checkpoint import load_module, module_tensors


class Weights(Protocol):
    """The model, as a learner uses it.

    Attributes:
        family: the model that is trained.
        parameters: what the policy's optimizer trains.
        scorer: engine with the weights that are trained, for log-probabilities with gradients.
        sampler: engine with the same weights, for replies; the scorer itself, or a copy with the adapters merged.
        reference: engine of the frozen model, None where nothing asks for it.
    """

    family: Family
    parameters: list[nn.Parameter]
    scorer: Engine
    sampler: Engine
    reference: Engine | None

    def refresh(self) -> None:
        """Let the sampler have the weights as they are now."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint."""

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore `tensors`, in place."""


class AllWeights:
    """Every weight of the language model, and of the vision tower if asked for.

    Args:
        engine: of the model; its weights are the reference.
        train_vision: train the vision tower too.
        keep_reference: keep a frozen copy of the model as it is now.
    """

    def __init__(self, engine: Engine, *, train_vision: bool, keep_reference: bool) -> None:
        family = self.family = engine.family
        for parameter in family.vision_parameters():
            parameter.requires_grad_(train_vision)
        self.scorer = self.sampler = engine
        vision = set() if train_vision else set(family.vision_parameters())
        self.parameters: list[nn.Parameter] = [p for p in family.model.parameters() if p not in vision]
        self.reference: Engine | None = None
        if keep_reference:
            frozen = family.frozen_copy(share_vision=not train_vision)
            shared = None if train_vision else engine
            self.reference = make_engine(frozen, max_new_tokens=engine.max_new_tokens, vision_of=shared)

    def refresh(self) -> None:
        """Nothing: the sampler has the very weights that are trained."""

    def tensors(self) -> dict[str, Tensor]:
        """The model and the reference."""
        found = module_tensors("model", self.family.model)
        return found if self.reference is None else found | module_tensors("reference", self.reference.family.model)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore model and reference; a vision tower that both share is the same in both.

        Raises:
            UserError: the checkpoint is of another model.
        """
        if self.reference is not None:
            load_module("reference", self.reference.family.model, tensors)
        load_module("model", self.family.model, tensors)


class Adapters:
    """Low-rank adapters; the model under them never changes and is the reference.

    Args:
        engine: of the model, which gets the adapters in place.
        options: rank, scale, and whether a merged copy samples.
        seed: of the adapters.
        keep_reference: make an engine of the model without its adapters.
    """

    def __init__(self, engine: Engine, options: LoraOptions, *, seed: int, keep_reference: bool) -> None:
        family, limit = engine.family, engine.max_new_tokens
        self.family = family
        for parameter in family.vision_parameters():
            parameter.requires_grad_(False)
        lora.add_adapters(family, options, seed=seed)
        self.scorer = self.sampler = make_engine(family, max_new_tokens=limit, parsers=engine.parsers)
        dtype = str(family.model.dtype).removeprefix("torch.")
        merge = options.resolve(dtype).merge
        if merge != "none":
            merged = lora.merged_copy(family, float32=merge == "float32")
            self.sampler = make_engine(merged, max_new_tokens=limit, parsers=engine.parsers, vision_of=self.scorer)
        self.parameters = lora.trainable_parameters(family)
        self.reference: Engine | None = None
        if keep_reference:
            self.reference = make_engine(lora.reference(family), max_new_tokens=limit, vision_of=self.scorer)

    def refresh(self) -> None:
        """Merge the adapters into the sampler's weights, where it has its own."""
        if self.sampler is not self.scorer:
            lora.refresh(self.sampler.family, self.family)

    def tensors(self) -> dict[str, Tensor]:
        """The adapters alone."""
        return module_tensors("model", lora.adapters(self.family))

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore the adapters.

        Raises:
            UserError: the checkpoint is of another model.
        """
        load_module("model", lora.adapters(self.family), tensors)


def engines(weights: Weights) -> list[Engine]:
    """Every engine, each once."""
    found = [weights.scorer, weights.sampler, weights.reference]
    return list({id(engine): engine for engine in found if engine is not None}.values())
