"""Shared fixtures: environments that are closed afterwards, and snapshots made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from vlgym_football.engine import Snapshot

from vlgym.env import VLEnv
from vlgym.registry.making import make


@pytest.fixture
def make_env() -> Iterator[Callable[..., VLEnv]]:
    """Build `vlgym/Football-v0` with arguments; all are closed afterwards."""
    built: list[VLEnv] = []

    def build(**kwargs: Any) -> VLEnv:
        built.append(make("vlgym/Football-v0", **kwargs))
        return built[-1]

    yield build
    for env in built:
        env.close()


def snap(ball: tuple[float, float] = (0.0, 0.0), **kwargs: Any) -> Snapshot:
    """Return a snapshot: three of ours, three opponents far from everything, unless given otherwise."""
    left = np.array(kwargs.pop("left", [[-1.0, 0.0], [0.0, 0.0], [0.2, 0.2]]), dtype=float)
    right = np.array(kwargs.pop("right", [[1.0, 0.0], [0.5, 0.0], [0.6, -0.3]]), dtype=float)
    values: dict[str, Any] = {
        "frame": 1,
        "ball": np.array([*ball, 0.1]),
        "ball_velocity": np.array([*kwargs.pop("ball_velocity", (0.0, 0.0)), 0.0]),
        "left": left,
        "left_velocity": np.array(kwargs.pop("left_velocity", np.zeros_like(left)), dtype=float),
        "left_active": np.ones(len(left), bool),
        "right": right,
        "right_velocity": np.array(kwargs.pop("right_velocity", np.zeros_like(right)), dtype=float),
        "right_active": np.ones(len(right), bool),
        "owner_team": 0,
        "owner": 1,
        "controlled": 1,
        "score": (0, 0),
        "mode": 0,
    }
    return Snapshot(**(values | kwargs))


@pytest.fixture
def snapshot() -> Callable[..., Snapshot]:
    """The function `snap`."""
    return snap
