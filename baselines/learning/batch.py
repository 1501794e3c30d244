"""One rollout as tensors: minibatches, forward passes, log-probabilities, gradient steps, metrics.

Replies are sampled by one computation and scored by another: other shapes, other kernels. Rounding
makes the two differ a little; a bug makes them differ a lot, and every ratio of the update is then
wrong. Each update measures the difference before its first gradient step, and may end the run.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from vlgym.errors import FailedError

from ..engine.engine import Engine, Sample, pad_rows
from ..models.family import Prompt
from ..runs import distributed
from ..runs.distributed import ALONE, World, is_out_of_memory, peak_memory, share_of
from ..runs.folder import load_optimizer, optimizer_tensors
from .losses import PolicyLoss


@dataclass
class Batch:
    """One rollout, flat: B environment steps."""

    samples: list[Sample]  # with the exact prompt of each step
    spans: list[tuple[int, int] | None]  # characters of each reply's action, if one was read
    ids: Tensor  # [B, R] int64
    mask: Tensor  # [B, R] bool
    old: Tensor  # [B, R] float32, log-probabilities when sampled
    hidden: Tensor  # [B, H] float32, states of the last prompt tokens
    advantages: Tensor  # [B] float32, one per environment step
    returns: Tensor  # [B] float32
    units: list[list[int]]  # rows that minibatches count as one: a step, or the steps of an episode
    ref: Tensor | None = None  # [B, R] float32, log-probabilities under the reference
    values: Tensor | None = None  # [B] float32, a critic's of each state when it was answered


def lay_out(samples: Sequence[Sample], spans: Sequence[tuple[int, int] | None], pad_id: int) -> Batch:
    """Samples as a batch of single steps; advantages and returns are zero."""
    ids, mask = pad_rows([sample.ids for sample in samples], pad_id)
    old, _ = pad_rows([sample.logp for sample in samples], 0.0)
    hidden = torch.stack([sample.hidden for sample in samples])
    zeros = torch.zeros(len(samples), device=old.device)
    units = [[i] for i in range(len(samples))]
    return Batch(list(samples), list(spans), ids, mask, old, hidden, zeros, zeros.clone(), units)


def moments(batch: Batch) -> dict[str, float]:
    """Mean and deviation of returns, values and advantages before normalisation."""
    advantages = batch.advantages if batch.values is None else batch.returns - batch.values
    if not advantages.isfinite().all():
        return {}
    named = {"returns": batch.returns, "values": batch.values, "advantages": advantages}
    numbers = {}
    for name, x in named.items():
        if x is not None:
            numbers[f"rollout/{name}_mean"] = float(x.mean())
            numbers[f"rollout/{name}_std"] = float(x.std(correction=0))
    return numbers


# ---- cutting -------------------------------------------------------------------------------------


def minibatches(
    units: Sequence[list[int]], size: int, world: World, generator: torch.Generator
) -> Iterator[tuple[Tensor, int]]:
    """Yield a pass over a rollout in random order: (rows of this process, units of all)."""
    share = share_of(size, world.size, "--minibatch")
    for part in torch.randperm(len(units), generator=generator).split(share):
        rows = [row for unit in part.tolist() for row in units[unit]]
        yield torch.tensor(rows, dtype=torch.int64), len(part) * world.size


@dataclass(frozen=True)
class Passes:
    """Forward passes of a batch."""

    rows: int = 64  # most of one
    tokens: int | None = None  # most of one instead, padding counted; rows are sorted by length
    train_vision: bool = False  # gradients reach the vision tower


def micro_batches(batch: Batch, rows: Tensor, passes: Passes) -> list[Tensor]:
    """Split rows into forward passes."""
    if passes.tokens is None:
        return list(rows.split(passes.rows)) if len(rows) else []
    lengths = [len(batch.samples[i].prompt) + len(batch.samples[i].ids) for i in rows.tolist()]
    parts: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        # The longest row comes first, so its length is what every row of the pass is padded to.
        if parts and (len(parts[-1]) + 1) * lengths[parts[-1][0]] <= passes.tokens:
            parts[-1].append(at)
        else:
            parts.append([at])
    return [rows[torch.tensor(part)] for part in parts]


# ---- log-probabilities ---------------------------------------------------------------------------


def score(engine: Engine, batch: Batch, rows: Tensor, passes: Passes) -> tuple[Tensor, Tensor]:
    """Log-probabilities [b, R] of rows [b] under an engine's weights, and their states [b, H]."""
    prompts = [batch.samples[i].prompt for i in rows.tolist()]
    train_vision = passes.train_vision and torch.is_grad_enabled()
    return engine.score_states(prompts, batch.ids[rows], batch.mask[rows], train_vision=train_vision)


