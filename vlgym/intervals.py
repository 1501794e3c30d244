"""Confidence intervals (Wilson's for shares, Student's t for means) and exact tests."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import fmean, stdev


def permutation_p(answers: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Return the share of permutations of `right` that agree with `answers` as often or more.

    It holds for answers of any frequency: who always gives the same has `p = 1`. Counted exactly,
    by the rook polynomials of the places where a value may meet itself.

    >>> permutation_p(["left", "right", "right"], ["left", "right", "right"]) == 1 / 3
    True
    >>> permutation_p(["left", "left", "left"], ["left", "right", "right"])
    1.0
    """
    matches = sum(a == b for a, b in zip(answers, right, strict=True))
    count, tally = len(right), Counter(answers)

    # rooks[j]: ways to fix j agreeing places
    rooks = [1]
    for value, times in Counter(right).items():
        other = tally[value]
        most = min(times, other)
        own = [math.comb(times, j) * math.comb(other, j) * math.factorial(j) for j in range(most + 1)]
        product = [0] * (len(rooks) + len(own) - 1)
        for i, ways in enumerate(rooks):
            for j, more in enumerate(own):
                product[i + j] += ways * more
        rooks = product
    # Inclusion and exclusion count the permutations that agree in exactly k places.
    permutations = sum(
        (-1) ** (j - k) * math.comb(j, k) * rooks[j] * math.factorial(count - j)
        for k in range(matches, len(rooks))
        for j in range(k, len(rooks))
    )
    return permutations / math.factorial(count)


def binomial_p(hits: int, trials: int, chance: float) -> float:
    """Return the probability of `hits` or more in `trials` of the probability `chance` each.

    >>> binomial_p(9, 10, chance=0.5) == 11 / 1024
    True
    """
    ways = (math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits, trials + 1))
    return sum(ways)


def binomial_interval(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a proportion (Clopper and Pearson 1934).

    >>> low, high = binomial_interval(9, 10)
    >>> print(f"{low:.3f} to {high:.3f}")
    0.555 to 0.997
    """

    def find_low(hits: int) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            above = binomial_p(hits, trials, middle) > (1 - level) / 2
            low, high = (low, middle) if above else (middle, high)
        return low

    return find_low(hits) if hits else 0.0, 1 - find_low(trials - hits) if hits < trials else 1.0


def holm(values: Sequence[float], alpha: float) -> list[bool]:
    """Return which p values stand, any wrongly with probability at most `alpha` (Holm 1979).

    >>> holm([0.010, 0.040, 0.030], alpha=0.05)
    [True, False, False]
    """
    stands = [False] * len(values)
    for place, index in enumerate(sorted(range(len(values)), key=lambda i: values[i])):
        if values[index] > alpha / (len(values) - place):
            break
        stands[index] = True
    return stands


def wilson_interval(successes: float, trials: float) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion (Wilson 1927); `(0, 1)` without trials.

    `trials` is the number of independent ones: no whole number where trials depend on each other.

    >>> low, high = wilson_interval(9, 10)
    >>> print(f"{low:.3f} to {high:.3f}")
    0.596 to 0.982
    """
    if trials == 0:
        return 0.0, 1.0
    p, z = successes / trials, 1.959964
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


def student_t(degrees: int, level: float = 0.95) -> float:
    """Return the `t` for which a Student t variable lies within `[-t, t]` with probability `level`.

    The interval of a mean of `n` values is `mean ± student_t(n - 1) * sd / sqrt(n)`.

    >>> round(student_t(4), 3)
    2.776
    """
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def student_p(values: Sequence[float], least: float = 0.0) -> float:
    """Return the one-sided p value of a mean above 0 (Student's t); NaN for fewer than two values.

    The deviation counts as at least `least`: seeds that end equal would have none.

    >>> round(student_p([1.0, 2.0, 3.0]), 4)
    0.0371
    """
    n = len(values)
    if n < 2:
        return math.nan
    deviation = max(least, stdev(values))
    if deviation == 0:
        return 0.0 if fmean(values) > 0 else 1.0
    t = fmean(values) / deviation * math.sqrt(n)
    tail = (1 - _within(abs(t), n - 1)) / 2
    return tail if t > 0 else 1 - tail


def _within(t: float, degrees: int) -> float:
    """Return the probability of `[-t, t]` (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle, odd = math.atan(t / math.sqrt(degrees)), degrees % 2
    cosine = math.cos(angle)
    term = total = 0.0 if degrees == 1 else cosine if odd else 1.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
