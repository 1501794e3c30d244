"""VL-DAC: reinforcement learning of a vision-language model on any registered environment.

    python -m baselines.vldac --env vlgym/NumberLine-v0
    python -m baselines.vldac --env vlgym/EZPoints-v0,vlgym/NumberLine-v0 --model Qwen/Qwen2-VL-2B-Instruct --device
    cuda python -m baselines.vldac --resume --out runs/NumberLine-001

The method (Bredis et al., AAMAS 2026, arXiv 2508.04280): token-level clipped PPO, averaged over a reply's tokens and
then over steps (eq. 3); one step-level GAE advantage per environment step; a value MLP on the hidden state of the last
prompt token behind a stop-gradient (eq. 4); a per-token KL penalty to the reference (eq. 5), the model as it was before
reinforcement learning; the first updates train the value head alone.

Where this file departs from the paper or says what the paper leaves open:
- all weights of the language model are trained, not LoRA adapters; the vision tower is frozen (its features are
  computed once per image);
- the value head has its own optimizer and learning rate, so the value coefficient (alpha in eq. 6) has nothing to weigh
  and is left out; it reads the hidden states stored at rollout, which the policy of the same update wrote;
- truncated episodes bootstrap with V(final observation), terminated ones do not; the published code treats both as
  terminal;
- sampling is real sampling at temperature 1 over the whole vocabulary less the special tokens; the published code
  samples greedily;
- `pi_old` is the log-probability noted while sampling; it agrees with the scorer's to float32 rounding, and every
  update reports how well;
- the learning rate falls by a cosine from the first update that trains the policy; clip range, rollout length and reply
  length are ours (not given in the paper).
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor

from vlgym.errors import UserError

from . import losses, runs
from .collect import Batch
from .session import Session, interruptible
from .sft import WarmConfig

FREE_ON_RESUME = frozenset(
    {"out", "resume", "updates", "save_every", "eval_every", "eval_episodes", "threads", "track"}
)
MAX_SKIPS = 3  # non-finite gradient steps in a row before giving up

Stats = dict[str, list[float]]


@dataclass(frozen=True)
class Config:
    """Train a vision-language model by VL-DAC.

    Writes checkpoints, log.jsonl, TensorBoard files and curve.png to its run folder.
    """

    env: str | None = None
    """Environment id, or several with commas between (mixed evenly); default vlgym/NumberLine-v0.

    All ids: `vlgym list`.
    """
    model: str | None = None
    """tiny (built offline; the default), a folder, or the Hub name of a Qwen2-VL or Qwen2.5-VL model."""
    out: Path | None = None
    """Folder of the run, new or empty; default runs/<environment>-<number>."""
    resume: bool = False
    """Go on with the run in --out, exactly where its newest checkpoint stands."""
    seed: int = 0
    """Seed of weights, warm start, sampling and minibatches."""
    updates: int = 80
    """Updates in all. Environment steps = updates * num_envs * rollout_steps."""
    num_envs: int = 32
    """Environments played side by side."""
    rollout_steps: int = 8
    """Steps of each environment per update."""
    epochs: int = 2
    """Passes over a rollout."""
    minibatch: int = 64
    """Environment steps per gradient step."""
    micro_batch: int = 64
    """Environment steps per forward pass; smaller takes less memory and gives the same gradient."""
    lr: float | None = None
    """First learning rate of the policy; default 3e-4 for tiny, 1e-6 for published models."""
    final_lr: float = 0.05
    """Last learning rate as a share of the first (cosine)."""
    value_lr: float = 1e-3
    """Learning rate of the value head."""
    value_warmup: int = 2
    """First updates, which train the value head alone."""
    clip: float = 0.2
    """PPO's clip range."""
    gamma: float = 0.9
    """Discount. Take 0.99 where episodes are long."""
    gae_lambda: float = 0.95
    """GAE's lambda."""
    kl_coef: float = 0.05
    """Weight of the KL to the reference (beta of eq. 6); 0 keeps no reference model."""
    kl_estimator: losses.KLEstimator = "k3"
    """Estimator of the per-token KL."""
    max_grad_norm: float = 1.0
    """Gradient norm limit of the policy."""
    max_new_tokens: int | None = None
    """Longest reply in tokens.

    Default half as much again as the oracle's longest in the warm start, 128 without one.
    """
    image_tokens: int | None = None
    """Most tokens per image; default 16 for tiny, 256 for published models."""
    parser: str | None = None
    """Reply style; default each environment's own."""
    invalid_action: str = "noop"
    """What an unreadable or illegal reply does: noop, random or terminate."""
    invalid_penalty: float = 0.0
    """Subtracted from the reward of such a reply."""
    warm: WarmConfig = field(default_factory=WarmConfig)
    """Supervised warm start; by default for tiny only (a published model needs none)."""
    scoring: str = "auto"
    """How replies are scored.

    Shared (each distinct prompt once), flat (the library's forward pass) or auto (shared on CPU).
    """
    eval_episodes: int = 200
    """Held-out episodes (split test) per environment, before and after."""
    eval_every: int = 0
    """Updates between further held-out evaluations; 0 for none."""
    save_every: int = 10
    """Updates between checkpoints."""
    device: str = "cpu"
    """Torch device."""
    dtype: str = "float32"
    """float32 or bfloat16."""
    threads: int = 0
    """CPU threads of torch; 0 leaves torch's choice. Another number may change the last bits."""
    track: str = "none"
    """none, wandb or trackio."""

    def resolve(self) -> Config:
        """Fill in what depends on the model, and check ranges.

        Raises:
            UserError: a value is out of its range.
        """
        model = self.model or "tiny"
        tiny = model == "tiny"
        warm_steps = self.warm.steps if self.warm.steps is not None else (600 if tiny else 0)
        config = replace(
            self,
            env=self.env or "vlgym/NumberLine-v0",
            model=model,
            lr=self.lr if self.lr is not None else (3e-4 if tiny else 1e-6),
            warm=replace(self.warm, steps=warm_steps),
        )
        positive = (
            "updates", "num_envs", "rollout_steps", "epochs", "minibatch", "micro_batch", "lr", "value_lr", "clip",
            "save_every", "eval_episodes",
        )  # fmt: skip
        for name in positive:
            if not getattr(config, name) > 0:
                raise UserError(f"--{name.replace('_', '-')} {getattr(config, name)} must be > 0.")
        for name in ("gamma", "gae_lambda", "final_lr"):
            if not 0 <= getattr(config, name) <= 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(config, name)} must be in [0, 1].")
        if config.scoring not in ("auto", "shared", "flat"):
            raise UserError(f"--scoring {config.scoring} is not one of auto, shared, flat.")
        if config.device != "cpu" and not torch.cuda.is_available():
            raise UserError(f"--device {config.device}: no such accelerator here; use --device cpu.")
        config.warm.validate()
        return config


