"""One rollout as tensors, how it is cut into minibatches and forward passes, and its log-probabilities.

Replies are sampled by one computation and scored by another: other shapes, other kernels. Rounding makes the two differ
a little; a bug makes them differ a lot, and every ratio of the update is then wrong. Each update measures the
difference before its first gradient step, and a run whose difference is beyond a bound ends.

The old log-probabilities are those noted while sampling. With `--check.old-log-probs scorer` they are the scorer's, and
truncated importance weights correct the difference (Ionides, 2008, "Truncated importance sampling", Journal of
Computational and Graphical Statistics 17(2); Yao et al., 2025, "Your efficient RL framework secretly brings you
off-policy RL training").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vlgym.errors import FailedError, check_choice, check_number
from vlgym.types import StepRecord

from ..engine.engine import Engine, Sample, pad_rows
from ..runs.distributed import World
from ..runs.folder import share_of
from .losses import importance_weights

MAX_GAP = {"float32": 1e-3, "bfloat16": 0.1}
"""Bounds by the type of the weights, far above what rounding was measured to do."""


@dataclass(frozen=True)
class CheckOptions:
    """Agreement of the sampler's and the scorer's log-probabilities."""

    max_gap: float | None = None
    """Mean difference per token beyond which the run ends; default 0.001 in float32, 0.1 in bfloat16; 0: no bound."""
    old_log_probs: str = "sampler"
    """The old log-probabilities of an update: sampler (as noted while sampling) or scorer (computed again)."""
    importance_cap: float = 2.0
    """With those of the scorer: weigh each token by its probability there over that at sampling, but by no more than
    this; 0 for no weights."""

    def resolve(self, dtype: str) -> CheckOptions:
        """The options with the bound filled in, for a model of that type."""
        return replace(self, max_gap=MAX_GAP.get(dtype) if self.max_gap is None else self.max_gap)

    def validate(self) -> None:
        """Check ranges.

        Raises:
            UserError: a value is out of its range.
        """
        check_choice("--check.old-log-probs", self.old_log_probs, ("sampler", "scorer"))
        check_number("--check.max-gap", self.max_gap or 0.0, 0, hint="0 sets no bound.")
        check_number("--check.importance-cap", self.importance_cap, 0, hint="0 gives no weights.")


def require_agreement(gap: Mapping[str, float], options: CheckOptions, dtype: str) -> None:
    """Raise `FailedError` where the mean difference is beyond the bound, or no number.

    Args:
        gap: mean, p95 and max of the absolute differences, by the names that are logged.
        options: the bound, resolved.
        dtype: the type of the weights, for the advice.
    """
    mean, p95, largest = (gap[f"rollout/logp_diff_{name}"] for name in ("mean", "p95", "max"))
    if not options.max_gap or mean <= options.max_gap:
        return
    finer = "" if dtype == "float32" else f", or {dtype} is too coarse for this model (try --dtype float32)"
    raise FailedError(
        f"Sampler and scorer disagree: their log-probabilities differ by {mean:.2g} per token on average (95 % by less "
        f"than {p95:.2g}, at most {largest:.2g}), which is more than --check.max-gap {options.max_gap:g}. One of them "
        f"has other weights or sees other pictures, a bug{finer}. If they differ on purpose, go on with a larger "
        "--check.max-gap and --check.old-log-probs scorer."
    )


@dataclass
class Batch:
    """One rollout, flat: B environment steps.

    Attributes:
        samples: what was sampled, with the exact prompt of each step.
        spans: character range of the action in each reply, None where none was read.
        ids: [B, R] int64; mask: [B, R] bool.
        old: [B, R] float32, log-probabilities when sampled, or the scorer's before the update (`take_scorers`).
        hidden: [B, H] float32, states of the last prompt tokens.
        advantages: [B] float32, one per environment step; returns: [B] float32.
        units: rows of the batch that belong together, in the order that minibatches count them: single steps, or the
            steps of one episode.
        ref: [B, R] float32 under the reference, or None without one.
        values: [B] float32, what a critic expected of each state when it was answered; None without a critic.
        importance: [B, R] or [B, 1] float32, weights of tokens or of whole replies where `old` is not what sampled
            them; None where it is.
    """

    samples: list[Sample]
    spans: list[tuple[int, int] | None]
    ids: Tensor
    mask: Tensor
    old: Tensor
    hidden: Tensor
    advantages: Tensor
    returns: Tensor
    units: list[list[int]]
    ref: Tensor | None = None
    importance: Tensor | None = None
    values: Tensor | None = None

    def importance_of(self, rows: Tensor) -> Tensor | None:
        """The importance weights of some rows; None where all are 1."""
        return None if self.importance is None else self.importance[rows]


def lay_out(samples: Sequence[Sample], spans: Sequence[tuple[int, int] | None], pad_id: int) -> Batch:
    """Samples as a batch of single steps; advantages and returns are zero."""
    ids, mask = pad_rows([sample.ids for sample in samples], pad_id)
    old, _ = pad_rows([sample.logp for sample in samples], 0.0)
    hidden = torch.stack([sample.hidden for sample in samples])
    zeros = torch.zeros(len(samples), device=old.device)
    units = [[i] for i in range(len(samples))]
    return Batch(list(samples), list(spans), ids, mask, old, hidden, zeros, zeros.clone(), units)


def pack(records: Sequence[StepRecord], pad_id: int) -> Batch:
    """Step records that a `ModelPolicy` answered as a batch; advantages and returns are zero."""
    return lay_out([record.extra for record in records], [record.span for record in records], pad_id)


# ---- cutting ---------------------------------------------------------------------------------------------------------


def minibatches(
    units: Sequence[list[int]], size: int, world: World, generator: torch.Generator
) -> Iterator[tuple[Tensor, int]]:
    """One pass over a rollout in random order: (rows of this process, units of all processes) per gradient step.

    Args:
        units: the batch's units; every process has as many.
        size: units per gradient step, over all processes.
        world: the processes.
        generator: of the order.
    """
    for part in torch.randperm(len(units), generator=generator).split(share_of(size, world.size, "--minibatch")):
        rows = [row for unit in part.tolist() for row in units[unit]]
        yield torch.tensor(rows, dtype=torch.int64), len(part) * world.size


@dataclass(frozen=True)
class Passes:
    """Forward passes of a batch.

    Attributes:
        rows: most rows of one.
        tokens: most tokens of one instead, padding counted; rows of similar length are together.
        train_vision: gradients reach the vision tower.
    """

    rows: int = 64
    tokens: int | None = None
    train_vision: bool = False


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


# ---- log-probabilities -----------------------------------------------------------------------------------------------


def score(engine: Engine, batch: Batch, rows: Tensor, passes: Passes) -> tuple[Tensor, Tensor]:
    """Log-probabilities [len(rows), R] of some of the replies under an engine's weights, and the states of their last
    prompt tokens [len(rows), H]; with gradients if enabled."""
    prompts = [batch.samples[i].prompt for i in rows.tolist()]
    train_vision = passes.train_vision and torch.is_grad_enabled()
    return engine.score_states(prompts, batch.ids[rows], batch.mask[rows], train_vision=train_vision)


@torch.no_grad()
def log_probs(engine: Engine, batch: Batch, passes: Passes) -> Tensor:
    """Log-probabilities [B, R] of the whole batch under an engine's weights, without gradients."""
    found = torch.zeros_like(batch.old)
    for part in micro_batches(batch, torch.arange(len(batch.samples)), passes):
        found[part] = score(engine, batch, part, passes)[0]
    return found


