"""What floor, blind floor and ceiling of registry.yaml say together: how much of an environment needs the picture.

Pure numbers: measuring them is `vlgym.testing`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WARN_ABOVE = 1 / 3
"""Share of the way from floor to ceiling above which a blind policy says that the picture is hardly needed."""

LABELS = ("easy", "medium", "hard")

NOT_MEASURED = "not measured"
"""What is shown for a blind floor that nobody measured: never a number."""


def share_of_way(value: float, floor: float, ceiling: float) -> float | None:
    """Return how far `value` lies on the way from `floor` to `ceiling`; `None` where that is no way up."""
    return (value - floor) / (ceiling - floor) if ceiling > floor else None


def find_blind_share(entry: Mapping[str, Any] | None) -> float | None:
    """Return the share of the way from floor to ceiling that the blind policies reach, in return or in success,
    whichever is more, and at least 0.

    Args:
        entry: as `vlgym.registry_file.read_registry` returns it.

    Returns:
        `None` where one of the three was not measured, or floor and ceiling leave no way.
    """
    floor, blind, ceiling = (entry.get(name) if entry else None for name in ("floor", "blind", "ceiling"))
    if not (floor and blind and ceiling):
        return None
    ways = [share_of_way(blind[name], floor[name], ceiling[name]) for name in ("return", "success")]
    known = [way for way in ways if way is not None]
    return max(0.0, *known) if known else None


def rate_difficulty(stated: str, blind_share: float | None) -> str:
    """Return `easy`, `medium` or `hard`: what the card states, but not more than the blind floor leaves.

    Where blind policies reach a third of the way, an environment is at most `medium`, from two thirds on it is `easy`,
    whatever its author thinks. Where they were not measured, the card's word stands.
    """
    if blind_share is None:
        return stated
    most = 2 if blind_share <= WARN_ABOVE else 1 if blind_share <= 2 * WARN_ABOVE else 0
    return LABELS[min(LABELS.index(stated), most)]