class VLDAC:
    """The learner: `train_on` one rollout. Everything around it is the `Session`'s."""

    def __init__(self, session: Session) -> None:
        c = self.config = session.config
        self.session = session
        self.policy_optimizer = torch.optim.AdamW(
            session.parameters, lr=c.lr, betas=(0.9, 0.95), weight_decay=0.0, foreach=True
        )
        self.value_optimizer = torch.optim.AdamW(session.value.parameters(), lr=c.value_lr, weight_decay=0.0)
        self.flat = c.scoring == "flat" or (c.scoring == "auto" and c.device != "cpu")
        self.skips = self.skips_in_a_row = 0

    def learning_rate(self, update: int) -> float:
        """Of the policy at an update (from 1).

        0 while the value head warms up, then a cosine from `lr` to `lr * final_lr`.
        """
        c = self.config
        if update <= c.value_warmup:
            return 0.0
        share = (update - c.value_warmup - 1) / max(1, c.updates - c.value_warmup - 1)
        return c.lr * (c.final_lr + (1 - c.final_lr) * 0.5 * (1 + math.cos(math.pi * min(1.0, share))))

    @torch.no_grad()
    def add_reference(self, batch: Batch) -> None:
        """Log-probabilities of the batch under the frozen reference."""
        if self.session.reference is not None:
            chunks = torch.arange(len(batch.samples)).split(max(self.config.micro_batch, self.config.minibatch))
            batch.ref = torch.cat([batch.score(self.session.reference, index, flat=self.flat) for index in chunks])

    def check_log_probs(self, batch: Batch) -> dict[str, float]:
        """How far the scorer is from the sampler on one micro-batch, before any update: rounding, or a bug."""
        index = torch.arange(min(len(batch.samples), self.config.micro_batch))
        with torch.no_grad():
            gap = (batch.score(self.session.engine, index, flat=self.flat) - batch.old[index]).abs()[batch.mask[index]]
        names = ("mean", "p95", "max")
        return {
            f"rollout/logp_diff_{n}": float(x)
            for n, x in zip(names, (gap.mean(), gap.quantile(0.95), gap.max()), strict=True)
        }

    def train_on(self, batch: Batch, update: int) -> dict[str, float]:
        """`epochs` passes over the rollout in random minibatches; returns the means of the losses."""
        c, stats = self.config, defaultdict(list)
        lr = self.learning_rate(update)
        for group in self.policy_optimizer.param_groups:
            group["lr"] = lr
        for _ in range(c.epochs):
            for index in torch.randperm(len(batch.samples), generator=self.session.order).split(c.minibatch):
                value_loss = losses.value_loss(self.session.value(batch.hidden[index]), batch.returns[index])
                value_loss.backward()
                stats["loss/value"].append(value_loss.item())
                self._step(
                    self.value_optimizer, list(self.session.value.parameters()), value_loss.item(), stats, "value"
                )
                if lr > 0:
                    self._policy_step(batch, index, stats)
        for name in ("loss/policy", "loss/kl", "loss/clip_fraction", "loss/approx_kl", "loss/ratio_max"):
            stats.setdefault(name, [0.0])  # the value head's warm-up
        return {name: float(np.mean(values)) for name, values in stats.items()} | {
            "policy/lr": lr,
            "skipped": self.skips,
        }

    def _policy_step(self, batch: Batch, index: Tensor, stats: Stats) -> None:
        """One gradient step on policy loss + beta * KL (eq. 6), accumulated over micro-batches."""
        c, total = self.config, 0.0
        for micro in index.split(c.micro_batch):
            mask, share = batch.mask[micro], len(micro) / len(index)
            new = batch.score(self.session.engine, micro, flat=self.flat)
            policy = losses.token_ppo_loss(new, batch.old[micro], mask, batch.advantages[micro], clip=c.clip)
            loss = policy.loss
            if batch.ref is not None:
                kl = losses.token_mean(losses.kl_estimate(new, batch.ref[micro], mask, c.kl_estimator), mask).mean()
                loss = loss + c.kl_coef * kl
                stats["loss/kl"].append(kl.item())
            (loss * share).backward()
            total += loss.item() * share
            for name in ("loss", "clip_fraction", "approx_kl", "ratio_max"):
                stats["loss/policy" if name == "loss" else f"loss/{name}"].append(getattr(policy, name).item())
        self._step(self.policy_optimizer, self.session.parameters, total, stats, "policy")

    def _step(
        self, optimizer: torch.optim.Optimizer, parameters: list[Tensor], loss: float, stats: Stats, name: str
    ) -> None:
        """Clip and step. A non-finite loss or gradient is skipped and counted; `MAX_SKIPS` in a row end the run."""
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm))
        stats[f"{name}/grad_norm"].append(norm)
        if math.isfinite(loss) and math.isfinite(norm):
            optimizer.step()
            self.skips_in_a_row = 0
        else:
            self.skips += 1
            self.skips_in_a_row += 1
        optimizer.zero_grad(set_to_none=True)
        if self.skips_in_a_row >= MAX_SKIPS:
            raise UserError(
                f"{MAX_SKIPS} gradient steps in a row had a non-finite {name} loss or gradient; "
                "the newest checkpoint is intact. Resume from it with a smaller --lr, or with --dtype float32."
            )