@torch.no_grad()
def log_probs(engine: Engine | None, batch: Batch, passes: Passes) -> Tensor | None:
    """Log-probabilities [B, R] of the whole batch under an engine's weights; None without one."""
    if engine is None:
        return None
    logp = torch.zeros_like(batch.old)
    # Equal prompts are neighbours, so that one pass runs them once.
    alike = sorted(range(len(batch.samples)), key=lambda row: batch.samples[row].prompt.key)
    for part in micro_batches(batch, torch.tensor(alike), passes):
        logp[part] = score(engine, batch, part, passes)[0]
    return logp


CHECKED = 16  # most replies of an update that are checked; a bug shows in every one


@torch.no_grad()
def check_log_probs(engine: Engine, batch: Batch, passes: Passes, limit: float | None) -> dict[str, float]:
    """Return the differences of scorer and sampler per token; a `FailedError` beyond `limit`."""
    rows = torch.arange(min(len(batch.samples), passes.rows, CHECKED))
    gap = (score(engine, batch, rows, passes)[0] - batch.old[rows]).abs()[batch.mask[rows]]

    # Rounding stays far below the limit; NaN is beyond it.
    mean, p95, largest = float(gap.mean()), float(gap.quantile(0.95)), float(gap.max())
    if limit and not mean <= limit:
        dtype = str(engine.family.model.dtype).removeprefix("torch.")
        coarse = f", or {dtype} is too coarse for this model (try --dtype float32)"
        raise FailedError(
            f"Sampler and scorer disagree: their log-probabilities differ by {mean:.2g} per token on average "
            f"(95 % by less than {p95:.2g}, at most {largest:.2g}), which is more than --max-logp-gap "
            f"{limit:g}. One of them has other weights or sees other pictures, a bug"
            f"{'' if dtype == 'float32' else coarse}."
        )
    differences = {"mean": mean, "p95": p95, "max": largest}
    return {f"rollout/logp_diff_{name}": x for name, x in differences.items()}


# ---- memory -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemoryProbe:
    """The largest pass that fits into memory, of `rows` rows as long as `tokens`."""

    passes: Passes
    rows: int
    tokens: int
    peak: int  # bytes
    seconds: float  # of one row

    def __str__(self) -> str:
        size = f"{self.rows} rows of {self.tokens} tokens a pass, peak {self.peak / 2**30:.2f} GiB"
        return f"memory probe: {size}, {self.seconds:.2f} s a row"


