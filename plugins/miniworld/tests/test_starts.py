"""Starts of the newer versions: away from the box, not facing it, the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from vlgym_miniworld.oracles import Pose, pose_of
from vlgym_miniworld.plugin import ASIDE, SPECS_1
from vlgym_miniworld.starts import locate

import vlgym
from vlgym.errors import UserError

SMALL = (24, 24)
TITLES = [spec.title for spec in SPECS_1]


@pytest.fixture
def make() -> Iterator[Callable[..., Any]]:
    """Build environments in small pictures; all are closed afterwards."""
    built: list[Any] = []

    def build(env_id: str, **kwargs: Any) -> Any:
        built.append(vlgym.make(f"vlgym/{env_id}", image_size=kwargs.pop("image_size", SMALL), **kwargs))
        return built[-1]

    yield build
    for env in built:
        env.close()


class Thing:
    """An entity at a place."""

    def __init__(self, x: float, z: float) -> None:
        self.pos = np.array([x, 0.0, z])


@pytest.mark.parametrize(
    ("heading", "place", "bearing", "distance"),
    [
        (0.0, (3, 0), 0, 3),
        (0.0, (0, -2), 90, 2),
        (math.pi / 2, (0, -2), 0, 2),  # a heading of 90 degrees looks along -z
        (math.pi, (3, 4), 126.87, 5),
        (math.pi / 4 + 2 * math.pi, (-1, 0), 135, 1),
    ],
)
def test_bearing_and_distance_are_those_of_miniworlds_axes(
    heading: float, place: tuple[float, float], bearing: float, distance: float
) -> None:
    place_of_box = locate(Pose(1.0, 1.0, heading), Thing(1 + place[0], 1 + place[1]))
    assert place_of_box == pytest.approx((bearing, distance), abs=0.1)


@pytest.mark.parametrize(
    "title", [TITLES[0], *(pytest.param(each, marks=pytest.mark.exhaustive) for each in TITLES[1:])]
)
def test_the_robot_starts_away_from_the_box_and_does_not_face_it(make: Callable, title: str) -> None:
    env = make(f"{title}-v1")
    starts = []
    for seed in range(12):
        env.reset(seed=seed)
        starts.append(locate(pose_of(env.world), env.world.box))
        assert not env.world.near(env.world.box)
        assert not env.world.intersect(env.world.agent, env.world.agent.pos, env.world.agent.radius)
    assert min(bearing for bearing, _ in starts) >= ASIDE
    assert min(distance for _, distance in starts) >= env.min_distance > 0
    assert len({round(bearing) for bearing, _ in starts}) > 6, "the start is drawn, not set"


def test_the_box_is_not_in_the_first_picture(make: Callable) -> None:
    env = make("OneRoomS6Fast-v1", image_size=(64, 64))
    for seed in range(12):
        image = env.reset(seed=seed)[0]["image"].astype(int)
        assert not ((image[..., 0] > 120) & (image[..., 1] < 40) & (image[..., 2] < 40)).any(), seed
    sights = []
    for _ in range(8):
        image = env.step(env.parser.format(["turn left"]))[0]["image"].astype(int)
        sights.append(((image[..., 0] > 120) & (image[..., 1] < 40) & (image[..., 2] < 40)).any())
    assert any(sights), "who turns round sees it"


def test_a_rule_that_no_room_can_meet_is_said_and_the_world_stays_usable(
    make: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vlgym_miniworld.starts.WORLDS", 3)
    env = make("OneRoomS6-v1", min_distance=50)
    with pytest.raises(UserError, match="no start 50 m from the box"):
        env.reset(seed=0)
    env.min_distance = 1.0
    env.reset(seed=0)
    assert env.solve() is not None