def check_log_probs(
    engine: Engine, batch: Batch, passes: Passes, options: CheckOptions, *, whole: bool = False
) -> dict[str, float]:
    """`log_prob_gap` and, if asked for, `take_scorers`; return the metrics of both.

    Args:
        engine: the scorer.
        batch: the rollout; with `--check.old-log-probs scorer` it gets other `old`, and `importance`.
        passes: forward passes.
        options: resolved.
        whole: importance weights of whole replies.
    """
    metrics = log_prob_gap(engine, batch, passes, options)
    if options.old_log_probs == "scorer":
        metrics |= take_scorers(engine, batch, passes, options.importance_cap, whole=whole)
    return metrics


@torch.no_grad()
def log_prob_gap(engine: Engine, batch: Batch, passes: Passes, options: CheckOptions) -> dict[str, float]:
    """Difference of scorer and sampler on one forward pass, before the first gradient step.

    Raises:
        FailedError: the mean is beyond the bound of `--check.max-gap`, or no number.
    """
    rows = torch.arange(min(len(batch.samples), passes.rows))
    gap = (score(engine, batch, rows, passes)[0] - batch.old[rows]).abs()[batch.mask[rows]]
    metrics = {
        "rollout/logp_diff_mean": float(gap.mean()),
        "rollout/logp_diff_p95": float(gap.quantile(0.95)),
        "rollout/logp_diff_max": float(gap.max()),
    }
    dtype = str(engine.family.model.dtype).removeprefix("torch.")
    require_agreement(metrics, options, dtype)
    return metrics


def take_scorers(engine: Engine, batch: Batch, passes: Passes, cap: float, *, whole: bool = False) -> dict[str, float]:
    """Make the scorer's log-probabilities the old ones of a batch, with importance weights unless the cap is 0.

    Returns:
        mean of the weights, and share of those at the cap.
    """
    sampled, batch.old = batch.old, log_probs(engine, batch, passes)
    if cap == 0:
        return {}
    batch.importance = importance_weights(batch.old, sampled, batch.mask, cap, whole=whole)
    weights = batch.importance.flatten() if whole else batch.importance[batch.mask]
    return {
        "rollout/importance_mean": float(weights.mean()),
        "rollout/importance_capped": float((weights >= cap).float().mean()),
    }
