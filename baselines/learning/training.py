"""The loop that all learners share, and the gradient step that those which optimise a clipped policy loss share.

A learner is a small class: which rollouts it collects and what it does with them. `train` does the rest: rollout,
update, log, checkpoints, evaluation, Ctrl-C, resume.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
import tyro
from torch import Tensor

from vlgym.errors import UserError

from ..runs import distributed
from . import losses, presets
from .collect import Batch, Collector, GroupCollector
from .config import RunConfig, saved_config
from .losses import PolicyLoss
from .session import Session

MAX_SKIPS = 3  # non-finite gradient steps in a row before giving up
FAILURES_FILE = "failures.jsonl"  # environments that raised, one line each
POLICY_FIGURES = ("loss/policy", "loss/kl", "loss/clip_fraction", "loss/approx_kl", "loss/ratio_max")

Stats = dict[str, list[float]]


class Learner:
    """What differs between algorithms. Subclasses set `name`, `command` and `Config`, make `collector`, and define
    `train_on`.

    Attributes:
        optimizers: by name; saved and restored with the run.
        collector: plays the rollouts.
    """

    name: ClassVar[str]
    command: ClassVar[str]  # the module that `python -m` runs
    Config: ClassVar[type[RunConfig]]
    needs_reference: ClassVar[bool] = False  # keep the frozen model even without a KL term
    collector: Collector | GroupCollector

    def __init__(self, session: Session) -> None:
        c = self.config = session.config
        self.session = session
        self.policy_optimizer = torch.optim.AdamW(
            session.parameters, lr=c.lr, betas=(0.9, 0.95), weight_decay=0.0, foreach=True
        )
        self.optimizers: dict[str, torch.optim.Optimizer] = {"policy": self.policy_optimizer}
        self.flat = c.scoring == "flat" or (c.scoring == "auto" and c.device != "cpu")
        self.skips = self.skips_in_a_row = 0

    # ---- what a learner defines --------------------------------------------------------------------------------------

    def train_on(self, batch: Batch, update: int) -> dict[str, float]:
        """Learn from one rollout; return the means of the losses."""
        raise NotImplementedError

    def policy_loss(self, new: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> PolicyLoss:
        """The policy loss of some rows, weighted; the contributions of all rows of a minibatch add up to its loss."""
        return losses.token_ppo_loss(
            new, batch.old[rows], batch.mask[rows], batch.advantages[rows], clip=self.config.clip, weights=weights
        )

    def weights(self, batch: Batch, rows: Tensor, size: int) -> Tensor:
        """Weight of each row, [b], in a minibatch of `size` units over all processes: here every step counts alike."""
        return torch.full((len(rows),), 1.0 / size, device=batch.old.device)

    def warming_up(self, update: int) -> bool:
        """Whether the policy rests in this update."""
        return False

    def tensors(self) -> dict[str, Tensor]:
        """Further tensors of a checkpoint."""
        return {}

    def state(self) -> dict[str, Any]:
        """Further JSON-able state of a checkpoint."""
        return {"skips": self.skips, "skips_in_a_row": self.skips_in_a_row}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Restore `tensors` and `state`."""
        self.skips, self.skips_in_a_row = state["skips"], state["skips_in_a_row"]

    # ---- shared steps ------------------------------------------------------------------------------------------------

    def learning_rate(self, update: int) -> float:
        """Of the policy at an update (from 1).

        0 while the value head warms up, then a cosine from `lr` to `lr * final_lr`.
        """
        c = self.config
        if self.warming_up(update):
            return 0.0
        resting = getattr(c, "value_warmup", 0)
        if c.env_steps is None:
            share = (update - resting - 1) / max(1, c.updates - resting - 1)
        else:
            share = self.session.env_steps / c.env_steps
        return c.lr * (c.final_lr + (1 - c.final_lr) * 0.5 * (1 + math.cos(math.pi * min(1.0, share))))

    def set_learning_rate(self, update: int) -> float:
        """Give the policy's optimizer its rate."""
        lr = self.learning_rate(update)
        for group in self.policy_optimizer.param_groups:
            group["lr"] = lr
        return lr

    @torch.no_grad()
    def add_reference(self, batch: Batch) -> None:
        """Log-probabilities of the batch under the frozen reference."""
        if self.session.reference is not None:
            rows = torch.arange(len(batch.samples))
            batch.ref = torch.zeros_like(batch.old)
            for part in self.micro(batch, rows):
                batch.ref[part] = batch.score(self.session.reference, part, flat=self.flat)

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

    def minibatches(self, batch: Batch) -> Iterator[tuple[Tensor, int]]:
        """One pass over the rollout in random order: (rows of this process, units of all processes) per gradient
        step."""
        world, mine = self.session.world, len(batch.units)
        n, everyone = self.session.num_envs, self.session.num_envs * self.session.world.size
        for part in torch.randperm(mine * world.size, generator=self.session.order).split(self.config.minibatch):
            # Global unit g is step g // everyone of environment g % everyone; process r has those from r n to r n + n.
            units = [g // everyone * n + g % n for g in part.tolist() if g % everyone // n == world.rank]
            rows = [row for unit in units for row in batch.units[unit]]
            yield torch.tensor(rows, dtype=torch.int64), len(part)

    def micro(self, batch: Batch, rows: Tensor) -> list[Tensor]:
        """Split rows into forward passes: by number, or by tokens with rows of similar length together."""
        c = self.config
        if c.micro_tokens is None:
            return list(rows.split(c.micro_batch)) if len(rows) else []
        lengths = [len(batch.samples[i].prompt) + len(batch.samples[i].ids) for i in rows.tolist()]
        parts: list[list[int]] = []
        for at in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
            # The longest row comes first, so its length is what every row of the pass is padded to.
            if parts and (len(parts[-1]) + 1) * lengths[parts[-1][0]] <= c.micro_tokens:
                parts[-1].append(at)
            else:
                parts.append([at])
        return [rows[torch.tensor(part)] for part in parts]

    def policy_step(self, batch: Batch, rows: Tensor, size: int, stats: Stats) -> None:
        """One gradient step on policy loss + beta * KL (VL-DAC eq. 6), accumulated over micro-batches."""
        c, total = self.config, 0.0
        for part in self.micro(batch, rows):
            mask, weights = batch.mask[part], self.weights(batch, part, size)
            new, states = batch.score_states(self.session.engine, part, flat=self.flat, train_vision=c.train_vision)
            policy = self.policy_loss(new, batch, part, weights)
            loss = policy.loss + self.further_loss(states, batch, part, weights)
            if batch.ref is not None:
                kl = losses.kl_estimate(new, batch.ref[part], mask, c.kl_estimator)
                kl = (losses.token_mean(kl, mask) * weights).sum()
                loss = loss + c.kl_coef * kl
                stats["loss/kl"].append(float(kl.detach()) / float(weights.sum()))
            loss.backward()
            total += float(loss.detach())
            stats["loss/policy"].append(float(policy.loss.detach()) / float(weights.sum()))
            for name in ("clip_fraction", "approx_kl", "ratio_max"):
                stats[f"loss/{name}"].append(getattr(policy, name).item())
        self.step("policy", self.session.parameters, total, stats)

    def further_loss(self, states: Tensor, batch: Batch, rows: Tensor, weights: Tensor) -> Tensor | float:
        """What else the policy's gradient step minimises, given the states of the prompts under the current weights."""
        return 0.0

    def step(self, name: str, parameters: Sequence[Tensor], loss: float, stats: Stats) -> None:
        """Clip and step one optimizer. A non-finite loss or gradient is skipped and counted; `MAX_SKIPS` in a row end
        the run."""
        optimizer, world = self.optimizers[name], self.session.world
        distributed.sum_gradients(parameters, world)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm))
        stats[f"{name}/grad_norm"].append(norm)
        if distributed.any_of(not (math.isfinite(loss) and math.isfinite(norm)), world):
            self.skips += 1
            self.skips_in_a_row += 1
        else:
            optimizer.step()
            self.skips_in_a_row = 0
        optimizer.zero_grad(set_to_none=True)
        if self.skips_in_a_row >= MAX_SKIPS:
            raise UserError(
                f"{MAX_SKIPS} gradient steps in a row had a non-finite {name} loss or gradient; "
                "the newest checkpoint is intact. Resume from it with a smaller --lr, or with --dtype float32."
            )

    def means(self, stats: Stats, lr: float) -> dict[str, float]:
        """The figures of an update for the log."""
        for name in POLICY_FIGURES:
            stats.setdefault(name, [0.0])  # where the policy rested, or no KL is taken
        return {name: float(np.mean(values)) for name, values in stats.items()} | {
            "policy/lr": lr,
            "skipped": float(self.skips),
        }