def probe(engine: Engine, prompt: Prompt, parameters: Sequence[Tensor], passes: Passes, rows: int) -> MemoryProbe:
    """Try a pass of at most `rows` rows with the longest prompt and reply; halve it until it fits.
    An optimizer's two moments of the parameters take room, too. Raises if one row does not fit."""
    device, longest = engine.family.device, len(prompt) + engine.max_new_tokens
    rows = min(rows, passes.rows if passes.tokens is None else max(1, passes.tokens // longest))
    words = (engine.suppress == 0).nonzero().flatten().tolist()
    while True:
        start, tensors = time.perf_counter(), list[Tensor]()
        try:
            tensors += [torch.zeros_like(p) for p in parameters for _ in range(2)]
            # The prompts share no beginning, which would be run once.
            firsts = [torch.tensor([words[row % len(words)]]) for row in range(rows)]
            ids = [torch.cat([first, prompt.ids[1:]]) for first in firsts]
            prompts = [engine.family.place(each, prompt.images) for each in ids]
            reply = torch.full((rows, engine.max_new_tokens), words[0], device=device)
            tensors += engine.score_states(prompts, reply, reply >= 0, train_vision=passes.train_vision)
            tensors[-2].mean().backward()
            seconds = (time.perf_counter() - start) / rows
            return MemoryProbe(passes, rows, longest, peak_memory(device), seconds)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or rows == 1:
                raise
        finally:
            tensors.clear()
            for parameter in parameters:
                parameter.grad = None
            engine.forget()
            if device.type == "cuda":
                torch.cuda.empty_cache()
        rows //= 2
        room = {"rows": rows} if passes.tokens is None else {"tokens": rows * longest}
        passes = replace(passes, **room)  # type: ignore[arg-type]


# ---- gradient steps and metrics ------------------------------------------------------------------

MAX_SKIPS = 3  # non-finite gradient steps in a row before giving up
POLICY_METRICS = (
    "loss/policy", "loss/kl", "loss/clip_fraction", "loss/approx_kl", "loss/ratio_max",
    "policy/grad_norm", "policy/clipped_steps",
)  # fmt: skip


class Metrics:
    """Values of one update by name; `means` is what is logged."""

    def __init__(self) -> None:
        self.values: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, name: str, value: float) -> None:
        self.values[name].append(value)

    def add_policy(self, policy: PolicyLoss, kl: Tensor | None, weights: Tensor) -> None:
        """Note the losses of one forward pass; `weights` [b] of its rows are taken out again."""
        share = float(weights.sum())
        if kl is not None:
            self.add("loss/kl", float(kl.detach()) / share)
        self.add("loss/policy", float(policy.loss.detach()) / share)
        for name in ("clip_fraction", "approx_kl", "ratio_max"):
            self.add(f"loss/{name}", getattr(policy, name).item())

    def means(self) -> dict[str, float]:
        """Mean of each, 0 for a policy at rest, and the number of the policy's gradient steps."""
        steps = len(self.values.get("policy/grad_norm", ()))
        for name in POLICY_METRICS:
            self.values.setdefault(name, [0.0])
        means = {name: float(np.mean(values)) for name, values in self.values.items()}
        return means | {"policy/gradient_steps": float(steps)}


def policy_optimizer(parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """AdamW as every learner uses it for the policy."""
    return torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True)


@dataclass(frozen=True)
class Schedule:
    """Learning rate of the policy: 0 in the first updates, then a cosine."""

    first: float
    last: float  # as a share of the first
    updates: int  # of the run
    env_steps: int | None = None  # of the run, which then count instead of updates
    rests: int = 0  # updates in which the policy does not learn

    def rate(self, update: int, env_steps: int) -> float:
        """Return the rate of an update, counted from 1, after `env_steps` environment steps."""
        if update <= self.rests:
            return 0.0
        if self.env_steps is None:
            share = (update - self.rests - 1) / max(1, self.updates - self.rests - 1)
        else:
            share = env_steps / self.env_steps
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
        return self.first * (self.last + (1 - self.last) * cosine)


class Optimizers:
    """The optimizers of a learner, stepped with clipped gradients summed over processes."""

    def __init__(self, named: dict[str, torch.optim.Optimizer], max_grad_norm: float, world: World = ALONE) -> None:
        self.named, self.max_grad_norm, self.world = named, max_grad_norm, world
        self.skips = self.skips_in_a_row = 0  # gradient steps left out

    def set_rate(self, name: str, rate: float) -> float:
        """Give an optimizer its learning rate, and return it."""
        for group in self.named[name].param_groups:
            group["lr"] = rate
        return rate

    def step(self, name: str, loss: float, metrics: Metrics) -> None:
        """Clip and step one optimizer, then clear its gradients; non-finite ones are skipped, and
        `MAX_SKIPS` of them in a row are a `FailedError`."""
        optimizer = self.named[name]
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        distributed.sum_gradients(parameters, self.world)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm))
        metrics.add(f"{name}/grad_norm", norm)
        metrics.add(f"{name}/clipped_steps", float(norm > self.max_grad_norm))

        # One process's bad batch would reach every process, so all of them skip the step.
        if distributed.any_of(not (math.isfinite(loss) and math.isfinite(norm)), self.world):
            self.skips += 1
            self.skips_in_a_row += 1
        else:
            optimizer.step()
            # A fused optimizer does not count up a tensor's version, by which engines notice it.
            torch.autograd.graph.increment_version(parameters)
            self.skips_in_a_row = 0
        optimizer.zero_grad(set_to_none=True)
        if self.skips_in_a_row >= MAX_SKIPS:
            raise FailedError(
                f"{MAX_SKIPS} gradient steps in a row had a non-finite {name} loss or gradient; "
                "the newest checkpoint is intact. Resume from it with a smaller --lr, or with --dtype float32."
            )

    def tensors(self) -> dict[str, Tensor]:
        """Moments and step counts of every optimizer, for a checkpoint."""
        parts = [optimizer_tensors(f"optimizer.{name}", each) for name, each in self.named.items()]
        return {name: tensor for part in parts for name, tensor in part.items()}

    def state(self) -> dict[str, int]:
        """JSON-able counts."""
        return {"skips": self.skips, "skips_in_a_row": self.skips_in_a_row}

    def restore(self, tensors: dict[str, Tensor], state: dict[str, int]) -> None:
        """Restore `tensors` and `state`."""
        for name, optimizer in self.named.items():
            load_optimizer(f"optimizer.{name}", optimizer, tensors)
        self.skips, self.skips_in_a_row = state["skips"], state["skips_in_a_row"]