class Clock:
    """Seconds per phase of one update."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a block."""
        start = time.perf_counter()
        yield
        self.seconds[f"seconds/{name}"] = time.perf_counter() - start


def saved_config(asked: Config) -> Config:
    """The configuration of the run to resume; what was asked for beyond it must be free to change.

    Raises:
        UserError: no --out, no run there, or an option that contradicts the run.
    """
    if asked.out is None:
        raise UserError("--resume needs the run's folder: --resume --out runs/...")
    saved, default = runs.read_run(asked.out)["config"], Config()
    values: dict[str, Any] = {}
    for item in fields(Config):
        value = getattr(asked, item.name)
        before = WarmConfig(**saved["warm"]) if item.name == "warm" else saved.get(item.name)
        if value == getattr(default, item.name):
            values[item.name] = before
        elif item.name in FREE_ON_RESUME or value == before:
            values[item.name] = value
        else:
            raise UserError(
                f"The run in {asked.out} has --{item.name.replace('_', '-')} {before}, but {value} "
                "was asked for. Leave that option out to go on with the run as it was, "
                "or start a new run in another --out."
            )
    return replace(Config(**values), out=asked.out, resume=True)


def train(config: Config) -> Session:
    """Run (or resume) a training and return its session, closed."""
    config = (saved_config(config) if config.resume else config).resolve()
    if config.threads:
        torch.set_num_threads(config.threads)
    session = Session(config, "VL-DAC")
    learner = VLDAC(session)
    session.begin({"policy": learner.policy_optimizer, "value": learner.value_optimizer})
    session.log.say(f"run folder: {session.out}")
    if not config.resume:
        session.evaluate()
        session.save()
    with interruptible() as flag:
        while session.update < config.updates and not flag["stop"]:
            clock = Clock()
            session.engine.forget()  # an update depends on nothing computed before it, so that resuming is exact
            with clock.phase("rollout"):
                batch, row = session.collector.collect()
            with clock.phase("reference"):
                learner.add_reference(batch)
            with clock.phase("check"):
                row |= learner.check_log_probs(batch)
            with clock.phase("update"):
                row |= learner.train_on(batch, session.update + 1)
            session.update += 1
            seconds = sum(clock.seconds.values())
            speed = {
                "speed/env_steps_per_s": len(batch.samples) / seconds,
                "speed/tokens_per_s": int(batch.mask.sum()) / seconds,
            }
            session.log.write(
                {"update": session.update, "env_steps": session.env_steps, **row, **clock.seconds, **speed}
            )
            last = session.update == config.updates
            if config.eval_every and session.update % config.eval_every == 0 and not last:
                session.evaluate()
            if session.update % config.save_every == 0 or last or flag["stop"]:
                session.save()
    if session.update >= config.updates:
        session.evaluate()
        session.save()
        session.log.say(f"model: {session.save_model()}")
    else:
        session.log.say(
            f"stopped after update {session.update}. Go on: python -m baselines.vldac --resume --out {session.out}"
        )
    session.log.say(f"learning curve: {session.draw()}")
    session.close()
    return session


def main() -> None:
    """Command line."""
    try:
        train(tyro.cli(Config, description=__doc__))
    except UserError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
