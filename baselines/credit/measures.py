"""How an estimate compares with the true advantage, each with its interval over start groups.

The truth has two independent halves t1, t2 with noise. cov(t1, t2) is the variance of the truth without it, so a
correlation is corrected for attenuation (Spearman 1904): r = cov(x, t) / sqrt(var(x) cov(t1, t2)), t their mean. It is
never clipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .episodes import Episodes, Truth

DRAWS, SURE, ZERO = 400, 2.0, 1e-9
"""Bootstrap samples of start groups; standard errors of a half from which on a true sign counts as known; what counts
as 0."""


def measure(estimate: Tensor, truth: Truth, episodes: Episodes) -> dict[str, Any]:
    """Compare an estimate [G, K, T] with the truth on the turns where it is known.

    Returns:
        correlation, within (of deviations from each group's means) and sign agreement, each with its deviation over
        bootstrap samples of start groups; bias and variance (reward units, `decompose`); zero, the share of turns with
        the estimate 0; turns; sure, the share of turns whose true sign is known; reliability of the truth's mean.
    """
    used = episodes.mask & ~truth.halves[0].isnan()
    group = torch.arange(len(used)).view(-1, 1, 1).expand(used.shape)[used].numpy()
    x, a, b = (each[used].numpy() for each in (estimate, *truth.halves))
    error, turn = truth.errors[0][used].numpy(), torch.arange(used.shape[-1])
    alike = (episodes.keys * used.shape[-1] + turn) * (int(episodes.actions.max()) + 1) + episodes.actions

    # Every figure is made of sums over groups, so that a bootstrap sample is a weighing of them.
    sums = sum_groups(group, len(used), moments(x, a, b))
    inner = sum_groups(group, len(used), moments(*(deviate(each, group) for each in (x, a, b))))
    sure = np.abs(a) > np.maximum(SURE * error, ZERO)
    right = np.where((np.abs(x) < ZERO) | (np.abs(b) < ZERO), 0.5, np.sign(x) == np.sign(b))
    signs = sum_groups(group, len(used), np.stack([sure * right, sure * 1.0]))
    draws = np.random.default_rng(0).multinomial(len(used), [1 / len(used)] * len(used), size=DRAWS)
    weights, row = np.vstack([np.ones(len(used)), draws]), dict[str, Any]()
    with np.errstate(divide="ignore", invalid="ignore"):
        found = correlate(weights @ sums), correlate(weights @ inner), np.divide(*(weights @ signs).T)
    for name, values in zip(("correlation", "within", "sign"), found, strict=True):
        known = values[np.isfinite(values)]
        row |= {name: float(values[0]), f"{name}_sd": float(known[1:].std()) if len(known) > 1 else float("nan")}
    row["bias"], row["variance"] = decompose(x, a, b, group, alike[used].numpy())
    spread, zero = np.cov(a, b), float((np.abs(estimate[episodes.mask].numpy()) < ZERO).mean())
    reliability = float(4 * spread[0, 1] / spread.sum()) if error.any() else 1.0
    return row | {"zero": zero, "turns": len(x), "sure": float(sure.mean()), "reliability": reliability}


def moments(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return what `correlate` needs of each turn, [8, turns]."""
    t = (a + b) / 2
    return np.stack([np.ones_like(x), x, t, a, b, x * x, x * t, a * b])


def correlate(sums: np.ndarray) -> np.ndarray:
    """Return the corrected correlation of each row of sums of `moments`, [draws, 8] -> [draws]."""
    x, t, a, b, xx, xt, ab = sums.T[1:] / sums.T[0]
    return (xt - x * t) / np.sqrt((xx - x**2) * (ab - a * b))


def sum_groups(group: np.ndarray, count: int, values: np.ndarray) -> np.ndarray:
    """Sum values [m, turns] over the turns of each group, [count, m]."""
    return np.stack([np.bincount(group, row, minlength=count) for row in values], axis=1)


def deviate(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return values less the mean of their group."""
    return values - (np.bincount(group, values) / np.maximum(np.bincount(group), 1))[group]


def decompose(x: np.ndarray, a: np.ndarray, b: np.ndarray, group: np.ndarray, alike: np.ndarray) -> tuple[float, float]:
    """Return root mean square bias, and variance, of an estimate given picture, turn number and action.

    Turns of different groups that are alike have independent errors of one mean: the mean product of their errors, one
    against each half of the truth, is the square of the bias. The square error less that is the variance. NaN where no
    turns are alike, or the product is negative.
    """
    _, kind = np.unique(alike, return_inverse=True)
    pair, part = np.unique(np.stack([kind, group]), axis=1, return_inverse=True)
    errors = sum_groups(part.ravel(), pair.shape[1], np.stack([np.ones_like(x), x - a, x - b]))
    n, first, second = sum_groups(pair[0], kind.max() + 1, errors.T).T
    own_n, own = sum_groups(pair[0], kind.max() + 1, np.stack([errors[:, 0] ** 2, errors[:, 1] * errors[:, 2]])).T
    used = n**2 > own_n
    if not used.any():
        return float("nan"), float("nan")
    square = np.average(((first * second - own)[used] / (n**2 - own_n)[used]), weights=n[used])
    variance = float(np.mean(((x - a) * (x - b))[used[kind]]) - square)
    return float(np.sqrt(square)) if square >= 0 else float("nan"), variance


def cosine(first: Tensor, second: Tensor, gram: Tensor) -> float:
    """Return the cosine of two gradients, given as coefficients [P] of vectors with inner products `gram` [P, P]."""
    return float(first @ gram @ second / ((first @ gram @ first) * (second @ gram @ second)).sqrt())
