"""Intervals of means whose episodes depend on each other: the repeats of one seed are drawn together.

The bootstrap takes percentiles and has a fixed generator, so equal records give equal intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..intervals import wilson_interval

RESAMPLES = 9999
_BATCH = 500  # resamples at once: memory stays small with many episodes
_SEED = 0

Groups = Mapping[int, Sequence[float]]
"""Values of each seed's episodes, by the seed's index."""


def pooled_mean(groups: Groups) -> float:
    """Return the mean of all values, each counting once."""
    values = [value for group in groups.values() for value in group]
    return sum(values) / len(values)


def standard_error(groups: Groups) -> float | None:
    """Return the standard error of `pooled_mean`, seeds being independent of each other and repeats not.

    With one value in each group it is the usual one, `sd / sqrt(n)`. In general it is the linearised error of a ratio
    of sums over groups. `None` with one group.
    """
    count = len(groups)
    if count < 2:
        return None
    mean, total = pooled_mean(groups), sum(len(group) for group in groups.values())
    spread = sum((sum(group) - mean * len(group)) ** 2 for group in groups.values())
    return math.sqrt(spread * count / (count - 1)) / total


def success_interval(groups: Groups) -> tuple[float, float, float]:
    """Return the ends of the 95 % Wilson interval of a share, and how many independent trials it counts.

    Without repeats these are the episodes. With repeats they are those that would have the standard error that is
    seen: at least the seeds, at most the episodes.
    """
    episodes, share = sum(len(group) for group in groups.values()), pooled_mean(groups)
    trials: float = episodes
    if episodes > len(groups):
        se = standard_error(groups)
        trials = share * (1 - share) / se**2 if se else len(groups)
        trials = min(episodes, max(len(groups), trials))
    low, high = wilson_interval(share * trials, trials)
    return low, high, trials


def share_difference_interval(first: Groups, second: Groups) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two shares on the same seeds (Newcombe 1998, method 10).

    It is made of the shares' own intervals and of the correlation between the seeds' values, so it keeps a width where
    all pairs agree.
    """
    (p, (p_low, p_high, _)), (q, (q_low, q_high, _)) = (
        (pooled_mean(groups), success_interval(groups)) for groups in (first, second)
    )
    phi = _correlate(first, second)
    below = (p - p_low) ** 2 - 2 * phi * (p - p_low) * (q_high - q) + (q_high - q) ** 2
    above = (p_high - p) ** 2 - 2 * phi * (p_high - p) * (q - q_low) + (q - q_low) ** 2
    return p - q - math.sqrt(max(0.0, below)), p - q + math.sqrt(max(0.0, above))


def average_intervals(values: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return the interval of the mean of independent values, each given with its own ends (Zou and Donner 2008).

    The distances from the values to their ends add up as standard errors do.
    """
    middle = sum(value for value, _, _ in values)
    below = sum((value - low) ** 2 for value, low, _ in values)
    above = sum((high - value) ** 2 for value, _, high in values)
    return (middle - math.sqrt(below)) / len(values), (middle + math.sqrt(above)) / len(values)


def mean_interval(*strata: Groups) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the mean over strata of `pooled_mean`; seeds are drawn within each.

    `None` where a stratum has a single seed, which says nothing of the spread.
    """
    if not strata or any(len(groups) < 2 for groups in strata):
        return None
    sums = [np.array([sum(group) for group in groups.values()]) for groups in strata]
    counts = [np.array([len(group) for group in groups.values()]) for groups in strata]

    rng, means = np.random.default_rng(_SEED), []
    for begun in range(0, RESAMPLES, _BATCH):
        size = min(_BATCH, RESAMPLES - begun)
        drawn = [rng.integers(len(total), size=(size, len(total))) for total in sums]
        pooled = [
            total[index].sum(axis=1) / count[index].sum(axis=1)
            for total, count, index in zip(sums, counts, drawn, strict=True)
        ]
        means.append(sum(pooled) / len(pooled))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)


def _correlate(first: Groups, second: Groups) -> float:
    """Correlation between the seeds' means, a positive one corrected for continuity; 0 where one does not vary."""
    seeds = sorted(first.keys() & second.keys())
    means = [np.array([sum(groups[seed]) / len(groups[seed]) for seed in seeds]) for groups in (first, second)]
    spread = float(means[0].std() * means[1].std())
    covariance = float(((means[0] - means[0].mean()) * (means[1] - means[1].mean())).mean())
    if covariance > 0:
        covariance = max(0.0, covariance - 0.5 / len(seeds))
    return covariance / spread if spread else 0.0
