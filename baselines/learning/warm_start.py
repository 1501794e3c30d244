"""Imitation of noisy oracle trajectories, stopped early, so that reinforcement learning has something left to learn.

Trajectories come through `vlgym.play.rollout` with the environments' own oracles. On a stated share of the steps
(`noise`) the oracle's action is replaced by a random legal one, executed and imitated as it is, so the warm-started
policy knows the format and the picture but plays imperfectly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from vlgym.env.prompts import PromptBuilder
from vlgym.env_groups import LOCAL, EnvGroup
from vlgym.errors import UserError, check_number
from vlgym.evaluation import evaluate
from vlgym.play.controls import SHOWN
from vlgym.play.curriculum import Course
from vlgym.play.env_failures import ENV_ERROR, EnvFailures, Failure, close_env, warn
from vlgym.play.rollout import Runner
from vlgym.registry import get_registry
from vlgym.registry.making import unwrap
from vlgym.types import Reply, Turn

from ..engine.engine import Engine, ModelPolicy, pad_rows
from ..models.family import Family, Prompt
from ..runs import distributed
from ..runs.distributed import World


@dataclass(frozen=True)
class WarmConfig:
    """The supervised warm start."""

    steps: int | None = None
    """Most gradient steps; 0 for no warm start. It ends earlier at `target`. Default 600."""
    target: float = 0.5
    """Stop as soon as this share of validation episodes succeeds, sampling at temperature 1; 1 trains all steps."""
    noise: float = 0.5
    """Share of steps on which a uniformly random legal action is played, and imitated, instead of the oracle's."""
    samples: int = 2048
    """Oracle turns to collect, in all environments together."""
    batch: int = 64
    """Turns per gradient step."""
    lr: float = 1e-3
    """Learning rate after 50 steps of warm-up."""
    check_every: int = 40
    """Gradient steps between validations."""
    val_episodes: int = 64
    """Validation episodes, over all environments; fewer where episodes are long."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        for name in ("noise", "target"):
            check_number(_flag(name), getattr(self, name), 0, 1)
        for name in ("samples", "batch", "check_every", "val_episodes"):
            check_number(_flag(name), getattr(self, name), 1)
        check_number(_flag("steps"), self.steps or 0, 0, hint="0 is no warm start.")
        check_number(_flag("lr"), self.lr, above=0)


@dataclass
class WarmReport:
    """Result of the warm start; part of the run's record, and plotted apart from reinforcement learning's."""

    steps: int = 0
    samples: int = 0
    longest_reply: int = 0  # tokens
    max_new_tokens: int = 0  # reply limit that follows from it, or that was given
    labels_replaced: float = 0.0  # share of labels that are not the oracle's reply
    seconds: float = 0.0
    success: list[tuple[int, float]] = field(default_factory=list)  # (gradient step, validation success)
    loss: float = math.nan


class Check(NamedTuple):
    """Metrics of one validation."""

    success: float
    mean_return: float
    invalid_rate: float


class NoisyOracle:
    """The oracle, except that a share of its actions is replaced by uniformly random legal ones.

    Each reply's `extra` is the label: its text; None in a state without an oracle's action.
    """

    name = "noisy-oracle"

    def __init__(self, noise: float, rng: np.random.Generator) -> None:
        self.noise, self.rng = noise, rng
        self.replaced = self.given = 0

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each environment; a state without an oracle's action gets a random legal one."""
        replies = []
        for turn in turns:
            env = unwrap(turn.env)
            text = right = env.solve()
            if right is None or self.rng.random() < self.noise:
                legal = env.legal_actions()
                action = legal[int(self.rng.integers(len(legal)))]
                text = env.parser.format([action], env.think(action))
            self.given += right is not None
            self.replaced += right is not None and text != right
            replies.append(Reply(text or "", None if right is None else text))
        return replies


def check_oracles(env_ids: Sequence[str]) -> None:
    """Raise `UserError` where an environment has no oracle to imitate."""
    for env_id in env_ids:
        if get_registry().get(env_id).oracle == "none":
            raise UserError(
                f"{env_id} has no oracle, so there is nothing to imitate; use --warm.steps 0 (reinforcement learning "
                "only) or an environment that `vlgym show` lists with an oracle."
            )


