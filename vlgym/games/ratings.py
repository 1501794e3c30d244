"""Ratings of players by the model of Bradley and Terry (1952), a draw being half a win.

In Elo's units: 400 points more win ten of eleven games. The mean is 0. The prior is one draw of
every player against an average one. The intervals are the posterior's, sampled by Metropolis' rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .tournament import Result

ELO = 400 / np.log(10)
CHAINS, CHAIN_STEPS, BURN_IN = 200, 60, 20


@dataclass(frozen=True)
class Rating:
    """Strength of a player in Elo's units."""

    name: str
    rating: float
    low: float  # end of the 95 % interval; infinite where the results do not bound it
    high: float
    games: int
    points: float  # wins and half the draws, over games
    mean_return: float  # of its seats

    @property
    def interval(self) -> str:
        low, high = (f"{end:+.0f}" if math.isfinite(end) else "unbounded" for end in (self.low, self.high))
        return f"{low} to {high}"


def rate(results: Sequence[Result]) -> list[Rating]:
    """Return the ratings, the best first."""
    names = sorted({name for result in results for name in result.players})

    # Wins over each other; one player who held every seat has none.
    points = np.zeros((len(names), len(names)))
    for result in results if len(names) > 1 else ():
        first, second = dict.fromkeys(result.players)
        one, other = names.index(first), names.index(second)
        points[one, other] += result.points(first)
        points[other, one] += 1 - result.points(first)

    # The interval's ends that a prior alone bounds are infinite.
    values = fit(points)
    low, high = np.percentile(sample(points, np.random.default_rng(0)), [2.5, 97.5], axis=0)
    low, high = np.where(points.any(axis=1), low, -np.inf), np.where(points.any(axis=0), high, np.inf)
    ratings, columns = [], (each.tolist() for each in (values, low, high))
    for name, value, least, most in zip(names, *columns, strict=True):
        own = [result for result in results if name in result.players]
        gains = float(np.mean([result.points(name) for result in own]))
        returns = float(np.mean([result.return_of(name) for result in own]))
        ratings.append(Rating(name, value, least, most, len(own), gains, returns))
    return sorted(ratings, key=lambda each: -each.rating)


def fit(points: Any) -> Any:
    """Return the ratings `[players] float64` that are most likely, the prior included.

    >>> ratings = fit(np.array([[0.0, 30.0], [10.0, 0.0]]))  # the first won 30 of 40 games
    >>> ratings.round().tolist()
    [94.0, -94.0]
    """
    strengths = _find_mode(points)
    return ELO * (strengths - strengths.mean())


def sample(points: Any, rng: np.random.Generator) -> Any:
    """Return draws `[n, players] float64` of the ratings' posterior."""
    # Chains begin around the mode, with steps of the posterior's widths there.
    mode = _find_mode(points)
    _, hessian = _differentiate(points, mode)
    width = np.linalg.cholesky(np.linalg.inv(hessian)).T
    now = mode + rng.standard_normal((CHAINS, len(mode))) @ width
    loss, samples = _loss(points, now), []

    # Metropolis' rule: a worse place is taken with the ratio of the densities.
    for step in range(CHAIN_STEPS):
        tried = now + 2.4 / math.sqrt(len(mode)) * rng.standard_normal(now.shape) @ width
        value = _loss(points, tried)
        taken = np.log(rng.random(CHAINS)) < loss - value
        now, loss = np.where(taken[:, None], tried, now), np.where(taken, value, loss)
        if step >= BURN_IN:
            samples.append(now)
    draws = np.concatenate(samples)
    return ELO * (draws - draws.mean(axis=1, keepdims=True))


def _loss(points: Any, strengths: Any) -> Any:
    """Return minus the log-posterior `[...]` of strengths `[..., players]`, but for a constant."""
    gap = strengths[..., :, None] - strengths[..., None, :]
    prior = np.logaddexp(0, -strengths) + np.logaddexp(0, strengths)
    return (points * np.logaddexp(0, -gap)).sum(axis=(-2, -1)) + 0.5 * prior.sum(axis=-1)


def _find_mode(points: Any) -> Any:
    """Return the strengths `[players]` with the least loss, which is convex: Newton's method."""
    strengths = np.zeros(len(points))
    for _ in range(100):
        gradient, hessian = _differentiate(points, strengths)
        step = np.linalg.solve(hessian, gradient)
        while _loss(points, strengths - step) > _loss(points, strengths) and abs(step).max() > 1e-9:
            step /= 2
        strengths = strengths - step
        if abs(step).max() <= 1e-9:
            break
    return strengths


def _differentiate(points: Any, strengths: Any) -> tuple[Any, Any]:
    """Return gradient `[players]` and Hessian `[players, players]` of the loss."""
    share = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    alone = 1 / (1 + np.exp(-strengths))
    lost = points * (1 - share)
    curvature = (points + points.T) * share * (1 - share)
    hessian = np.diag(curvature.sum(axis=1) + alone * (1 - alone)) - curvature
    return lost.sum(axis=0) - lost.sum(axis=1) + alone - 0.5, hessian
