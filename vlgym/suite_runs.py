"""Play a suite: every item of every part, as often as the protocol says, in each planner setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from .benchmark_scores import BenchmarkScores, summarize_items
from .errors import UserError
from .evaluation import without_images
from .making import make
from .policies import Policy
from .registry import get_registry
from .rollout import Runner, run_episodes
from .suites import SuitePart


@dataclass(frozen=True)
class SuiteRow:
    """One line of a suite's table.

    Attributes:
        env_id: environment id.
        planner: `online` or `global`.
        policy: policy name.
        items: number of items.
        result: score figures (`info["score"]` after the last turn, else the return).
        success: share of episodes with success.
    """

    env_id: str
    planner: str
    policy: str
    items: int
    result: BenchmarkScores
    success: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def run_suite(
    name: str,
    policy: Policy,
    *,
    repeats: int | None = None,
    planner: str | None = None,
    only: str | None = None,
    on_item: Callable[[SuitePart, int], None] | None = None,
) -> list[SuiteRow]:
    """Play the suite's parts and return a row for each environment and planner.

    Args:
        name: for example `magebench-mini`.
        policy: who answers.
        repeats: instead of each part's own number.
        planner: only this setting; all that each part reports by default.
        only: only this environment id.
        on_item: called after each item with its part and its index (to move a progress bar).

    Raises:
        UserError: unknown suite, or nothing of it matches `planner` and `only`.
    """
    rows = []
    for part in get_registry().suite(name):
        for setting in part.planners:
            if (only is None or part.env_id == only) and (planner is None or setting == planner):
                rows.append(_play_part(part, setting, policy, repeats or part.repeats, on_item))
    if not rows:
        raise UserError(f"Nothing in suite {name} has planner {planner or 'any'} and environment {only or 'any'}.")
    return rows


def _play_part(
    part: SuitePart, planner: str, policy: Policy, repeats: int, on_item: Callable[[SuitePart, int], None] | None
) -> SuiteRow:
    scores, played = [], []
    for index, item in enumerate(part.items):
        env = make(part.env_id, **item, planner=planner)
        runner = Runner([env], split="test", first_episode=index * repeats, episodes=repeats)
        try:
            episodes = [[without_images(r) for r in episode] for episode in run_episodes(runner, policy)]
        finally:
            runner.close()
        scores.append([_score(episode) for episode in episodes])
        played += episodes
        if on_item is not None:
            on_item(part, index)
    success = sum(episode[-1].success for episode in played) / len(played)
    return SuiteRow(part.env_id, planner, policy.name, len(part.items), summarize_items(scores, played), success)


def _score(episode: list[Any]) -> float:
    score = episode[-1].score
    return sum(record.reward for record in episode) if score is None else score
