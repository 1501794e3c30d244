"""The arithmetic of the learners: advantages, policy losses, KL estimators, value losses.

Pure functions of tensors: no model, no environment, no randomness, no state. Equation numbers refer to
"VL-DAC" (Bredis et al., AAMAS 2026, arXiv 2508.04280), "RL4VLM" (Zhai et al., NeurIPS 2024, arXiv 2405.10292) and
"GAE" (Schulman et al., 2016, arXiv 1506.02438).

Conventions: `T` steps in time, `N` environments, `B` environment steps in a minibatch, `R` response tokens
(right-padded), `mask` True on real tokens (the end-of-turn token is part of the action). Everything is float32.
Every exponential of a difference of log-probabilities goes through `log_ratio`: padded entries are set to 0 BEFORE the
exponential (0 * inf is NaN in the backward pass even when the loss is finite) and the rest is clamped to +-20.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0

KLEstimator = Literal["k1", "k2", "k3"]


class PolicyLoss(NamedTuple):
    """A policy loss and what the logs say about it. All are scalars; only `loss` carries a gradient."""

    loss: Tensor
    clip_fraction: Tensor  # share of ratios outside [1 - clip, 1 + clip]
    approx_kl: Tensor  # k3 estimate of KL(old || new), from the same samples
    ratio_mean: Tensor
    ratio_max: Tensor


# -- advantages --------------------------------------------------------------------------------------------------------


def step_gae(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    final_values: Tensor,
    *,
    gamma: float,
    lam: float,
) -> tuple[Tensor, Tensor]:
    """Generalised advantages per ENVIRONMENT STEP (GAE eq. 16), ends of episodes told apart.

    delta_t = r_t + gamma * V'_t - V_t, where V'_t = 0 if the episode terminated at t; `final_values[t]` if it was
    truncated at t (a time limit says nothing about what the state was worth); `values[t + 1]` otherwise (`last_values`
    for the last row). The recursion A_t = delta_t + gamma * lam * A_{t+1} is cut at both kinds of end. A step with both
    flags counts as terminated.

    Args:
        rewards, values: [T, N] float; `values[t]` is V of the observation that step t answered.
        last_values: [N] float, V of the observation after the last step (ignored where that step ended its episode).
        terminated, truncated: [T, N] bool, as `gymnasium.Env.step` returned them.
        final_values: [T, N] float, V of the final observation of a truncated episode; ignored elsewhere.
        gamma, lam: discount and GAE mixing, both in [0, 1].

    Returns:
        (advantages, returns), both [T, N]; returns = advantages + values, the targets of the value head.

    >>> never, ends = torch.tensor([[False], [False]]), torch.tensor([[False], [True]])
    >>> rewards, values, none = torch.tensor([[0.0], [1.0]]), torch.zeros(2, 1), torch.zeros(1)
    >>> advantages, _ = step_gae(rewards, values, none, ends, never, values, gamma=0.9, lam=1.0)
    >>> advantages.squeeze(1)
    tensor([0.9000, 1.0000])
    """
    advantages = torch.zeros_like(rewards)
    following_v, following_a = last_values, torch.zeros_like(last_values)
    for t in range(rewards.shape[0] - 1, -1, -1):
        next_v = torch.where(truncated[t], final_values[t], following_v)
        next_v = torch.where(terminated[t], torch.zeros_like(next_v), next_v)
        ended = terminated[t] | truncated[t]
        delta = rewards[t] + gamma * next_v - values[t]
        advantages[t] = delta + gamma * lam * torch.where(ended, torch.zeros_like(following_a), following_a)
        following_v, following_a = values[t], advantages[t]
    return advantages, advantages + values


def leave_one_out(returns: Tensor) -> Tensor:
    """Advantage of each of K attempts at one start state over the mean of the K - 1 others (VL-DAC eq. 2).

    A_k = K / (K - 1) * (R_k - mean_j R_j). The printed equation sums over j != k with a mean's normalisation; this is
    the form that its source (LOOP, arXiv 2502.01600) defines. The advantages of a group sum to 0.

    Args:
        returns: [..., K] float, K >= 2 attempts in the last dimension.

    Raises:
        ValueError: if K < 2, where nothing is left to compare with.

    >>> leave_one_out(torch.tensor([1.0, 0.0, 0.0]))
    tensor([ 1.0000, -0.5000, -0.5000])
    """
    k = returns.shape[-1]
    if k < 2:
        raise ValueError(f"leave-one-out needs at least 2 attempts per group, got {k}")
    return (returns - returns.mean(dim=-1, keepdim=True)) * (k / (k - 1))


def group_relative(returns: Tensor, *, eps: float = 1e-6) -> Tensor:
    """(R_k - mean) / (std + eps) within each group (GRPO, arXiv 2402.03300, section 4.1.2); 0 where all are equal.

    Args:
        returns: [..., K] float, K >= 2 attempts in the last dimension.

    Raises:
        ValueError: if K < 2, where there is no deviation.
    """
    if returns.shape[-1] < 2:
        raise ValueError(f"group-relative advantages need at least 2 attempts per group, got {returns.shape[-1]}")
    centred = returns - returns.mean(dim=-1, keepdim=True)
    return centred / (returns.std(dim=-1, keepdim=True) + eps)


def normalise_advantages(advantages: Tensor, *, eps: float = 1e-8) -> Tensor:
    """(A - mean) / (std + eps) in float32 over ALL given environment steps; fewer than 2 are returned unchanged.

    Call it on the whole rollout before the minibatches are drawn, never on padded tensors.
    """
    a = advantages.float()
    if a.numel() < 2:
        return a
    return (a - a.mean()) / (a.std() + eps)


# -- policy losses -----------------------------------------------------------------------------------------------------


def log_ratio(new: Tensor, old: Tensor, mask: Tensor | None = None) -> Tensor:
    """log(pi_new / pi_old), 0 where masked, clamped to +-20: safe to exponentiate and to differentiate.

    Shape of `new`.
    """
    difference = new.float() - old.float()
    if mask is not None:
        difference = torch.where(mask, difference, torch.zeros_like(difference))
    return difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def token_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over each row's real tokens, [B, R] -> [B]: the 1/|a_t| sum_i of VL-DAC eq. 3. An empty row gives 0."""
    return torch.where(mask, x, torch.zeros_like(x)).sum(-1) / mask.sum(-1).clamp(min=1)