# ---- the loop --------------------------------------------------------------------------------------------------------


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


@contextmanager
def memory_advice(advice: str) -> Iterator[None]:
    """Turn running out of memory into an error that says what to try.

    Raises:
        UserError: memory ran out in the block.
    """
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if known or "can't allocate memory" in str(error) or "not enough memory" in str(error):
            first = str(error).split("\n")[0]
            raise UserError(f"Out of memory ({first}). The newest checkpoint is intact; {advice}") from error
        raise


def peak_memory(device: torch.device) -> int:
    """Most bytes allocated on an accelerator, or by this process, since it began."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def one_update(session: Session, learner: Learner) -> None:
    """Collect, learn, log."""
    c, clock = session.config, Clock()
    resume = f"python -m {session.command} --resume --out {session.out}"
    session.engine.forget()  # an update depends on nothing computed before it, so that resuming is exact
    session.sampler.forget()
    session.refresh_sampler()
    fewer = "start anew with smaller --num-envs, --image-tokens or --max-new-tokens."
    with clock.phase("rollout"), memory_advice(fewer):
        batch, row = learner.collector.collect()
    failures = learner.collector.failures()
    smaller = f"go on with less at once: {resume} --micro-batch {max(1, c.micro_batch // 2)}"
    if not c.recompute:
        smaller += ", or with --recompute"
    with memory_advice(smaller):
        with clock.phase("reference"):
            learner.add_reference(batch)
        with clock.phase("check"):
            row |= learner.check_log_probs(batch)
        with clock.phase("update"):
            row |= learner.train_on(batch, session.update + 1)
    row = distributed.mean(row | {"env/failures": float(len(failures))}, session.world)
    write_failures(session, failures)
    steps = len(batch.samples) * session.world.size
    if isinstance(learner.collector, GroupCollector) and session.world.size > 1:
        steps = sum(map(int, distributed.gather_texts(str(len(batch.samples)), session.world)))
    session.update += 1
    session.env_steps += steps
    seconds = sum(clock.seconds.values())
    speed = {
        "speed/env_steps_per_s": steps / seconds,
        "speed/tokens_per_s": int(batch.mask.sum()) * session.world.size / seconds,
        "speed/peak_memory_gib": peak_memory(session.family.device) / 2**30,
    }
    session.log.write({"update": session.update, "env_steps": session.env_steps, **row, **clock.seconds, **speed})


def write_failures(session: Session, failures: list[dict[str, Any]]) -> None:
    """Record environments that raised; they have been restarted."""
    if failures:
        with (session.out / FAILURES_FILE).open("a") as file:
            file.writelines(json.dumps({"update": session.update + 1, **failure}) + "\n" for failure in failures)
        session.log.say(f"{len(failures)} environment failures, restarted; see {session.out / FAILURES_FILE}")


def train(learner_class: type[Learner], config: RunConfig) -> Session:
    """Run (or resume) a training and return its session, closed."""
    config = (saved_config(config) if config.resume else config).resolve()
    if config.threads:
        torch.set_num_threads(config.threads)
    world = distributed.join(config.device)
    session = Session(
        config, learner_class.name, learner_class.command, world, needs_reference=learner_class.needs_reference
    )
    try:
        run(session, learner_class)
    finally:
        session.release()
    distributed.wait(world)
    return session


def run(session: Session, learner_class: type[Learner]) -> None:
    """Train from where the session stands to its end, or to Ctrl-C."""
    config, world = session.config, session.world
    learner = learner_class(session)
    session.begin(learner)
    session.log.say(f"run folder: {session.out}")
    if not config.resume:
        session.evaluate()
        session.save()

    def finished() -> bool:
        done = session.update >= config.updates
        return done or (config.env_steps is not None and session.env_steps >= config.env_steps)

    with interruptible() as flag:
        while not finished() and not distributed.any_of(flag["stop"], world):
            one_update(session, learner)
            if config.eval_every and session.update % config.eval_every == 0 and not finished():
                session.evaluate()
            if session.update % config.save_every == 0 or finished() or distributed.any_of(flag["stop"], world):
                session.save()
    if finished():
        session.evaluate()
        session.save()
        if world.first:
            session.log.say(f"model: {', '.join(map(str, session.save_model()))}")
    else:
        session.log.say(
            f"stopped after update {session.update}. Go on: python -m {session.command} --resume --out {session.out}"
        )
    if world.first:
        session.log.say(f"learning curve: {session.draw()}")
    session.close()


def main(learner_class: type[Learner], description: str | None) -> None:
    """Command line of a learner."""
    try:
        asked = tyro.cli(learner_class.Config, description=description, default=presets.chosen(learner_class.Config))
        train(learner_class, asked)
    except UserError as error:
        sys.exit(f"error: {error}")
    finally:
        distributed.leave()
