"""Everything around a learner's update that is the same for all of them.

Set-up, warm start, checkpoints, evaluation, the curve, Ctrl-C.
"""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from vlgym.evaluation import Report, evaluate
from vlgym.making import make
from vlgym.policies import RandomPolicy
from vlgym.registry import get_registry
from vlgym.rollout import Runner

from . import runs
from .checkpoint import load_checkpoint, load_module, load_optimizer, module_tensors, optimizer_tensors, save_checkpoint
from .collect import Collector
from .curve import draw_curve
from .families import load_family
from .generate import Engine
from .logs import LOG_FILE, RunLog, read_rows
from .policy import ModelPolicy
from .sft import WarmReport, warm_start
from .value import ValueHead

NEW_TOKENS = 128  # longest reply where neither the configuration nor a warm start says
FLOOR_EPISODES = 60  # played by the random policy where registry.yaml has no floor


class Session:
    """One run: its folder, model, environments and record. The learner reads the attributes and calls the methods in
    the order given here.

    Args:
        config: the learner's resolved configuration, a dataclass with the fields of `vldac.Config`.
        algorithm: name of the learner, part of the run's record.

    Raises:
        UserError: the folder holds another run, the run to resume is of another environment, model or configuration,
            ...
    """

    def __init__(self, config: Any, algorithm: str) -> None:
        self.config, self.algorithm = config, algorithm
        self.env_ids = runs.environment_ids(config.env)
        self.env_kwargs = {"invalid_action": config.invalid_action, "invalid_penalty": config.invalid_penalty}
        if config.parser is not None:
            self.env_kwargs["parser"] = config.parser
        title = self.env_ids[0].split("/")[-1].rsplit("-v", 1)[0] + ("+" if len(self.env_ids) > 1 else "")
        self.out: Path = config.out or runs.next_folder(Path("runs"), title)
        self.title = f"{algorithm}, {', '.join(self.env_ids)}, {config.model}, seed {config.seed}"
        self.record = runs.describe(
            self.title, {"algorithm": algorithm, **asdict(config)}, self.env_ids, self.env_kwargs
        )
        if config.resume:
            runs.check_same(runs.read_run(self.out), self.record)
        self.family = load_family(
            config.model, image_tokens=config.image_tokens, seed=config.seed, dtype=config.dtype, device=config.device
        )
        if not config.resume:
            runs.prepare_folder(self.out)
            runs.write_json(self.out / runs.RUN_FILE, self.record)
        self.engine = Engine(self.family, max_new_tokens=config.max_new_tokens or NEW_TOKENS)
        self.value = ValueHead(self.family.language_model.config.hidden_size, seed=config.seed).to(config.device)
        vision = set(self.family.model.model.visual.parameters())
        self.parameters = [p for p in self.family.model.parameters() if p not in vision]
        self.sampler = torch.Generator().manual_seed(2 * config.seed + 1)
        self.order = torch.Generator().manual_seed(2 * config.seed + 2)
        self.policy = ModelPolicy(self.engine, self.sampler, name=f"{algorithm} ({config.model})")
        self.warm = WarmReport()
        self.evaluations: list[dict[str, Any]] = []
        self.update = 0
        self.reference: Engine | None = None
        self._floors: dict[str, float] = {}

    def begin(self, optimizers: dict[str, torch.optim.Optimizer]) -> None:
        """Warm start (or load the newest checkpoint), freeze the reference, start the environments."""
        self.optimizers = optimizers
        c = self.config
        tensors, state = load_checkpoint(self.out / "checkpoints", c.device) if c.resume else ({}, {})
        if c.resume:
            load_module("reference" if c.kl_coef > 0 else "model", self.family.model, tensors)
        elif c.warm.steps:
            print(
                f"warm start: imitating the oracle, {c.warm.noise:.0%} of its actions replaced by random ones",
                flush=True,
            )
            self.warm = warm_start(
                self.engine, self.env_ids, c.warm,
                seed=c.seed, env_kwargs=self.env_kwargs, max_new_tokens=c.max_new_tokens, on_check=_show_check,
            )  # fmt: skip
            print(f"warm start ended after {self.warm.steps} gradient steps, {self.warm.seconds:.0f} s", flush=True)
        self.family.model.model.visual.requires_grad_(False)
        if c.kl_coef > 0:
            self.reference = Engine(
                self.family.frozen_copy(), max_new_tokens=self.engine.max_new_tokens, vision_of=self.engine
            )
        envs = [make(self.env_ids[i % len(self.env_ids)], **self.env_kwargs) for i in range(c.num_envs)]
        self.collector = Collector(
            Runner(envs, split="train"),
            self.policy,
            self.value,
            steps=c.rollout_steps,
            gamma=c.gamma,
            gae_lambda=c.gae_lambda,
        )
        if c.resume:
            self._restore(tensors, state)
        self.log = RunLog(self.out, total=c.updates, done=self.update, track=c.track, config=asdict(c))

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def save(self) -> Path:
        """Write a checkpoint of the state after `self.update` updates."""
        tensors = module_tensors("model", self.family.model) | module_tensors("value", self.value)
        if self.reference is not None:
            tensors |= module_tensors("reference", self.reference.family.model)
        for name, optimizer in self.optimizers.items():
            tensors |= optimizer_tensors(f"optimizer.{name}", optimizer)
        state = {
            "update": self.update,
            "max_new_tokens": self.engine.max_new_tokens,
            "sampler": _encode(self.sampler),
            "order": _encode(self.order),
            "collector": self.collector.get_state(),
            "warm": asdict(self.warm),
            "evaluations": self.evaluations,
        }
        return save_checkpoint(self.out / "checkpoints", tensors, state)

    def _restore(self, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
        load_module("model", self.family.model, tensors)
        load_module("value", self.value, tensors)
        for name, optimizer in self.optimizers.items():
            load_optimizer(f"optimizer.{name}", optimizer, tensors)
        self.engine.max_new_tokens = state["max_new_tokens"]
        self.update, self.evaluations = state["update"], state["evaluations"]
        self.warm = WarmReport(**{f.name: state["warm"][f.name] for f in fields(WarmReport)})
        for name in ("sampler", "order"):
            getattr(self, name).set_state(torch.frombuffer(bytearray(base64.b64decode(state[name])), dtype=torch.uint8))
        self.collector.set_state(state["collector"])

    # ---- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, *, split: str = "test") -> list[Report]:
        """Play held-out episodes of every environment with a sampler of their own, print and record the reports."""
        c = self.config
        policy = ModelPolicy(self.engine, torch.Generator().manual_seed(c.seed), name=self.policy.name)
        reports = []
        for env_id in self.env_ids:
            report = evaluate(
                env_id,
                policy,
                episodes=c.eval_episodes,
                split=split,
                num_envs=max(c.num_envs, 64),
                env_kwargs=self.env_kwargs,
            )
            reports.append(report)
            self.evaluations.append({"update": self.update, "env_steps": self.env_steps, **report.to_dict()})
            self.log.say(
                f"held-out {env_id} after {self.env_steps} env steps: success {report.success:.3f} "
                f"[{report.success_low:.3f}, {report.success_high:.3f}], return {report.mean_return:+.3f}, "
                f"invalid {report.invalid_rate:.3f}, {report.episodes} episodes"
            )
        runs.write_json(self.out / "evaluation.json", self.evaluations)
        return reports

    @property
    def env_steps(self) -> int:
        """Environment steps of reinforcement learning so far."""
        return self.update * self.config.num_envs * self.config.rollout_steps

    def draw(self) -> Path:
        """Draw the learning curve, and return its file."""
        known = get_registry().known
        floors, oracles = [], []
        for env_id in self.env_ids:
            entry = known.get(env_id) or {}
            spec = get_registry().get(env_id)
            floor, ceiling = entry.get("floor"), entry.get("ceiling")
            if floor is None and env_id not in self._floors:
                self._floors[env_id] = evaluate(env_id, RandomPolicy(), episodes=FLOOR_EPISODES, split="val").success
            floors.append(floor["success"] if floor else self._floors[env_id])
            oracles.append(ceiling["success"] if ceiling else (spec.oracle_success if spec.oracle != "none" else None))
        steps = sorted({e["env_steps"] for e in self.evaluations})
        pooled = [_pool([e for e in self.evaluations if e["env_steps"] == at]) for at in steps]
        path = self.out / "curve.png"
        draw_curve(
            path, read_rows(self.out / LOG_FILE), title=self.title, warm=self.warm.success, evaluations=pooled,
            floor=sum(floors) / len(floors),
            oracle=None if None in oracles else sum(o for o in oracles if o is not None) / len(oracles),
        )  # fmt: skip
        return path

    def save_model(self) -> Path:
        """Write the trained model as a folder that `--model` and `from_pretrained` read."""
        folder = self.out / "model"
        self.family.model.save_pretrained(folder)
        self.family.tokenizer.save_pretrained(folder)
        return folder

    def close(self) -> None:
        """Close environments and log."""
        self.collector.runner.close()
        self.log.close()


@contextmanager
def interruptible() -> Iterator[dict[str, bool]]:
    """Turn the first Ctrl-C into a request to stop after the current update (`flag["stop"]`).

    A second one stops at once.
    """
    flag = {"stop": False}

    def handle(number: int, frame: Any) -> None:
        if flag["stop"]:
            raise KeyboardInterrupt
        flag["stop"] = True
        print("\nstopping after this update; press Ctrl-C again to stop at once", flush=True)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)


def _show_check(step: int, loss: float, success: float) -> None:
    print(f"  step {step:4d}  loss {loss:.3f}  success {success:.2f}", flush=True)


def _pool(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean over environments; the interval of a single environment is kept."""
    mean = {key: sum(row[key] for row in rows) / len(rows) for key in ("success", "success_low", "success_high")}
    return {"env_steps": rows[0]["env_steps"], **mean}


def _encode(generator: torch.Generator) -> str:
    return base64.b64encode(generator.get_state().numpy().tobytes()).decode("ascii")
