"""Summary of finished episodes: success with an interval, return, turns, normalized score."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..intervals import wilson_interval
from ..play.replay import ROUNDING
from ..play.trajectory import NO_PICTURE
from ..registry import get_registry
from ..sight.blind_gap import find_scale
from ..types import StepRecord

SAME_BOUNDS = frozenset({"parser"})
"""Arguments that change no floor or ceiling: the policies reply in the parser's form."""

DEFAULT_REWARD: Mapping[str, Any] = {"invalid_penalty": 0.0}
"""Default cost of an invalid turn. It counts in the floors: random and blind play have such turns."""


@dataclass(frozen=True)
class Report:
    """Metrics of one policy on one environment and split.

    Attributes:
        success: share of episodes with `success` after the last turn; `success_low` and
            `success_high` are its 95 % Wilson interval.
        return_se: standard error of `mean_return`; 0 with one episode.
        invalid_rate: share of replies from which no legal action was read.
        negative_rate: share of replies with a negative reward.
        cut_rate: share of replies that a limit ended before they were over, as the policy says.
        normalized: `(mean_return - floor) / (ceiling - floor)`, from registry.yaml; `None` where
            the file has no such figures, or measured another environment than these arguments make.
        mean_score: mean of the benchmark's own score, where one exists.
        sight_score: `(mean_return - blind) / (ceiling - blind)` in [-1, 1], from registry.yaml;
            `None` as `normalized`, or where the blind floor was not measured or leaves no room.
    """

    env_id: str
    policy: str
    split: str
    episodes: int
    success: float
    success_low: float
    success_high: float
    mean_return: float
    return_se: float
    mean_turns: float
    invalid_rate: float
    negative_rate: float
    cut_rate: float
    normalized: float | None = None
    mean_score: float | None = None
    sight_score: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarize(
    env_id: str, policy: str, split: str, episodes: Sequence[Sequence[StepRecord]], *, changed: bool = False
) -> Report:
    """Return the report of episodes, not normalized where arguments `changed` the environment."""
    count = len(episodes)
    wins = sum(episode[-1].success for episode in episodes)
    returns = [sum(record.reward for record in episode) for episode in episodes]
    scores = [episode[-1].score for episode in episodes if episode[-1].score is not None]

    # Shares of replies.
    records = [record for episode in episodes for record in episode]
    invalid = _mean([record.invalid for record in records])
    negative = _mean([record.reward < 0 for record in records])
    cut = _mean([record.cut for record in records])

    # Without an episode there are no means: NaN.
    mean, (low, high) = _mean(returns), wilson_interval(wins, count)
    variance = sum((value - mean) ** 2 for value in returns) / max(1, count - 1)
    se = math.sqrt(variance / count) if count else math.nan
    turns = len(records) / count if count else math.nan
    return Report(
        env_id, policy, split, count, wins / count if count else math.nan, low, high, mean, se,
        turns, invalid, negative, cut, None if changed else normalized_score(env_id, mean),
        _mean(scores) if scores else None, None if changed else sight_score(env_id, mean),
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def normalized_score(env_id: str, mean_return: float) -> float | None:
    """Return `(R - floor) / (ceiling - floor)` by registry.yaml, or `None` without its numbers."""
    return _place(env_id, mean_return, "floor")


def sight_score(env_id: str, mean_return: float) -> float | None:
    """Return `(R - blind) / (ceiling - blind)` with the numbers of registry.yaml, cut to [-1, 1].

    `None` without these numbers, or if the blind floor leaves no room (see `find_scale`).
    """
    place = _place(env_id, mean_return, "blind")
    return None if place is None else max(-1.0, min(1.0, place))


def changes_bounds(env_id: str, arguments: Mapping[str, Any]) -> bool:
    """True if registry.yaml has the floors and ceiling of another environment than arguments make.

    An argument does if it is not in `SAME_BOUNDS` and differs from the id's own.
    """
    entry = get_registry().known.get(env_id)
    usual = {**DEFAULT_REWARD, **(entry["spec"].kwargs if entry else {})}
    others = {name: value for name, value in arguments.items() if name not in SAME_BOUNDS}
    return any(name not in usual or usual[name] != value for name, value in others.items())


def find_wrong_reward(env_id: str, changed: bool, record: StepRecord) -> str | None:
    """Return why no turn of an environment can have had a record's reward, if so.

    The card's `reward_range` bounds each action of a turn, an invalid reply counting as one; not
    those of an environment whose arguments are `changed`.
    """
    registry = get_registry()
    spec = registry.specs.get(env_id) or registry.known.get(env_id, {}).get("spec")
    if changed or spec is None:
        return None
    low, high = spec.reward_range
    actions = max(1, len(record.actions) + record.invalid)
    if actions * min(low, 0.0) - ROUNDING <= record.reward <= actions * max(high, 0.0) + ROUNDING:
        return None
    return f"pays {record.reward:g} at its turn {record.turn}; the card's reward_range is {low:g} to {high:g}"


def without_images(record: StepRecord) -> StepRecord:
    """Return the record without prompt and image: metrics need neither, of thousands of turns."""
    return replace(record, messages=[], image=NO_PICTURE, final_messages=None)


def _place(env_id: str, value: float, least: str) -> float | None:
    """Return the position of a return on the scale of registry.yaml (see `find_scale`)."""
    scale = find_scale(get_registry().known.get(env_id), least)
    return (value - scale[0]) / (scale[1] - scale[0]) if scale else None
