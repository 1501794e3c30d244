"""The state of a run: contents of a checkpoint, saved and restored exactly."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vlgym.errors import UserError

from ..engine.engine import Engine
from ..engine.plain import make_engine
from ..models import lora
from ..models.lora import LoraOptions
from ..runs import distributed
from ..runs.distributed import World
from ..runs.folder import load_module, module_tensors, save_checkpoint
from .batch import Optimizers
from .warm_start import WarmReport


class Weights:
    """The weights that a run trains: all of the model, or adapters around its linear layers.

    Args:
        engine: of the model; its weights are the reference.
        options: with a rank, adapters are trained; None trains all weights of the language model.
        seed: of the adapters.
        train_vision: train the vision tower too.
        keep_reference: keep the model as it is now, frozen.

    Attributes:
        family: the model that is trained.
        parameters: what the policy's optimizer trains.
        engine: samples and scores with the trained weights.
        reference: engine of the frozen model, None where nothing asks for it.
    """

    def __init__(
        self,
        engine: Engine,
        options: LoraOptions | None = None,
        *,
        seed: int = 0,
        train_vision: bool = False,
        keep_reference: bool = False,
    ) -> None:
        family, limit = engine.family, engine.max_new_tokens
        self.family, self.engine, self.adapted = family, engine, options is not None and bool(options.rank)
        vision = family.vision_parameters()
        for parameter in vision:
            parameter.requires_grad_(train_vision)
        if options is not None and self.adapted:
            lora.add_adapters(family, options, seed=seed)
            self.engine = make_engine(family, max_new_tokens=limit, parsers=engine.parsers)  # it watches the adapters
            self.parameters = list(lora.adapters(family).parameters())
        else:
            frozen = set() if train_vision else {*vision}
            self.parameters = [p for p in family.model.parameters() if p not in frozen]
        self.reference: Engine | None = None
        if keep_reference:
            copy = lora.reference(family) if self.adapted else family.frozen_copy(share_vision=not train_vision)
            shared = None if train_vision else self.engine
            self.reference = make_engine(copy, max_new_tokens=limit, vision_of=shared)

    def engines(self) -> list[Engine]:
        """Both engines."""
        return [self.engine, *([self.reference] if self.reference is not None else [])]

    def _modules(self) -> dict[str, nn.Module]:
        """Return the modules of a checkpoint: the adapters alone, or model and reference, which may share a vision
        tower.
        """
        if self.adapted:
            return {"model": lora.adapters(self.family)}
        kept = {} if self.reference is None else {"reference": self.reference.family.model}
        return {**kept, "model": self.family.model}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint."""
        return {k: x for name, module in self._modules().items() for k, x in module_tensors(name, module).items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore `tensors`, in place.

        Raises:
            UserError: the checkpoint is of another model.
        """
        for name, module in self._modules().items():
            load_module(name, module, tensors)


@dataclass
class Kept:
    """A learner's state other than the model.

    Attributes:
        optimizers: its own.
        collector: plays the rollouts; has `recorder`, `get_state`, `set_state` and `close`.
        modules: further networks by name, such as the value head.
        parts: further state by name, with `tensors` and `restore`.
    """

    optimizers: Optimizers
    collector: Any
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)


class RunState:
    """All that the next update depends on.

    Args:
        weights: the model's.
        generators: of sampling and of the order of minibatches, by name.
        warm: what the warm start did.
        world: the processes; the first one saves.

    Attributes:
        update, env_steps: how many have been made.
        evaluations: reports on held-out episodes so far.
        base: size and checksum of the file with the weights under adapters; None where there is none.
    """

    def __init__(
        self, weights: Weights, generators: Mapping[str, torch.Generator], warm: WarmReport, world: World
    ) -> None:
        self.weights, self.generators, self.warm, self.world = weights, generators, warm, world
        self.update = self.env_steps = 0
        self.evaluations: list[dict[str, Any]] = []
        self.base: dict[str, Any] | None = None

    def save(self, folder: Path, kept: Kept) -> Path | None:
        """Write a checkpoint after `update` updates (in the first process); return its folder."""
        own = {k: base64.b64encode(each.get_state().numpy().tobytes()).decode() for k, each in self.generators.items()}
        processes = distributed.gather_objects({"collector": kept.collector.get_state(), **own}, self.world)
        if not self.world.first:
            return None
        tensors = self.weights.tensors() | kept.optimizers.tensors()
        for name, module in kept.modules.items():
            tensors |= module_tensors(name, module)
        for name, part in kept.parts.items():
            tensors |= {f"{name}.{key}": tensor for key, tensor in part.tensors().items()}
        state = {
            "update": self.update,
            "env_steps": self.env_steps,
            "max_new_tokens": self.weights.engine.max_new_tokens,
            "processes": processes,
            "learner": kept.optimizers.state(),
            "warm": asdict(self.warm),
            "base": self.base,
            "evaluations": self.evaluations,
        }
        return save_checkpoint(folder, tensors, state)

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any], kept: Kept) -> None:
        """Restore a checkpoint, exactly.

        Raises:
            UserError: it is of another model, or of another number of processes.
        """
        if (before := len(state["processes"])) != self.world.size:
            raise UserError(f"That run has {before} processes, not {self.world.size}; resume it with as many.")
        self.weights.load(tensors)
        for name, module in kept.modules.items():
            load_module(name, module, tensors)
        for name, part in kept.parts.items():
            part.restore({k.removeprefix(f"{name}."): x for k, x in tensors.items() if k.startswith(f"{name}.")})
        kept.optimizers.restore(tensors, state["learner"])
        own = state["processes"][self.world.rank]
        kept.collector.set_state(own["collector"])
        for engine in self.weights.engines():
            engine.max_new_tokens = state["max_new_tokens"]
        for name, generator in self.generators.items():
            generator.set_state(torch.frombuffer(bytearray(base64.b64decode(own[name])), dtype=torch.uint8))
        self.update, self.env_steps, self.evaluations = state["update"], state["env_steps"], state["evaluations"]
        self.warm = WarmReport(**{f.name: state["warm"][f.name] for f in fields(WarmReport)})
