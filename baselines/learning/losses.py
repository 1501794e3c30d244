"""The arithmetic that several learners share: advantages of groups, ratios, ArCHer's critics.

The equations of VL-DAC are in `baselines/vldac.py`, RL4VLM's is in `baselines/rl4vlm.py`. Equation
numbers refer to "VL-DAC" (Bredis et al., AAMAS 2026, arXiv 2508.04280).

Conventions: `T` steps in time, `N` environments, `B` environment steps in a minibatch, `R` response
tokens (right-padded), `mask` True on real tokens (the end-of-turn token is part of the action). All
is float32. Every exponential of a difference of log-probabilities goes through `log_ratio`: padded
entries are 0 BEFORE the exponential (0 * inf is NaN in the backward pass even when the loss is
finite), the rest within +-20.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0

KLEstimator = Literal["k1", "k2", "k3"]


class PolicyLoss(NamedTuple):
    """A policy loss and what the logs say about it: scalars; `loss` alone carries a gradient."""

    loss: Tensor
    clip_fraction: Tensor  # share of ratios outside [1 - clip, 1 + clip]
    approx_kl: Tensor  # k3 estimate of KL(old || new), from the same samples
    ratio_mean: Tensor
    ratio_max: Tensor


# -- advantages ------------------------------------------------------------------------------------


def leave_one_out(returns: Tensor) -> Tensor:
    """Advantage of each of K attempts at one start over the mean of the others (VL-DAC eq. 2).

    A_k = K / (K - 1) * (R_k - mean_j R_j), as its source (LOOP, arXiv 2502.01600) defines it; the
    printed equation sums over j != k with a mean's normalisation. [..., K] float; a `ValueError`
    where K < 2.

    >>> leave_one_out(torch.tensor([1.0, 0.0, 0.0]))
    tensor([ 1.0000, -0.5000, -0.5000])
    """
    k = returns.shape[-1]
    if k < 2:
        raise ValueError(f"leave-one-out needs at least 2 attempts per group, got {k}")
    return (returns - returns.mean(dim=-1, keepdim=True)) * (k / (k - 1))


def group_relative(returns: Tensor, *, eps: float = 1e-6) -> Tensor:
    """(R_k - mean) / (std + eps) in each group, [..., K] (GRPO, arXiv 2402.03300, section 4.1.2).
    A `ValueError` where K < 2."""
    if returns.shape[-1] < 2:
        raise ValueError(f"group-relative advantages need at least 2 attempts per group, got {returns.shape[-1]}")
    centred = returns - returns.mean(dim=-1, keepdim=True)
    return centred / (returns.std(dim=-1, keepdim=True) + eps)


def normalise_advantages(advantages: Tensor, *, eps: float = 1e-8) -> Tensor:
    """(A - mean) / (std + eps) in float32 over the rollout; fewer than 2 are unchanged."""
    a = advantages.float()
    return a if a.numel() < 2 else (a - a.mean()) / (a.std() + eps)


# -- policy losses ---------------------------------------------------------------------------------


def log_ratio(new: Tensor, old: Tensor, mask: Tensor | None = None) -> Tensor:
    """log(pi_new / pi_old), 0 where masked, clamped to +-20: safe to differentiate."""
    difference = new.float() - old.float()
    if mask is not None:
        difference = difference.where(mask, 0.0)
    return difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def token_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over each row's real tokens, [B, R] -> [B] (VL-DAC eq. 3); 0 of an empty row."""
    return x.where(mask, 0.0).sum(-1) / mask.sum(-1).clamp(min=1)


def weigh(per_step: Tensor, weights: Tensor | None) -> Tensor:
    """Sum of terms [B] by their weights [B]; their mean without."""
    return per_step.mean() if weights is None else (per_step * weights).sum()


def with_statistics(
    loss: Tensor, lr: Tensor, ratio: Tensor, mask: Tensor, clip: float, high: float | None = None
) -> PolicyLoss:
    """A policy loss with what is logged of its log-ratios `lr` and ratios where `mask` is True."""
    with torch.no_grad():
        n = mask.sum().clamp(min=1)
        outside = ((ratio < 1 - clip) | (ratio > 1 + (clip if high is None else high))) & mask
        ratios = ratio.where(mask, 0.0)
        # k3 of KL(old || new) under samples of old: E[r - 1 - log r] >= 0.
        approx_kl = (ratio - 1 - lr).where(mask, 0.0).sum() / n
        largest = ratios.max() if len(ratios) else n.float()
        return PolicyLoss(loss, outside.sum() / n, approx_kl, ratios.sum() / n, largest)


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """1 - Var(R - V) / Var(R): 1 is a perfect critic; NaN where returns do not vary."""
    if returns.numel() < 2 or float(returns.var()) == 0.0:
        return float("nan")
    return float(1 - (returns - values).var() / returns.var())


# -- ArCHer ----------------------------------------------------------------------------------------
# Zhou et al., ICML 2024, arXiv 2402.19446, section 3. A leading dimension of 2 holds two critics.


def td_targets(rewards: Tensor, next_values: Tensor, terminated: Tensor, *, gamma: float) -> Tensor:
    """r + gamma * V(s'), and r alone where the episode terminated: one-step targets of Q, [..., B].
    s' is the observation after each step, the final one where it was truncated."""
    return rewards + gamma * torch.where(terminated, torch.zeros_like(next_values), next_values)


def twin_loss(predicted: Tensor, targets: Tensor) -> Tensor:
    """Mean square error over B, summed over two critics: [2, B], [2, B] (no gradient) -> scalar."""
    return (predicted - targets.detach()).square().mean(-1).sum()


def twin_advantages(q: Tensor, v: Tensor) -> Tensor:
    """min(Q_1, Q_2) - min(V_1, V_2), [2, B] and [2, B] -> [B]."""
    return q.amin(0) - v.amin(0)


def reinforce_loss(
    new: Tensor, old: Tensor, mask: Tensor, advantages: Tensor, *, weights: Tensor | None = None
) -> PolicyLoss:
    """-mean_t [ A_t sum_i log pi(a_ti) ]: ArCHer's actor, without ratio or clipping.

    Args:
        new, old: [B, R] log-probabilities of the tokens now and when sampled (for the logs alone).
        mask: [B, R] bool; advantages: [B], shared by all tokens of a reply.
        weights: [B], of the steps in the sum that the loss then is; None takes their mean.
    """
    per_step = -advantages.detach() * torch.where(mask, new, torch.zeros_like(new)).sum(-1)
    with torch.no_grad():
        lr = log_ratio(new, old, mask)
    return with_statistics(weigh(per_step, weights), lr, lr.exp(), mask, float("inf"))
