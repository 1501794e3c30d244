"""The state of a run, its checkpoints, and the options of a resumed run."""

import base64
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import torch
from torch import Tensor, nn

from vlgym.env.arguments import fits, read_arguments
from vlgym.errors import UserError, flag_of, nearest
from vlgym.parsers import check_named

from ..engine.engine import Engine, make_engine
from ..models import lora
from ..models.lora import LoraOptions
from ..runs import distributed, folder
from ..runs.distributed import World
from ..runs.folder import load_module, module_tensors, save_checkpoint
from ..runs.logs import SERVICES
from .batch import Optimizers
from .config import RunConfig
from .warm_start import WarmReport


class Weights:
    """The weights that a run trains: all of the model, or adapters around its linear layers.

    Args:
        engine: of the model, which becomes the reference; seed: of the adapters.
        options: with a rank, adapters are trained; else all weights of the language model.

    Attributes:
        family: the model that is trained; parameters: what the policy's optimizer trains.
        engine: has the trained weights; reference: the frozen ones, or None; engines: both.
    """

    def __init__(
        self, engine: Engine, options: LoraOptions | None = None, *, seed: int = 0,
        train_vision: bool = False, keep_reference: bool = False,
    ) -> None:  # fmt: skip
        family, limit = engine.family, engine.max_new_tokens
        self.family, self.engine, self.adapted = family, engine, options is not None and bool(options.rank)
        vision = family.vision_parameters()
        for parameter in vision:
            parameter.requires_grad_(train_vision)

        # Adapters are trained alone; without them the text model is, and the vision tower if asked.
        if options is not None and self.adapted:
            lora.add_adapters(family, options, seed=seed)
            # Only an engine that is made now watches the adapters' weights.
            self.engine = make_engine(family, max_new_tokens=limit, parsers=engine.parsers)
            self.parameters = list(lora.adapters(family).parameters())
        else:
            frozen = set() if train_vision else {*vision}
            self.parameters = [p for p in family.model.parameters() if p not in frozen]

        # The frozen vision tower, and its features, are shared with the reference.
        self.reference: Engine | None = None
        if keep_reference:
            copy = lora.reference(family) if self.adapted else family.frozen_copy(share_vision=not train_vision)
            shared = None if train_vision else self.engine
            self.reference = make_engine(copy, max_new_tokens=limit, vision_of=shared)
        self.engines = [self.engine] if self.reference is None else [self.engine, self.reference]

    def _modules(self) -> dict[str, nn.Module]:
        """A checkpoint's modules: the adapters alone, or model and reference."""
        if self.adapted:
            return {"model": lora.adapters(self.family)}
        reference = {} if self.reference is None else {"reference": self.reference.family.model}
        return {**reference, "model": self.family.model}  # they may share a vision tower

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint."""
        parts = (module_tensors(name, module) for name, module in self._modules().items())
        return {name: tensor for part in parts for name, tensor in part.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore `tensors`, in place; a `UserError` where they are of another model."""
        for name, module in self._modules().items():
            load_module(name, module, tensors)


@dataclass
class LearnerParts:
    """A learner's state other than the model."""

    optimizers: Optimizers
    collector: Any  # plays the rollouts; has `recorder`, `get_state`, `set_state` and `close`
    modules: Mapping[str, nn.Module]  # further networks by name, such as the value head
    parts: Mapping[str, Any]  # further state by name, with `tensors` and `restore`


class RunState:
    """All that the next update depends on."""

    def __init__(
        self, weights: Weights, generators: Mapping[str, torch.Generator], warm: WarmReport,
        world: World, base: dict[str, Any] | None,
    ) -> None:  # fmt: skip
        self.weights, self.generators, self.warm, self.world = weights, generators, warm, world
        self.base = base  # size and checksum of the file with the weights under adapters
        self.update = self.env_steps = 0  # how many have been made
        self.evaluations: list[dict[str, Any]] = []  # reports on held-out episodes so far

    def save(self, folder: Path, learner: LearnerParts) -> Path | None:
        """Write a checkpoint after `update` updates (in the first process); return its folder."""
        own: dict[str, Any] = {"collector": learner.collector.get_state()}
        for name, generator in self.generators.items():
            own[name] = base64.b64encode(generator.get_state().numpy().tobytes()).decode()
        processes = distributed.gather_objects(own, self.world)
        if not self.world.first:
            return None

        tensors = self.weights.tensors() | learner.optimizers.tensors()
        for name, module in learner.modules.items():
            tensors |= module_tensors(name, module)
        for name, part in learner.parts.items():
            tensors |= {f"{name}.{key}": x for key, x in part.tensors().items()}
        state = {
            "update": self.update, "env_steps": self.env_steps, "processes": processes,
            "max_new_tokens": self.weights.engine.max_new_tokens, "learner": learner.optimizers.state(),
            "warm": asdict(self.warm), "base": self.base, "evaluations": self.evaluations,
        }  # fmt: skip
        return save_checkpoint(folder, tensors, state)

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any], learner: LearnerParts) -> None:
        """Restore a checkpoint, exactly; a `UserError` where it is of another model or world."""
        if (before := len(state["processes"])) != (size := self.world.size):
            raise UserError(f"That run has {before} processes, not {size}; resume it with as many.")

        self.weights.load(tensors)
        for name, module in learner.modules.items():
            load_module(name, module, tensors)
        for name, part in learner.parts.items():
            start = f"{name}."
            part.restore({k.removeprefix(start): x for k, x in tensors.items() if k.startswith(start)})
        learner.optimizers.restore(tensors, state["learner"])

        # Each process has its own environments and generators.
        own = state["processes"][self.world.rank]
        learner.collector.set_state(own["collector"])
        for name, generator in self.generators.items():
            saved = bytearray(base64.b64decode(own[name]))
            generator.set_state(torch.frombuffer(saved, dtype=torch.uint8))
        self.update, self.env_steps = state["update"], state["env_steps"]
        self.evaluations = state["evaluations"]
        self.warm = WarmReport(**{f.name: state["warm"][f.name] for f in fields(WarmReport)})


