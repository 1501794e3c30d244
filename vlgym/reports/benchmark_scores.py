"""Scores of a benchmark as MageBench reports them.

Mean over items and repeats, half-width, instruction-following error, best of N.

Pure functions of finished episodes; playing them is `evaluation`'s business. Sources: MageBench (arXiv 2412.04531:
section on evaluation, figure 7) for repeats and the two error thresholds; the half-width's formula is not published
there, ours is stated below.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from ..intervals import student_t
from ..types import StepRecord
from .sampling import standard_error

UNPARSABLE_ABOVE = 0.9
SAME_ACTION_FROM = 0.9


def summarize_items(
    scores: Sequence[Sequence[float]], episodes: Sequence[Sequence[StepRecord]]
) -> dict[str, float | str | list[float] | None]:
    """Summarise `scores[item][repeat]` of one policy, and the episodes that they came from.

    Returns:
        `mean`, `half_width` (of its 95 % interval; `None` with one repeat), `repeats`, `instruction_error` (see
        `find_instruction_error`) and `best_of` (expected best score of 1, 2, ... repeats, averaged over items).
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
    """Return `t * sd / sqrt(n)`, the half-width of the 95 % interval of the mean of `means`, one for each repeat.

    Items are fixed, so the spread between repeats is what a repetition of the whole evaluation would show. `None`
    with one repeat.
    """
    error = standard_error({number: [mean] for number, mean in enumerate(means)})
    return None if error is None else student_t(len(means) - 1) * error


def expect_best(scores: Sequence[float], n: int) -> float:
    """Return the expected maximum of `n` of the scores drawn without replacement: the unbiased best-of-N estimate.

    The k-th smallest of `m` scores is the maximum in `C(k-1, n-1)` of the `C(m, n)` draws.

    >>> expect_best([0.0, 1.0], 1), expect_best([0.0, 1.0], 2)
    (0.5, 1.0)
    """
    m = len(scores)
    ordered = sorted(scores)
    return sum(math.comb(k, n - 1) * ordered[k] for k in range(n - 1, m)) / math.comb(m, n)


def find_instruction_error(episodes: Sequence[Sequence[StepRecord]]) -> str | None:
    """Return why the policy failed to follow the instructions, or `None`.

    MageBench's rule: more than 90 % of the replies cannot be parsed, or at least 90 % of the executed actions are the
    same one (several actions must have been executed for that).
    """
    replies = [record for episode in episodes for record in episode]
    if not replies:
        return None
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