def collect(
    env_ids: Sequence[str],
    config: WarmConfig,
    seed: int,
    env_kwargs: dict[str, Any],
    family: Family,
    builder: PromptBuilder | None = None,
    on_failure: Callable[[Failure], object] = warn,
    group: EnvGroup = LOCAL,
    course: Course | None = None,
    pictures: str = SHOWN,
) -> tuple[list[tuple[Prompt, torch.Tensor]], float]:
    """Play the noisy oracle; return (prompt, reply ids) pairs and the share of labels that differ from the oracle's."""
    ids = [env_id for env_id in env_ids for _ in range(max(1, 16 // len(env_ids)))]

    def make_env(index: int, env_id: str | None = None) -> Any:
        return group.make(env_id or ids[index], **env_kwargs)

    def exchange(index: int, env: Any, env_id: str) -> Any:
        close_env(env)
        return make_env(index, env_id)

    runner = Runner(
        [make_env(i) for i in range(len(ids))], split="train", builder=builder, remake=make_env, course=course,
        exchange=exchange, pictures=pictures,
        first_episode=1_000_000 + seed * 100_000,  # apart from RL's own training episodes
        failures=EnvFailures(on_failure),
    )  # fmt: skip
    policy = NoisyOracle(config.noise, np.random.default_rng([seed, 1]))
    data: list[tuple[Prompt, torch.Tensor]] = []
    try:
        while len(data) < config.samples:
            for record in runner.step(policy):
                if record.extra is not None and record.parse != ENV_ERROR:
                    data.append((family.encode(record.messages), torch.tensor(family.encode_reply(record.extra))))
    finally:
        runner.close()
    return data, policy.replaced / policy.given


def warm_start(
    engine: Engine,
    env_ids: Sequence[str],
    config: WarmConfig,
    *,
    seed: int,
    env_kwargs: dict[str, Any] | None = None,
    max_new_tokens: int | None = None,
    on_check: Callable[[int, float, Check], None] | None = None,
    builder: PromptBuilder | None = None,
    on_failure: Callable[[Failure], object] = warn,
    group: EnvGroup = LOCAL,
    course: Course | None = None,
    pictures: str = SHOWN,
) -> WarmReport:
    """Train the whole model, vision tower included, on noisy oracle turns until the validation target or the last step.

    Args:
        engine: the model to train; left in eval mode.
        env_ids: environments, mixed evenly by turns.
        config: what to do.
        seed: of the data, the batches and the validation sampler.
        env_kwargs: arguments for every environment.
        max_new_tokens: limit of the replies; None sets the engine's to half as much again as the oracle's longest.
        on_check: called with (step, mean loss since the last check, validation).
        builder: prompt layout; by default each environment's own.
        on_failure: called with each failure of an environment, which is replaced.
        group: where the environments live.
        course: chooses the levels of the oracle's episodes.
        pictures: of the prompts, as `Runner` has them.

    Raises:
        UserError: an environment has no oracle, or a configured value is out of its range.
    """
    config.validate()
    report = WarmReport()
    steps = 600 if config.steps is None else config.steps
    if steps == 0:
        return report
    check_oracles(env_ids)
    start = time.perf_counter()
    family = engine.family
    data, report.labels_replaced = collect(
        env_ids, config, seed, env_kwargs or {}, family, builder, on_failure, group, course, pictures
    )
    report.samples = len(data)
    report.longest_reply = max(len(ids) for _, ids in data)
    if max_new_tokens is None:
        engine.max_new_tokens = report.longest_reply + max(4, report.longest_reply // 2)
    elif report.longest_reply > max_new_tokens:
        raise UserError(
            f"The oracle's replies have up to {report.longest_reply} tokens; "
            f"--max-new-tokens {max_new_tokens} would cut them off."
        )
    report.max_new_tokens = engine.max_new_tokens
    parameters = list(family.model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=config.lr, betas=(0.9, 0.95), weight_decay=0.0, foreach=True)
    order = torch.Generator().manual_seed(seed)
    losses: list[float] = []
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = config.lr * min(1.0, step / 50)
        batch = [data[i] for i in torch.randint(len(data), (config.batch,), generator=order).tolist()]
        ids, mask = pad_rows([reply for _, reply in batch], family.pad_id)
        ids, mask = ids.to(family.device), mask.to(family.device)
        logp = engine.score([prompt for prompt, _ in batch], ids, mask, train_vision=True)
        loss = -logp.sum() / mask.sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        report.steps = step
        if step % config.check_every == 0 or step == steps:
            report.loss, losses = float(np.mean(losses)), []
            check = validate(
                engine, env_ids, config.val_episodes, seed, env_kwargs or {}, builder, on_failure, group, pictures
            )
            report.success.append((step, check.success))
            if on_check is not None:
                on_check(step, report.loss, check)
            if check.success >= config.target:
                break
    optimizer.zero_grad(set_to_none=True)
    report.seconds = time.perf_counter() - start
    return report


def share_warm_start(report: WarmReport, engine: Engine, world: World) -> WarmReport:
    """Give every process the weights, the reply limit and the report of the first one, which alone made the warm
    start."""
    if world.size == 1:
        return report
    told = WarmReport(**distributed.first_says(asdict(report), world))
    distributed.take_over(engine.family.model.parameters(), world)
    engine.max_new_tokens = told.max_new_tokens
    return told


def validate(
    engine: Engine,
    env_ids: Sequence[str],
    episodes: int,
    seed: int,
    env_kwargs: dict[str, Any],
    builder: PromptBuilder | None = None,
    on_failure: Callable[[Failure], object] = warn,
    group: EnvGroup = LOCAL,
    pictures: str = SHOWN,
) -> Check:
    """A few validation episodes per environment, sampled at temperature 1; means over environments."""
    policy = ModelPolicy(engine, torch.Generator().manual_seed(seed))
    each = max(1, episodes // len(env_ids))
    reports = [
        evaluate(
            env_id, policy, episodes=each, split="val", num_envs=32, env_kwargs=env_kwargs, builder=builder,
            on_failure=on_failure, group=group, pictures=pictures,
        )
        for env_id in env_ids
    ]  # fmt: skip
    return Check(*(float(np.mean([getattr(r, name) for r in reports])) for name in Check._fields))


def show_check(step: int, loss: float, check: Check) -> None:
    """Print a validation."""
    print(
        f"  step {step:4d}  loss {loss:.3f}  success {check.success:.2f}  return {check.mean_return:+.2f}  "
        f"invalid {check.invalid_rate:.2f}",
        flush=True,
    )


def _flag(name: str) -> str:
    return f"--warm.{name.replace('_', '-')}"