# ---- options of a resumed run --------------------------------------------------------------------

FREE_ON_RESUME = frozenset({
    "out", "resume", "updates", "env_steps", "save_every", "eval_every", "eval_episodes",
    "eval_controls", "eval_minutes", "threads", "micro_batch", "micro_tokens", "recompute", "export",
    "export_adapter", "record_every", "record_keep", "tracker", "max_logp_gap", "envs", "env_timeout",
})  # fmt: skip

WRITTEN = ("export", "export_adapter")  # options that name a folder

C = TypeVar("C", bound=RunConfig)


def saved_config(request: C) -> C:
    """The configuration of the run to resume; a `UserError` where it may not be changed so."""
    if request.out is None:
        raise UserError("--resume needs the folder of the run: --resume --out runs/...")
    kind, default = type(request), type(request)()
    saved = folder.read_run_record(request.out)["config"]
    names = [item.name for item in fields(kind)]

    # A record of another version may have options that would be lost.
    unknown = sorted(set(saved) - {*names, "algorithm"})
    for name in names:
        group = getattr(default, name)
        if is_dataclass(group) and isinstance(saved.get(name), dict):
            unknown += sorted(set(saved[name]) - {item.name for item in fields(group)})
    if saved.get("algorithm") == kind.algorithm and unknown:
        raise UserError(
            f"The run in {request.out} has an option that this version does not know, {unknown[0]!r}; "
            f"resume it with the version that began it.{nearest(unknown[0], names)}"
        )

    values: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for name in names:
        standard = getattr(default, name)
        before = saved.get(name, standard)
        if is_dataclass(standard) and isinstance(before, dict):
            before = replace(standard, **before)  # type: ignore[type-var]
        elif isinstance(standard, tuple) and isinstance(before, list):
            before = tuple(before)
        if not fits(before, hints[name]):
            raise UserError(f"{request.out / folder.RUN_FILE} says {name}={before!r:.80}; start a new run.")
        values[name] = _resumed(request.out, name, getattr(request, name), standard, before)
    return replace(kind(**values), out=request.out, resume=True)


def _resumed(out: Path, name: str, request: Any, standard: Any, before: Any) -> Any:
    if is_dataclass(before) and not isinstance(before, type):
        inner = {}
        for item in fields(before):
            values = (getattr(options, item.name) for options in (request, standard, before))
            inner[item.name] = _resumed(out, f"{name}.{item.name}", *values)
        return replace(before, **inner)
    if request == standard:
        if before != standard:
            _check_record(out, name, before)
        return before
    if name.split(".")[0] in FREE_ON_RESUME or request == before:
        return request
    raise UserError(
        f"The run in {out} has {flag_of(name)} {before}, but {request} was asked for. Leave that option "
        "out to go on with the run as it was, or start a new run in another --out."
    )


def _check_record(out: Path | None, name: str, value: Any) -> None:
    """Refuse a record's value that names a folder, a service that gets data, or code."""
    source, why = str((out or Path()) / folder.RUN_FILE), ""
    if name in ("parser", "env_kwargs"):  # an import string runs code
        arguments = {name: value} if name == "parser" else read_arguments(value, flag_of(name))
        check_named(arguments, source, _write_option(name, value))
    elif name == "envs" and value.startswith("ray://"):  # it sends pickles
        why = "a Ray cluster, which runs code here"
    elif name == "tracker" and value in SERVICES:
        why = "a service that gets pictures and replies"
    elif name in WRITTEN:
        why = "a folder to write"
    if why:
        raise UserError(f"{source} names {why}: give it on the command line ({_write_option(name, value)}).")


def _write_option(name: str, value: Any) -> str:
    values = value if name == "env_kwargs" else (value,)
    return shlex.join(word for each in values for word in (flag_of(name), str(each)))


def list_repeated(config: RunConfig) -> str:
    """The options that a command which resumes the run must repeat, each after a blank."""
    written = ""
    for item in fields(config):
        value = getattr(config, item.name)
        try:
            if value is not None:
                _check_record(config.out, item.name, value)
        except UserError:
            written += f" {_write_option(item.name, value)}"
    return written
