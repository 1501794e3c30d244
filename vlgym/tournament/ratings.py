"""Ratings of players from the results of their games: the model of Bradley and Terry (1952), a draw being half a win.

A rating is in Elo's units: who is 400 points above another is expected to win ten of eleven games. Ratings are
relative: their mean is 0. One draw of every player against an average one is added, so that a player who never lost has
a rating. The intervals are percentiles of a bootstrap over seeds: all games of a seed are drawn together, because they
share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..reports.needs import need

if TYPE_CHECKING:
    from .play import Result

ELO = 400 / np.log(10)
DRAWS = 1000
"""Samples of the bootstrap."""


@dataclass(frozen=True)
class Rating:
    """How strong a player is.

    Attributes:
        name: of the policy.
        rating: in Elo's units; the mean of all players is 0.
        low, high: ends of the 95 % interval.
        games: how many it played.
        points: wins and half the draws, over games.
        mean_return: of its seats.
    """

    name: str
    rating: float
    low: float
    high: float
    games: int
    points: float
    mean_return: float


def rate(results: Sequence[Result], *, samples: int = DRAWS) -> list[Rating]:
    """Return the ratings, the best first."""
    names = sorted({name for result in results for name in result.players})
    numbers = sorted({result.number for result in results})
    points = np.zeros((len(numbers), len(names), len(names)))
    for result in results:
        one, other = (names.index(name) for name in result.players)
        won = result.points(result.players[0])
        at = numbers.index(result.number)
        points[at, one, other] += won
        points[at, other, one] += 1 - won
    found = fit(points.sum(axis=0))
    rng = np.random.default_rng(0)
    drawn = [fit(points[rng.integers(len(numbers), size=len(numbers))].sum(axis=0)) for _ in range(samples)]
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    ratings = []
    for index, name in enumerate(names):
        own = [result for result in results if name in result.players]
        ratings.append(
            Rating(
                name, float(found[index]), float(low[index]), float(high[index]), len(own),
                float(np.mean([result.points(name) for result in own])),
                float(np.mean([result.return_of(name) for result in own])),
            )
        )  # fmt: skip
    return sorted(ratings, key=lambda each: -each.rating)


def fit(points: Any) -> Any:
    """Return the ratings `[players] float64` that make the results most likely.

    >>> ratings = fit(np.array([[0.0, 30.0], [10.0, 0.0]]))  # the first won 30 of 40 games
    >>> ratings.round().tolist()
    [94.0, -94.0]
    """
    need("scipy.optimize")
    from scipy.optimize import minimize

    count = len(points)

    def loss(strengths: Any) -> tuple[float, Any]:
        gap = strengths[:, None] - strengths[None, :]
        expected = 1 / (1 + np.exp(-gap))
        alone = 1 / (1 + np.exp(-strengths))
        value = (points * np.logaddexp(0, -gap)).sum() + 0.5 * (
            np.logaddexp(0, -strengths) + np.logaddexp(0, strengths)
        ).sum()
        slope = -(points * (1 - expected)).sum(axis=1) + (points * (1 - expected)).sum(axis=0) + alone - 0.5
        return float(value), slope

    strengths = minimize(loss, np.zeros(count), jac=True, method="L-BFGS-B").x
    return ELO * (strengths - strengths.mean())