def importance_weights(old: Tensor, sampled: Tensor, mask: Tensor, cap: float, *, whole: bool = False) -> Tensor:
    """min(pi_old / pi_sampled, cap): truncated importance weights where the old policy is not the one that sampled.

    Truncation from above bounds the variance at the price of a bias (Ionides, 2008, "Truncated importance sampling").

    Args:
        old, sampled: [B, R] log-probabilities of the sampled tokens under the old policy, and when they were sampled.
        mask: [B, R] bool.
        cap: largest weight, > 0.
        whole: one weight per reply, of the ratio of whole replies, instead of one per token.

    Returns:
        [B, R], 1 (or the cap, if that is less) on padding; with `whole` [B, 1]. Without a gradient.
    """
    lr = log_ratio(old.detach(), sampled.detach(), mask)
    if whole:
        lr = lr.sum(-1, keepdim=True).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    return lr.exp().clamp(max=cap)


def token_ppo_loss(
    new: Tensor,
    old: Tensor,
    mask: Tensor,
    advantages: Tensor,
    *,
    clip: float,
    weights: Tensor | None = None,
    importance: Tensor | None = None,
) -> PolicyLoss:
    """The VL-DAC policy loss (eq. 3): PPO's clipped objective per TOKEN, one advantage per environment STEP.

    L = -mean_t [ 1/|a_t| sum_i min(r_ti A_t, clip(r_ti, 1 - clip, 1 + clip) A_t) ]. The mean over a reply's tokens
    comes before the mean over steps, so a step weighs the same whether its reply is long or short, and a token of a
    long reply weighs less than one of a short reply.

    Args:
        new, old: [B, R] log-probabilities of the sampled tokens under the policy being trained and under the one that
            sampled.
        mask: [B, R] bool.
        advantages: [B], shared by all tokens of a step.
        weights: [B], of the steps in the sum that the loss then is; None takes their mean.
        importance: [B, R], of each token's term; None is 1.
    """
    lr = log_ratio(new, old, mask)
    ratio = lr.exp()
    a = advantages.unsqueeze(-1)
    objective = torch.minimum(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)
    if importance is not None:
        objective = objective * importance
    return _policy_loss(-_weigh(token_mean(objective, mask), weights), lr, ratio, mask, clip)


