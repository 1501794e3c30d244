"""How rows of a batch are put together: what many prompts begin with, and replies of similar length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..models.family import Prompt

SHORTEST_PREFIX = 8  # tokens; a shorter common prefix is not worth a pass of its own


def length_buckets(lengths: Sequence[int], overhead: int = 64) -> list[list[int]]:
    """Split rows into at most two groups of similar length, if that saves more padded tokens than a second pass costs
    (`overhead` tokens).

    One reply that rambles to the limit would otherwise make every row of its batch that long.
    """
    if not lengths:
        return []
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    n, longest = len(order), lengths[order[-1]]
    best, at = n * longest, 0
    for k in range(1, n):
        cost = k * lengths[order[k - 1]] + (n - k) * longest + overhead
        if cost < best:
            best, at = cost, k
    return [sorted(order)] if at == 0 else [sorted(order[:at]), sorted(order[at:])]


def common_prefix(prompts: Sequence[Prompt]) -> int:
    """Length of the text that all prompts begin with, before any image and short of the last token.

    0 if it is not worth sharing.
    """
    if len(prompts) < 2:
        return 0
    limit = min(len(prompt) - 1 for prompt in prompts)
    limit = min([limit, *(int(prompt.image_slots[0]) for prompt in prompts if len(prompt.image_slots))])
    first = prompts[0].ids[:limit].numpy()
    for prompt in prompts[1:]:
        different = np.nonzero(prompt.ids[:limit].numpy() != first[:limit])[0]
        if len(different):
            limit = int(different[0])
    return limit if limit >= SHORTEST_PREFIX else 0
