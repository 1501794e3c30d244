"""Intervals of means whose episodes depend on each other, and scores as MageBench reports them.

Repeats of one seed are drawn together. The bootstrap takes percentiles, with a fixed generator.
MageBench (arXiv 2412.04531, figure 7) is the source of the repeats and of the thresholds of the
instruction error. It publishes no formula of the half-width; `measure_half_width` states ours.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ..intervals import student_t, wilson_interval
from ..types import StepRecord

RESAMPLES = 9999
_BATCH = 500  # resamples at once: memory stays small with many episodes
UNPARSABLE_ABOVE = SAME_ACTION_FROM = 0.9
Groups = Mapping[int, Sequence[float]]  # values of each seed's episodes, by the seed's index


def pooled_mean(groups: Groups) -> float:
    """Return the mean of all values, each counting once."""
    values = [value for group in groups.values() for value in group]
    return sum(values) / len(values)


def standard_error(groups: Groups) -> float | None:
    """Return the standard error of `pooled_mean`, repeats of one seed being dependent.

    It is the linearised error of a ratio of sums over groups; with one value in each group that is
    `sd / sqrt(n)`. `None` with one group.
    """
    count = len(groups)
    if count < 2:
        return None
    mean, total = pooled_mean(groups), sum(len(group) for group in groups.values())
    spread = sum((sum(group) - mean * len(group)) ** 2 for group in groups.values())
    return math.sqrt(spread * count / (count - 1)) / total


def success_interval(groups: Groups) -> tuple[float, float, float]:
    """Return the ends of the 95 % Wilson interval of a share, and its number of independent trials.

    With repeats, trials are those of which a share would have the standard error that is seen.
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
    """Return the 95 % interval of the difference of two shares on the same seeds.

    Newcombe 1998, method 10: of the shares' own intervals and the correlation of the seeds' values.
    """
    (p, (p_low, p_high, _)), (q, (q_low, q_high, _)) = (
        (pooled_mean(groups), success_interval(groups)) for groups in (first, second)
    )
    phi = _correlate(first, second)
    below = (p - p_low) ** 2 - 2 * phi * (p - p_low) * (q_high - q) + (q_high - q) ** 2
    above = (p_high - p) ** 2 - 2 * phi * (p_high - p) * (q - q_low) + (q - q_low) ** 2
    return p - q - math.sqrt(max(0.0, below)), p - q + math.sqrt(max(0.0, above))


def average_intervals(values: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return the interval of the mean of independent values with ends (Zou and Donner 2008)."""
    middle = sum(value for value, _, _ in values)
    below = sum((value - low) ** 2 for value, low, _ in values)
    above = sum((high - value) ** 2 for value, _, high in values)
    return (middle - math.sqrt(below)) / len(values), (middle + math.sqrt(above)) / len(values)


def mean_interval(*strata: Groups) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the mean over strata of `pooled_mean`.

    Seeds are drawn within each stratum. `None` where one has a single seed: there is no spread.
    """
    if not strata or any(len(groups) < 2 for groups in strata):
        return None
    sums = [np.array([sum(group) for group in groups.values()]) for groups in strata]
    counts = [np.array([len(group) for group in groups.values()]) for groups in strata]

    # Resampling in batches bounds the memory.
    rng, means = np.random.default_rng(0), []
    for begun in range(0, RESAMPLES, _BATCH):
        size = min(_BATCH, RESAMPLES - begun)
        drawn = [rng.integers(len(total), size=(size, len(total))) for total in sums]
        parts = zip(sums, counts, drawn, strict=True)
        pooled = [total[at].sum(axis=1) / count[at].sum(axis=1) for total, count, at in parts]
        means.append(sum(pooled) / len(pooled))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)


def _correlate(first: Groups, second: Groups) -> float:
    """Return the correlation of the seeds' means, a positive one corrected for continuity."""
    seeds = sorted(first.keys() & second.keys())
    means = [np.array([sum(groups[seed]) / len(groups[seed]) for seed in seeds]) for groups in (first, second)]
    spread = float(means[0].std() * means[1].std())
    covariance = float(((means[0] - means[0].mean()) * (means[1] - means[1].mean())).mean())
    if covariance > 0:
        covariance = max(0.0, covariance - 0.5 / len(seeds))
    return covariance / spread if spread else 0.0


def summarize_items(
    scores: Sequence[Sequence[float]], episodes: Sequence[Sequence[StepRecord]]
) -> dict[str, float | str | list[float] | None]:
    """Summarise `scores[item][repeat]` of one policy, and the episodes that they came from.

    `half_width` is of the mean's 95 % interval (`None` with one repeat), `best_of` the expected
    best score of 1, 2, ... repeats, averaged over items.
    """
    columns = [sum(column) / len(column) for column in zip(*scores, strict=True)]
    return {
        "mean": sum(columns) / len(columns),
        "half_width": measure_half_width(columns),
        "repeats": len(columns),
        "instruction_error": find_instruction_error(episodes),
        "best_of": [sum(expect_best(row, n) for row in scores) / len(scores) for n in range(1, len(columns) + 1)],
    }


def measure_half_width(means: Sequence[float]) -> float | None:
    """Return `t * sd / sqrt(n)`, the half-width of the 95 % interval of a mean over repeats.

    Items are fixed: the spread is that of a repeated evaluation. `None` with one repeat.
    """
    error = standard_error({number: [mean] for number, mean in enumerate(means)})
    return None if error is None else student_t(len(means) - 1) * error


def expect_best(scores: Sequence[float], n: int) -> float:
    """Return the expected maximum of `n` scores drawn without replacement (unbiased best-of-N).

    The k-th smallest of `m` scores is the maximum in `C(k-1, n-1)` of the `C(m, n)` draws.

    >>> expect_best([0.0, 1.0], 1), expect_best([0.0, 1.0], 2)
    (0.5, 1.0)
    """
    m = len(scores)
    ordered = sorted(scores)
    return sum(math.comb(k, n - 1) * ordered[k] for k in range(n - 1, m)) / math.comb(m, n)


def find_instruction_error(episodes: Sequence[Sequence[StepRecord]]) -> str | None:
    """Return why the policy failed to follow the instructions, or `None` (MageBench's rule).

    Over 90 % of the replies cannot be parsed, or at least 90 % of several actions are the same one.
    """
    replies = [record for episode in episodes for record in episode]
    unparsable = sum(record.invalid for record in replies) / len(replies)
    if unparsable > UNPARSABLE_ABOVE:
        return f"{unparsable:.0%} of the replies could not be parsed"
    actions = Counter(action for record in replies for action in record.actions)
    total = sum(actions.values())
    if total > 1:
        action, count = actions.most_common(1)[0]
        if count / total >= SAME_ACTION_FROM:
            return f"{count / total:.0%} of the actions were {action!r}"
    return None