def step_ppo_loss(
    new: Tensor,
    old: Tensor,
    mask: Tensor,
    action_mask: Tensor,
    advantages: Tensor,
    *,
    clip: float,
    thought_weight: float,
    weights: Tensor | None = None,
    importance: Tensor | None = None,
) -> PolicyLoss:
    """The RL4VLM policy loss (VL-DAC eq. 1): PPO per STEP on lambda * log p(thoughts) + log p(action).

    With `thought_weight` = 1 it is ordinary sequence-level PPO on the whole reply.

    Args:
        new, old: [B, R] log-probabilities of the sampled tokens.
        mask: [B, R] bool, real tokens; `action_mask`: [B, R] bool, the tokens of the action part. The thoughts are
            `mask & ~action_mask`.
        advantages: [B].
        thought_weight: the lambda of eq. 1, in [0, 1].
        weights: [B], of the steps in the sum that the loss then is; None takes their mean.
        importance: [B, 1], of each step's term; None is 1.
    """
    weight = torch.where(action_mask, torch.ones_like(new), torch.full_like(new, thought_weight))
    zero = torch.zeros_like(new)
    step_new = torch.where(mask, weight * new.float(), zero).sum(-1)
    step_old = torch.where(mask, weight * old.float(), zero).sum(-1)
    lr = log_ratio(step_new, step_old)
    ratio = lr.exp()
    objective = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    if importance is not None:
        objective = objective * importance.squeeze(-1)
    return _policy_loss(-_weigh(objective, weights), lr, ratio, torch.ones_like(lr, dtype=torch.bool), clip)


def _weigh(per_step: Tensor, weights: Tensor | None) -> Tensor:
    return per_step.mean() if weights is None else (per_step * weights).sum()


def _policy_loss(loss: Tensor, lr: Tensor, ratio: Tensor, mask: Tensor, clip: float) -> PolicyLoss:
    with torch.no_grad():
        n = mask.sum().clamp(min=1)
        outside = ((ratio - 1).abs() > clip) & mask
        ratios = torch.where(mask, ratio, torch.zeros_like(ratio))
        # k3 of KL(old || new) under samples of old: E[r - 1 - log r] >= 0.
        approx_kl = torch.where(mask, ratio - 1 - lr, torch.zeros_like(lr)).sum() / n
        return PolicyLoss(
            loss, outside.sum() / n, approx_kl, ratios.sum() / n, ratios.max() if len(ratios) else n.float()
        )


# -- KL to the reference -----------------------------------------------------------------------------------------------


def kl_estimate(new: Tensor, ref: Tensor, mask: Tensor, estimator: KLEstimator) -> Tensor:
    """Per-token estimate of KL(pi_new || pi_ref) from tokens sampled by (nearly) pi_new (VL-DAC eq. 5), 0 on padding.

    With d = log pi_ref - log pi_new (clamped): k1 = -d (unbiased, any sign; its gradient as a LOSS is zero-mean noise,
    so use it inside the reward); k2 = d^2 / 2 (biased, but its gradient is the reverse KL's on policy, and grows with d
    alone: Schulman, 2020, "Approximating KL divergence"; Liu et al., 2025, arXiv 2510.01555); k3 = e^d - d - 1
    (unbiased on policy, never negative; what the published code uses). k3's gradient is e^d: one token that other
    tokens' steps made improbable can outweigh a whole minibatch.

    Args:
        new, ref: [B, R] log-probabilities of the sampled tokens; mask: [B, R] bool.

    Returns:
        [B, R] float32.

    Raises:
        ValueError: for an unknown estimator.
    """
    d = log_ratio(ref, new, mask)
    if estimator == "k1":
        return -d
    if estimator == "k2":
        return 0.5 * d.square()
    if estimator == "k3":
        return d.exp() - d - 1
    raise ValueError(f"unknown KL estimator {estimator!r}; choose k1, k2 or k3")


