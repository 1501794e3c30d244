"""Share of an environment that needs the picture, from the floor, blind floor and ceiling in registry.yaml.

The numbers are measured in `vlgym.testing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WARN_ABOVE = 1 / 3
"""Share of the way from floor to ceiling above which a blind policy says that the picture is hardly needed."""

ROOM = 0.2
"""Share of the way from floor to ceiling that the blind floor must leave for a sight score."""

LABELS = ("easy", "medium", "hard")

NOT_MEASURED = "not measured"
"""Stands for a blind floor that was not measured."""


def find_share(blind: Mapping[str, Any], floor: Mapping[str, Any], ceiling: Mapping[str, Any]) -> float | None:
    """Return the share of the way from floor to ceiling that blind policies reach, in success or in return, whichever
    is more, and at least 0.

    Args:
        blind: `return` and `success`; the same of the others.
        floor: of random, idle and garbage play.
        ceiling: of the oracle.

    Returns:
        `None` where floor and ceiling leave no way.
    """
    ways = [
        (blind[name] - floor[name]) / (ceiling[name] - floor[name])
        for name in ("success", "return")
        if ceiling[name] > floor[name]
    ]
    return max(0.0, *ways) if ways else None


def find_scale(bounds: Mapping[str, Any] | None, least: str) -> tuple[float, float] | None:
    """Return the returns that a score calls 0 (`least`: `floor` or `blind`) and 1 (`ceiling`).

    `None` where one of the three was not measured, or where the ceiling is not above the lower one by at least a fifth
    of the way from floor to ceiling: a score would mean nothing.

    Args:
        bounds: an entry of `read_registry`, or `floor`, `blind` and `ceiling` alone.
    """
    if not bounds or not all(bounds.get(name) for name in (least, "floor", "ceiling")):
        return None
    low, floor, high = (bounds[name]["return"] for name in (least, "floor", "ceiling"))
    return (low, high) if high > low and high - low >= ROOM * (high - floor) else None


def find_blind_share(entry: Mapping[str, Any] | None) -> float | None:
    """Return `find_share` of an entry of `read_registry`; `None` where one of the three was not measured."""
    floor, blind, ceiling = (entry.get(name) if entry else None for name in ("floor", "blind", "ceiling"))
    return find_share(blind, floor, ceiling) if floor and blind and ceiling else None


def rate_difficulty(stated: str, blind_share: float | None) -> str:
    """Return `easy`, `medium` or `hard`: what the card states, but not more than the blind floor leaves.

    Where blind policies reach a third of the way, an environment is at most `medium`, from two thirds on it is `easy`,
    whatever its author thinks. Where they were not measured, the card's word stands.

    >>> rate_difficulty("hard", 0.1), rate_difficulty("hard", 0.4), rate_difficulty("hard", 0.9)
    ('hard', 'medium', 'easy')
    """
    if blind_share is None:
        return stated
    most = 2 if blind_share <= WARN_ABOVE else 1 if blind_share <= 2 * WARN_ABOVE else 0
    return LABELS[min(LABELS.index(stated), most)]
