"""Share of an environment that needs the picture, from the bounds in registry.yaml."""

from collections.abc import Mapping
from typing import Any

WARN_ABOVE = 1 / 3  # share of the way from floor to ceiling: blind, the picture is hardly needed
ROOM = 0.2  # share of the way that the blind floor must leave for a sight score
LABELS = ("easy", "medium", "hard")

NOT_MEASURED = "not measured"  # stands for a blind floor that was not measured


def find_share(blind: Mapping[str, Any], floor: Mapping[str, Any], ceiling: Mapping[str, Any]) -> float | None:
    """Return the share of the way from floor to ceiling that blind policies reach, at least 0.

    It is that in `success` or in `return`, whichever is more; `None` where none is left.
    """
    ways = [
        (blind[name] - floor[name]) / (ceiling[name] - floor[name])
        for name in ("success", "return")
        if ceiling[name] > floor[name]
    ]
    return max(0.0, *ways) if ways else None


def find_scale(bounds: Mapping[str, Any] | None, least: str) -> tuple[float, float] | None:
    """Return the returns that a score calls 0 (`least`: `floor` or `blind`) and 1 (`ceiling`).

    `None` where a bound (of an entry of `read_registry`) was not measured, or where less than a
    fifth of the way from floor to ceiling is left: a score would mean nothing.
    """
    if not bounds or not all(bounds.get(name) for name in (least, "floor", "ceiling")):
        return None
    low, floor, high = (bounds[name]["return"] for name in (least, "floor", "ceiling"))
    return (low, high) if high > low and high - low >= ROOM * (high - floor) else None


def find_blind_share(entry: Mapping[str, Any] | None) -> float | None:
    """Return `find_share` of an entry of `read_registry`; `None` where a bound was not measured."""
    blind, floor, ceiling = ((entry or {}).get(name) for name in ("blind", "floor", "ceiling"))
    return find_share(blind, floor, ceiling) if blind and floor and ceiling else None


def rate_difficulty(stated: str, blind_share: float | None) -> str:
    """Return `easy`, `medium` or `hard`: the card's word, but not more than the blind floor leaves.

    Where blind policies reach a third of the way, an environment is at most `medium`, from two
    thirds on it is `easy`. Where they were not measured, the card's word stands.

    >>> rate_difficulty("hard", 0.1), rate_difficulty("hard", 0.4), rate_difficulty("hard", 0.9)
    ('hard', 'medium', 'easy')
    """
    if blind_share is None:
        return stated
    most = 2 if blind_share <= WARN_ABOVE else 1 if blind_share <= 2 * WARN_ABOVE else 0
    return LABELS[min(LABELS.index(stated), most)]
