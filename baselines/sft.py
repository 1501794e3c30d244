"""Supervised warm start: imitate noisy oracle trajectories, and stop early, so that reinforcement learning has
something left to learn.

    python -m baselines.sft --env vlgym/NumberLine-v0 --out runs/warm

Trajectories come through `vlgym.rollout` with the environments' own oracles. On a stated share of the steps (`noise`)
the oracle's action is replaced by a random legal one, executed and imitated as it is, so the warm-started policy knows
the format and the picture but plays imperfectly. It is not a way to a good policy: that is what `baselines.vldac` is
for.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from vlgym.errors import UserError
from vlgym.evaluation import evaluate
from vlgym.making import make, unwrap
from vlgym.rollout import Runner
from vlgym.types import Reply, Turn

from .families import Family, Prompt, load_family
from .generate import Engine
from .policy import ModelPolicy, pad_rows
from .runs import environment_ids, prepare_folder, write_json

VAL_EPISODES = 96


@dataclass(frozen=True)
class WarmConfig:
    """The supervised warm start."""

    steps: int | None = None
    """Most gradient steps; 0 for no warm start. It ends earlier at `target`. Default 600."""
    target: float = 0.5
    """Stop as soon as this share of validation episodes succeeds, sampling at temperature 1; 1 trains all steps."""
    noise: float = 0.5
    """Share of steps whose label is a uniformly random legal action instead of the oracle's."""
    samples: int = 2048
    """Oracle turns to collect, in all environments together."""
    batch: int = 64
    """Turns per gradient step."""
    lr: float = 1e-3
    """Learning rate after 50 steps of warm-up."""
    check_every: int = 20
    """Gradient steps between validations."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        if not 0 <= self.noise <= 1 or not 0 <= self.target <= 1:
            raise UserError(f"warm start: noise {self.noise} and target {self.target} must be in [0, 1].")
        if (self.steps or 0) < 0 or min(self.samples, self.batch, self.check_every) < 1 or not self.lr > 0:
            raise UserError("warm start: steps must be >= 0; samples, batch and check-every >= 1; lr > 0.")


@dataclass
class WarmReport:
    """What the warm start did; part of the run's record, and plotted apart from what reinforcement learning does."""

    steps: int = 0
    samples: int = 0
    longest_reply: int = 0  # tokens
    labels_replaced: float = 0.0  # share of labels that are not the oracle's choice of reply
    seconds: float = 0.0
    success: list[tuple[int, float]] = field(default_factory=list)  # (gradient step, validation success)
    loss: float = math.nan


