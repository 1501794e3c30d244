"""The metrics of an update over all processes, each weighed by what it is a mean of.

With one process they stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..runs import distributed
from ..runs.distributed import World
from .batch import Batch

SUMS = ("episode/count", "env/failures")
PER_EPISODE = ("episode/success", "episode/return", "rollout/used_episodes")
PER_TOKEN = ("rollout/token_logp",)


def merge_metrics(metrics: Mapping[str, float], batch: Batch, world: World) -> tuple[dict[str, float], int, int]:
    """Metrics, environment steps and reply tokens of an update over all processes.

    Counts are added up, and of what is called a maximum the largest is taken. The rest are means: of episodes, of
    tokens, else of environment steps; a process in which one is no number (no episode ended) does not count for it.
    Quantiles are averaged, too.

    Args:
        metrics: of this process; another one may have others.
        batch: its rollout.
        world: the processes.
    """
    steps, tokens = len(batch.samples), int(batch.mask.sum())
    if world.size == 1:
        return dict(metrics), steps, tokens
    own = {"metrics": dict(metrics), "steps": steps, "tokens": tokens}
    all_of: list[dict[str, Any]] = distributed.gather_objects(own, world)
    names = {name: None for each in all_of for name in each["metrics"]}
    merged = {name: _merge(name, all_of) for name in names}
    return merged, sum(each["steps"] for each in all_of), sum(each["tokens"] for each in all_of)


def _merge(name: str, all_of: list[dict[str, Any]]) -> float:
    found: list[tuple[float, float]] = []
    for each in all_of:
        metrics = each["metrics"]
        weight = metrics.get("episode/count", 1.0) if name in PER_EPISODE else each["steps"]
        weight = each["tokens"] if name in PER_TOKEN else weight
        value = metrics.get(name, math.nan)
        if math.isfinite(value):
            found.append((value, weight))
    if not found:
        return math.nan
    if name in SUMS:
        return sum(value for value, _ in found)
    if name.endswith("_max"):
        return max(value for value, _ in found)
    if len({value for value, _ in found}) == 1:
        return found[0][0]  # such as a learning rate: a mean would round it
    whole = sum(weight for _, weight in found)
    return sum(value * weight for value, weight in found) / whole if whole else math.nan
