"""Everything around a learner's update that is the same for all of them.

Model, warm start, adapters, reference, environments, checkpoints, evaluation, the curve.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from vlgym.errors import UserError
from vlgym.evaluation import Report, evaluate
from vlgym.making import make
from vlgym.policies import OraclePolicy, RandomPolicy
from vlgym.prompts import PromptBuilder
from vlgym.registry import get_registry
from vlgym.rollout import Runner

from ..engine.engine import Engine
from ..engine.policy import ModelPolicy
from ..models import lora
from ..models.load import load_family
from ..runs import distributed, folder
from ..runs.checkpoint import (
    load_checkpoint,
    load_module,
    load_optimizer,
    module_tensors,
    optimizer_tensors,
    save_checkpoint,
)
from ..runs.curve import draw_curve
from ..runs.distributed import ALONE, World
from ..runs.logs import LOG_FILE, RunLog, read_rows
from .config import RunConfig
from .rewards import RewardShaper
from .value import ValueHead
from .warm_start import WarmReport, show_check, warm_start

NEW_TOKENS = 128  # longest reply where neither the configuration nor a warm start says
FLOOR_EPISODES = 60  # played by random policy and oracle where registry.yaml has no figures
BASE_FILE = "base.safetensors"  # the weights under the adapters, where a warm start made them

Figures = Mapping[str, float]
"""`{"success", "return"}` of a policy."""


class Trainable(Protocol):
    """What a session saves and restores of a learner."""

    optimizers: dict[str, torch.optim.Optimizer]
    collector: Any

    def tensors(self) -> dict[str, Tensor]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None: ...


class Session:
    """One run: its folder, model, environments and record.

    Args:
        config: the learner's resolved configuration.
        algorithm: name of the learner, part of the run's record.
        command: how its module is called, for messages.
        world: which of how many processes this is; only the first writes.
        needs_reference: keep the frozen model even without a KL term.

    Attributes:
        family: the model; engine: scores with the weights that are trained; sampler: samples with the same weights (a
            merged copy where there are adapters); reference: engine of the frozen model, None where nothing asks for
            it.
        value: the value head; parameters: what the policy's optimizer trains.
        update, env_steps: how many have been made.

    Raises:
        UserError: the folder holds another run, the run to resume is of another environment, model or configuration,
            ...
    """

    def __init__(
        self,
        config: RunConfig,
        algorithm: str,
        command: str,
        world: World = ALONE,
        *,
        needs_reference: bool = False,
    ) -> None:
        self.config: Any = config
        self.needs_reference = needs_reference or config.kl_coef > 0
        self.algorithm, self.command, self.world = algorithm, command, world
        c: Any = config
        self.env_ids = folder.environment_ids(c.env)
        self.env_kwargs = config.environment_arguments()
        self.builder = prompt_builder(c.history_turns, c.history_images)
        self.num_envs = folder.share_of(c.num_envs, world.size)
        title = self.env_ids[0].split("/")[-1].rsplit("-v", 1)[0] + ("+" if len(self.env_ids) > 1 else "")
        chosen = str(c.out or folder.next_folder(Path("runs"), title))
        self.out = Path(distributed.gather_texts(chosen, world)[0])
        how = f" ({', '.join(c.env_kwargs)})" if c.env_kwargs else ""
        self.title = f"{algorithm}, {', '.join(self.env_ids)}{how}, {c.model}, seed {c.seed}"
        self.record = folder.describe(
            self.title, {"algorithm": algorithm, **asdict(config)}, self.env_ids, self.env_kwargs
        )
        if c.resume:
            folder.check_same(folder.read_run(self.out), self.record)
        self.family = load_family(c.model, image_tokens=c.image_tokens, seed=c.seed, dtype=c.dtype, device=c.device)
        if not c.resume and world.first:
            folder.prepare_folder(self.out)
            folder.write_json(self.out / folder.RUN_FILE, self.record)
        self._lock = folder.claim(self.out) if world.first else None
        self.value = ValueHead(self.family.language_model.config.hidden_size, seed=c.seed).to(c.device)
        self.sampling = torch.Generator().manual_seed(2 * c.seed + 1)
        self.order = torch.Generator().manual_seed(2 * c.seed + 2)
        self.warm = WarmReport()
        self.evaluations: list[dict[str, Any]] = []
        self.update = self.env_steps = 0
        self._saved: tuple[dict[str, Tensor], dict[str, Any]] = ({}, {})
        self._prepare_model()

    def _prepare_model(self) -> None:
        """Warm start (or load what it made), freeze the reference, add adapters."""
        c = self.config
        engine = Engine(self.family, max_new_tokens=c.max_new_tokens or NEW_TOKENS)
        if c.resume:
            self._saved = load_checkpoint(self.out / "checkpoints", c.device)
            if not c.lora.rank:
                load_module("reference" if self.needs_reference else "model", self.family.model, self._saved[0])
            elif (self.out / BASE_FILE).is_file():
                load_module("base", self.family.model, load_file(self.out / BASE_FILE, device=c.device))
        elif c.warm.steps:
            print(
                f"warm start: imitating the oracle, {c.warm.noise:.0%} of its actions replaced by random ones",
                flush=True,
            )
            self.warm = warm_start(
                engine, self.env_ids, c.warm,
                seed=c.seed, env_kwargs=self.env_kwargs, max_new_tokens=c.max_new_tokens, on_check=show_check,
                builder=self.builder,
            )  # fmt: skip
            print(f"warm start ended after {self.warm.steps} gradient steps, {self.warm.seconds:.0f} s", flush=True)
            if c.lora.rank and self.world.first:
                base = {name: x.clone() for name, x in module_tensors("base", self.family.model).items()}
                save_file(base, self.out / BASE_FILE)
        for parameter in self.family.vision_parameters():
            parameter.requires_grad_(c.train_vision)
        limit = engine.max_new_tokens
        self.reference: Engine | None = None
        if c.lora.rank:
            lora.add_adapters(self.family, c.lora, seed=c.seed)
            self.engine = Engine(self.family, max_new_tokens=limit)
            self.merged = lora.merged_copy(self.family)
            self.sampler = Engine(self.merged, max_new_tokens=limit, vision_of=self.engine)
            self.parameters = lora.trainable_parameters(self.family)
            if self.needs_reference:
                frozen = lora.reference(self.family)
                self.reference = Engine(frozen, max_new_tokens=limit, vision_of=self.engine)
        else:
            self.engine = self.sampler = engine
            vision = set() if c.train_vision else set(self.family.vision_parameters())
            self.parameters = [p for p in self.family.model.parameters() if p not in vision]
            if self.needs_reference:
                frozen = self.family.frozen_copy(share_vision=not c.train_vision)
                shared = None if c.train_vision else self.engine
                self.reference = Engine(frozen, max_new_tokens=limit, vision_of=shared)
        if c.recompute:
            self.family.recompute_activations()
        self.policy = ModelPolicy(self.sampler, self.sampling, name=f"{self.algorithm} ({c.model})", world=self.world)

    def begin(self, learner: Trainable) -> None:
        """Take over the learner's state to save, restore it if resuming, open the log."""
        self.learner = learner
        if self.config.resume:
            self._restore(*self._saved)
            self._saved = ({}, {})
        self.log = RunLog(
            self.out, name=self.algorithm, total=self.config.updates, done=self.update, track=self.config.track,
            config=asdict(self.config), quiet=not self.world.first,
        )  # fmt: skip

    # ---- environments ------------------------------------------------------------------------------------------------

    def make_env(self, index: int) -> Any:
        """Environment `index` of this process; ids take turns."""
        return make(self.env_ids[(self.world.rank * self.num_envs + index) % len(self.env_ids)], **self.env_kwargs)

    def make_runners(self) -> list[Runner]:
        """Endless training episodes: one runner, or two halves for double buffering."""
        halves = 2 if self.config.double_buffer else 1
        each = folder.share_of(self.num_envs, halves, "--num-envs", "halves (--double-buffer)")
        runners = []
        for half in range(halves):
            offset = half * each

            def remake(index: int, offset: int = offset) -> Any:
                return self.make_env(offset + index)

            runners.append(
                Runner(
                    [remake(i) for i in range(each)], split="train", builder=self.builder, remake=remake,
                    first_episode=self.world.rank * self.num_envs + offset, stride=self.config.num_envs,
                )
            )  # fmt: skip
        return runners

    def make_shaper(self, gamma: float) -> RewardShaper:
        """The reward shaping of this process's environments."""
        return RewardShaper(self.config.reward, self.num_envs, gamma)

    def refresh_sampler(self) -> None:
        """Let the sampler have the weights as they are now."""
        if self.sampler is not self.engine:
            lora.refresh(self.merged, self.family)

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    @property
    def trained(self) -> torch.nn.Module:
        """The module that checkpoints hold: the model, or its adapters."""
        return lora.adapters(self.family) if self.config.lora.rank else self.family.model

    def save(self) -> Path | None:
        """Write a checkpoint of the state after `self.update` updates (in the first process)."""
        collectors = distributed.gather_texts(json.dumps(self.learner.collector.get_state()), self.world)
        if not self.world.first:
            return None
        tensors = module_tensors("model", self.trained) | module_tensors("value", self.value)
        if self.reference is not None and not self.config.lora.rank:
            tensors |= module_tensors("reference", self.reference.family.model)
        for name, optimizer in self.learner.optimizers.items():
            tensors |= optimizer_tensors(f"optimizer.{name}", optimizer)
        tensors |= {f"learner.{name}": tensor for name, tensor in self.learner.tensors().items()}
        state = {
            "update": self.update,
            "env_steps": self.env_steps,
            "max_new_tokens": self.engine.max_new_tokens,
            "sampler": _encode(self.sampling),
            "order": _encode(self.order),
            "collectors": [json.loads(text) for text in collectors],
            "learner": self.learner.state(),
            "warm": asdict(self.warm),
            "evaluations": self.evaluations,
        }
        return save_checkpoint(self.out / "checkpoints", tensors, state)

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        load_module("model", self.trained, tensors)
        load_module("value", self.value, tensors)
        for name, optimizer in self.learner.optimizers.items():
            load_optimizer(f"optimizer.{name}", optimizer, tensors)
        for engine in (self.engine, self.sampler, self.reference):
            if engine is not None:
                engine.max_new_tokens = state["max_new_tokens"]
        self.update, self.env_steps = state["update"], state["env_steps"]
        self.evaluations = state["evaluations"]
        self.warm = WarmReport(**{f.name: state["warm"][f.name] for f in fields(WarmReport)})
        for name, generator in (("sampler", self.sampling), ("order", self.order)):
            generator.set_state(torch.frombuffer(bytearray(base64.b64decode(state[name])), dtype=torch.uint8))
        if len(state["collectors"]) != self.world.size:
            raise UserError(
                f"The run in {self.out} has {len(state['collectors'])} processes, this one {self.world.size}; "
                "resume it with as many (torchrun --nproc-per-node)."
            )
        self.learner.collector.set_state(state["collectors"][self.world.rank])
        own = {name.removeprefix("learner."): x for name, x in tensors.items() if name.startswith("learner.")}
        self.learner.restore(own, state["learner"])

    # ---- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, *, split: str = "test") -> list[Report]:
        """Play held-out episodes of every environment with a sampler of their own, print and record the reports."""
        c = self.config
        if not c.eval_episodes or not self.world.first:
            return []
        self.refresh_sampler()
        policy = ModelPolicy(self.sampler, torch.Generator().manual_seed(c.seed), name=self.policy.name)
        reports = []
        for env_id in self.env_ids:
            report = evaluate(
                env_id,
                policy,
                episodes=c.eval_episodes,
                split=split,
                num_envs=c.num_envs,
                env_kwargs=self.env_kwargs,
                builder=self.builder,
            )
            reports.append(report)
            self.evaluations.append({"update": self.update, "env_steps": self.env_steps, **report.to_dict()})
            score = "" if report.mean_score is None else f"score {report.mean_score:.2f}, "
            self.log.say(
                f"held-out {env_id} after {self.env_steps} env steps: success {report.success:.3f} "
                f"[{report.success_low:.3f}, {report.success_high:.3f}], return {report.mean_return:+.3f}, {score}"
                f"invalid {report.invalid_rate:.3f}, {report.episodes} episodes"
            )
        folder.write_json(self.out / "evaluation.json", self.evaluations)
        return reports

    def draw(self) -> Path:
        """Draw the learning curve, and return its file."""
        bounds = [self._bounds(env_id) for env_id in self.env_ids]
        steps = sorted({e["env_steps"] for e in self.evaluations})
        pooled = [_pool([e for e in self.evaluations if e["env_steps"] == at]) for at in steps]
        path = self.out / "curve.png"
        draw_curve(
            path, read_rows(self.out / LOG_FILE), title=self.title, name=self.algorithm, warm=self.warm.success,
            evaluations=pooled, floor=_mean([floor for floor, _ in bounds]),
            oracle=_mean([ceiling for _, ceiling in bounds]),
        )  # fmt: skip
        return path

    def _bounds(self, env_id: str) -> tuple[Figures, Figures | None]:
        """Success and return of random play and of the oracle (None without one): from registry.yaml, or measured where
        that does not know them."""
        entry = get_registry().known.get(env_id) or {}
        if not self.config.env_kwargs and entry.get("floor") and entry.get("ceiling"):
            return entry["floor"], entry["ceiling"]
        measured: list[Figures] = []
        policies: list[Any] = [RandomPolicy()]
        if get_registry().get(env_id).oracle != "none":
            policies.append(OraclePolicy())
        for policy in policies:
            report = evaluate(
                env_id, policy, episodes=FLOOR_EPISODES, split="val", num_envs=self.num_envs, env_kwargs=self.env_kwargs
            )
            measured.append({"success": report.success, "return": report.mean_return})
        return measured[0], measured[1] if len(measured) == 2 else None

    def save_model(self) -> list[Path]:
        """Write the trained model, adapters merged, as folders that `--model` and `from_pretrained` read."""
        self.refresh_sampler()
        folders = [self.out / "model"] + ([Path(self.config.export)] if self.config.export else [])
        return [lora.export_merged(self.sampler.family, folder) for folder in folders]

    def close(self) -> None:
        """Close environments and log."""
        self.learner.collector.close()
        self.log.close()

    def release(self) -> None:
        """Let other processes work in the run's folder."""
        if self._lock is not None:
            self._lock.close()


def prompt_builder(turns: int | None, images: int | None) -> PromptBuilder | None:
    """The prompt layout that was asked for: `images` alone brings the turns that they belong to; None for the
    environments' own."""
    if turns is None and images is None:
        return None
    return PromptBuilder(turns if turns is not None else max(0, (images or 0) - 1), images if images is not None else 1)


def _pool(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean over environments; the intervals of a single environment are kept."""
    names = ("success", "success_low", "success_high", "mean_return", "return_se")
    return {"env_steps": rows[0]["env_steps"], **{key: sum(row[key] for row in rows) / len(rows) for key in names}}


def _mean(figures: Sequence[Figures | None]) -> Figures | None:
    """Mean over environments; None if one is unknown."""
    known = [each for each in figures if each is not None]
    if len(known) < len(figures):
        return None
    return {name: sum(each[name] for each in known) / len(known) for name in ("success", "return")}


def _encode(generator: torch.Generator) -> str:
    return base64.b64encode(generator.get_state().numpy().tobytes()).decode("ascii")