class NoisyOracle:
    """The oracle, except that a share of its actions is replaced by uniformly random legal ones.

    With the thoughts that belong to them.
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
            right = env.solve()
            text = right
            if right is None or self.rng.random() < self.noise:
                legal = env.legal_actions()
                action = legal[int(self.rng.integers(len(legal)))]
                text = env.parser.format([action], env.think(action))
            self.given += 1
            self.replaced += text != right
            replies.append(Reply(text or ""))
        return replies


def collect(
    env_ids: Sequence[str], config: WarmConfig, seed: int, env_kwargs: dict[str, Any], family: Family
) -> tuple[list[tuple[Prompt, torch.Tensor]], float]:
    """Play the noisy oracle; return (prompt, reply ids) pairs and the share of labels that differ from the oracle's."""
    envs = [make(env_id, **env_kwargs) for env_id in env_ids for _ in range(max(1, 16 // len(env_ids)))]
    for env in envs:
        if env.vlgym_spec is not None and env.vlgym_spec.oracle == "none":
            raise UserError(
                f"{env.vlgym_spec.id} has no oracle, so there is nothing to imitate; use --warm.steps 0 "
                "(reinforcement learning only) "
                "or an environment that `vlgym show` lists with an oracle."
            )
    runner = Runner(
        envs, split="train", first_episode=1_000_000 + seed * 100_000
    )  # apart from RL's own training episodes
    policy = NoisyOracle(config.noise, np.random.default_rng([seed, 1]))
    data: list[tuple[Prompt, torch.Tensor]] = []
    try:
        while len(data) < config.samples:
            for record in runner.step(policy):
                data.append((family.encode(record.messages), torch.tensor(family.encode_reply(record.reply))))
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
    on_check: Callable[[int, float, float], None] | None = None,
) -> WarmReport:
    """Train the whole model, vision tower included, on noisy oracle turns until the validation target or the last step.

    Args:
        engine: the model to train; left in eval mode.
        env_ids: environments, mixed evenly by turns.
        config: what to do.
        seed: of the data, the batches and the validation sampler.
        env_kwargs: arguments for every environment.
        max_new_tokens: limit of the replies; None sets the engine's to half as much again as the oracle's longest.
        on_check: called with (step, mean loss since the last check, validation success).

    Raises:
        UserError: an environment has no oracle, or a configured value is out of its range.
    """
    config.validate()
    report = WarmReport()
    steps = 600 if config.steps is None else config.steps
    if steps == 0:
        return report
    start = time.perf_counter()
    family = engine.family
    data, report.labels_replaced = collect(env_ids, config, seed, env_kwargs or {}, family)
    report.samples = len(data)
    report.longest_reply = max(len(ids) for _, ids in data)
    if max_new_tokens is None:
        engine.max_new_tokens = report.longest_reply + max(4, report.longest_reply // 2)
    elif report.longest_reply > max_new_tokens:
        raise UserError(
            f"The oracle's replies have up to {report.longest_reply} tokens; "
            f"--max-new-tokens {max_new_tokens} would cut them off."
        )
    optimizer = torch.optim.AdamW(
        family.model.parameters(), lr=config.lr, betas=(0.9, 0.95), weight_decay=0.0, foreach=True
    )
    order = torch.Generator().manual_seed(seed)
    losses: list[float] = []
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = config.lr * min(1.0, step / 50)
        batch = [data[i] for i in torch.randint(len(data), (config.batch,), generator=order).tolist()]
        ids, mask = pad_rows([reply for _, reply in batch], family.pad_id)
        ids, mask = ids.to(family.device), mask.to(family.device)
        logp = engine.score([prompt for prompt, _ in batch], ids, mask, train_vision=True)
        loss = -logp.sum() / mask.sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(family.model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        report.steps = step
        if step % config.check_every == 0 or step == steps:
            report.loss, losses = float(np.mean(losses)), []
            success = validate(engine, env_ids, seed, env_kwargs or {})
            report.success.append((step, success))
            if on_check is not None:
                on_check(step, report.loss, success)
            if success >= config.target:
                break
    optimizer.zero_grad(set_to_none=True)
    report.seconds = time.perf_counter() - start
    return report


def validate(engine: Engine, env_ids: Sequence[str], seed: int, env_kwargs: dict[str, Any]) -> float:
    """Mean success over a few validation episodes per environment, sampled at temperature 1."""
    policy = ModelPolicy(engine, torch.Generator().manual_seed(seed))
    reports = [
        evaluate(env_id, policy, episodes=VAL_EPISODES // len(env_ids), split="val", num_envs=32, env_kwargs=env_kwargs)
        for env_id in env_ids
    ]
    return float(np.mean([report.success for report in reports]))


@dataclass(frozen=True)
class Config:
    """Supervised warm start from oracle trajectories.

    Writes a model folder that `--model` of the other commands accepts.
    """

    env: str = "vlgym/NumberLine-v0"
    """Environment id, or several with commas between."""
    model: str = "tiny"
    """`tiny` (built offline), a folder, or the Hub name of a Qwen2-VL or Qwen2.5-VL model."""
    out: Path = Path("runs/warm")
    """Folder for the model and the report; must be new or empty."""
    seed: int = 0
    """Seed of initialisation, data and batches."""
    max_new_tokens: int | None = None
    """Longest reply in tokens; default half as much again as the oracle's longest."""
    image_tokens: int | None = None
    """Most tokens per image; default 16 for tiny, 256 for published models."""
    device: str = "cpu"
    """Torch device."""
    warm: WarmConfig = field(default_factory=WarmConfig)
    """The training itself."""


def run(config: Config) -> WarmReport:
    """Train and save; return the report."""
    env_ids = environment_ids(config.env)
    config.warm.validate()
    family = load_family(config.model, image_tokens=config.image_tokens, seed=config.seed, device=config.device)
    prepare_folder(config.out)
    engine = Engine(family, max_new_tokens=config.max_new_tokens or 128)
    print(f"warm start on {', '.join(env_ids)}: {config.warm.noise:.0%} of the labels are random legal actions")

    def show(step: int, loss: float, success: float) -> None:
        print(f"step {step:4d}  loss {loss:.4f}  validation success {success:.2f}", flush=True)

    report = warm_start(
        engine, env_ids, config.warm, seed=config.seed, max_new_tokens=config.max_new_tokens, on_check=show
    )
    family.model.save_pretrained(config.out)
    family.tokenizer.save_pretrained(config.out)
    write_json(config.out / "warm.json", {"config": asdict(config), "report": asdict(report)})
    print(f"saved {config.out} after {report.steps} steps and {report.seconds:.0f} s")
    return report


def main() -> None:
    """Command line."""
    try:
        run(tyro.cli(Config, description=__doc__))
    except UserError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