def kl_loss(
    new: Tensor, ref: Tensor, mask: Tensor, weights: Tensor, estimator: KLEstimator, *, whole: bool = False
) -> Tensor:
    """`kl_estimate` of each reply, summed over steps by their weights [B]; scalar.

    The policy loss decides over what a reply's tokens are taken together, so that one coefficient means the same beside
    either: the token loss is a mean over them, and so is the KL; the step loss has the log-probability of the whole
    reply, a sum, and so its KL is the whole reply's.

    Args:
        new, ref: [B, R] log-probabilities of the sampled tokens; mask: [B, R] bool.
        weights: [B], of the steps.
        estimator: of the per-token KL.
        whole: sum over a reply's tokens instead of their mean.
    """
    per_token = kl_estimate(new, ref, mask, estimator)
    return ((per_token.sum(-1) if whole else token_mean(per_token, mask)) * weights).sum()


# -- value -------------------------------------------------------------------------------------------------------------


def value_loss(values: Tensor, returns: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean of (V - R)^2 / 2 over environment steps, no clipping (VL-DAC, text after eq. 4). Both [B]; scalar.

    With `weights` [B] it is the weighted sum instead.
    """
    return _weigh(0.5 * (values.float() - returns.float()).square(), weights)


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """1 - Var(R - V) / Var(R): 1 is a perfect critic, 0 a constant one, NaN when the returns do not vary or n < 2."""
    if returns.numel() < 2 or float(returns.var()) == 0.0:
        return float("nan")
    return float(1 - (returns - values).var() / returns.var())


# -- ArCHer ------------------------------------------------------------------------------------------------------------
# "ArCHer" is Zhou et al., ICML 2024, arXiv 2402.19446, section 3. A leading dimension of 2 holds its two critics.


def td_targets(rewards: Tensor, next_values: Tensor, terminated: Tensor, *, gamma: float) -> Tensor:
    """r + gamma * V(s'), and r alone where the episode terminated: one-step targets of Q.

    Args:
        rewards: [B] float.
        next_values: [..., B] float, V of the observation after each step, the final one where the episode was
            truncated; ignored, whatever it is, where the episode terminated.
        terminated: [B] bool.
        gamma: discount, in [0, 1].

    Returns:
        [..., B].
    """
    return rewards + gamma * torch.where(terminated, torch.zeros_like(next_values), next_values)


def twin_loss(predicted: Tensor, targets: Tensor) -> Tensor:
    """Mean square error over B of each of two critics, summed over the two: [2, B], [2, B] -> scalar.

    Targets carry no gradient.
    """
    return (predicted - targets.detach()).square().mean(-1).sum()


def twin_advantages(q: Tensor, v: Tensor) -> Tensor:
    """min(Q_1, Q_2) - min(V_1, V_2), [2, B] and [2, B] -> [B]: what a reply is worth above the policy's usual one."""
    return q.amin(0) - v.amin(0)


def reinforce_loss(
    new: Tensor,
    old: Tensor,
    mask: Tensor,
    advantages: Tensor,
    *,
    weights: Tensor | None = None,
    importance: Tensor | None = None,
) -> PolicyLoss:
    """-mean_t [ A_t sum_i log pi(a_ti) ]: ArCHer's actor, without ratio or clipping.

    Args:
        new, old: [B, R] log-probabilities of the sampled tokens under the policy being trained and when they were
            sampled; `old` only tells the logs how far apart the two are.
        mask: [B, R] bool.
        advantages: [B], shared by all tokens of a reply.
        weights: [B], of the steps in the sum that the loss then is; None takes their mean.
        importance: [B, R], of each token's term; None is 1.
    """
    terms = torch.where(mask, new, torch.zeros_like(new))
    if importance is not None:
        terms = terms * importance
    per_step = -advantages.detach() * terms.sum(-1)
    with torch.no_grad():
        lr = log_ratio(new, old, mask)
    return _policy_loss(_weigh(per_step, weights), lr, lr.exp(), mask, float("inf"))
