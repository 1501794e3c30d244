"""One rollout as tensors, how it is cut into minibatches and forward passes, and its log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vlgym.types import StepRecord

from ..engine.engine import Engine, Sample, pad_rows
from ..runs import distributed
from ..runs.distributed import ALONE, Shares, World
from .agreement import require_agreement
from .config import RunConfig
from .losses import importance_weights


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
    units: Sequence[list[int]], size: int, shares: Shares, generator: torch.Generator
) -> Iterator[tuple[Tensor, int]]:
    """One pass over a rollout in random order: (rows of this process, units of all processes) per gradient step.

    Args:
        units: the batch's units.
        size: units per gradient step, over all processes.
        shares: environments of every process.
        generator: of the order; the same in all processes.
    """
    everyone, own, first = shares.total, shares.own, shares.first
    for part in torch.randperm(len(units) * everyone // own, generator=generator).split(size):
        # Global unit g is step g // everyone of environment g % everyone.
        mine = [divmod(g, everyone) for g in part.tolist() if first <= g % everyone < first + own]
        chosen = [step * own + env - first for step, env in mine]
        yield torch.tensor([row for unit in chosen for row in units[unit]], dtype=torch.int64), len(part)


def micro_batches(batch: Batch, rows: Tensor, config: RunConfig) -> list[Tensor]:
    """Split rows into forward passes: by number, or by tokens with rows of similar length together."""
    if config.micro_tokens is None:
        return list(rows.split(config.micro_batch)) if len(rows) else []
    lengths = [len(batch.samples[i].prompt) + len(batch.samples[i].ids) for i in rows.tolist()]
    parts: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        # The longest row comes first, so its length is what every row of the pass is padded to.
        if parts and (len(parts[-1]) + 1) * lengths[parts[-1][0]] <= config.micro_tokens:
            parts[-1].append(at)
        else:
            parts.append([at])
    return [rows[torch.tensor(part)] for part in parts]


# ---- log-probabilities -----------------------------------------------------------------------------------------------


def score(engine: Engine, batch: Batch, rows: Tensor, config: RunConfig) -> tuple[Tensor, Tensor]:
    """Log-probabilities [len(rows), R] of some of the replies under an engine's weights, and the states of their last
    prompt tokens [len(rows), H]; with gradients if enabled."""
    prompts = [batch.samples[i].prompt for i in rows.tolist()]
    train_vision = config.train_vision and torch.is_grad_enabled()
    return engine.score_states(prompts, batch.ids[rows], batch.mask[rows], train_vision=train_vision)


@torch.no_grad()
def log_probs(engine: Engine, batch: Batch, config: RunConfig) -> Tensor:
    """Log-probabilities [B, R] of the whole batch under an engine's weights, without gradients."""
    found = torch.zeros_like(batch.old)
    for part in micro_batches(batch, torch.arange(len(batch.samples)), config):
        found[part] = score(engine, batch, part, config)[0]
    return found


def check_log_probs(engine: Engine, batch: Batch, config: RunConfig, world: World = ALONE) -> dict[str, float]:
    """`log_prob_gap` and, if asked for, `take_scorers`: what a learner does between rollout and gradient steps.

    Args:
        engine: the scorer.
        batch: the rollout; with `--check.old-log-probs scorer` it gets other `old`, and `importance`.
        config: of the run, resolved.
        world: the processes.

    Returns:
        the metrics of both.
    """
    metrics = log_prob_gap(engine, batch, config, world)
    return metrics | take_scorers(engine, batch, config) if config.check.old_log_probs == "scorer" else metrics


@torch.no_grad()
def log_prob_gap(engine: Engine, batch: Batch, config: RunConfig, world: World = ALONE) -> dict[str, float]:
    """Return the scorer's difference from the sampler on one micro-batch, before any update: rounding, or a bug.

    Raises:
        FailedError: the mean over all processes is beyond the bound of `--check.max-gap`, or no number.
    """
    rows = torch.arange(min(len(batch.samples), config.micro_batch))
    gap = (score(engine, batch, rows, config)[0] - batch.old[rows]).abs()[batch.mask[rows]]
    metrics = {
        "rollout/logp_diff_mean": float(gap.mean()),
        "rollout/logp_diff_p95": float(gap.quantile(0.95)),
        "rollout/logp_diff_max": float(gap.max()),
    }
    sums, counts = zip(*distributed.gather_objects((float(gap.double().sum()), gap.numel()), world), strict=True)
    require_agreement({**metrics, "rollout/logp_diff_mean": sum(sums) / sum(counts)}, config.check, config.dtype)
    return metrics


def take_scorers(engine: Engine, batch: Batch, config: RunConfig) -> dict[str, float]:
    """Make the scorer's log-probabilities the old ones of a batch, with importance weights unless the cap is 0.

    Returns:
        mean of the weights, and share of those at the cap.
    """
    sampled, batch.old = batch.old, log_probs(engine, batch, config)
    if (cap := config.check.importance_cap) == 0:
        return {}
    whole = config.ratio_per_step
    batch.importance = importance_weights(batch.old, sampled, batch.mask, cap, whole=whole)
    weights = batch.importance.flatten() if whole else batch.importance[batch.mask]
    return {
        "rollout/importance_mean": float(weights.mean()),
        "rollout/importance_capped": float((weights >= cap).float().mean()),
    }
