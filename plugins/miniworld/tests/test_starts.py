"""Starts of the newer versions: away from the box, not facing it, the same for the same seed."""

import numpy as np
import pytest
from vlgym_miniworld.plugin import ASIDE, SPECS_1

from vlgym.errors import UserError

TITLES = [spec.title for spec in SPECS_1]


@pytest.mark.parametrize(
    "title", [TITLES[0], *(pytest.param(each, marks=pytest.mark.exhaustive) for each in TITLES[1:])]
)
def test_the_robot_starts_away_from_the_box_and_does_not_face_it(make, title):
    env = make(f"{title}-v1")
    bearings = []
    for seed in range(12):
        env.reset(seed=seed)
        agent, way = env.world.agent, env.world.box.pos - env.world.agent.pos
        distance = np.linalg.norm(way)
        assert distance >= env.min_distance > 0
        bearings.append(np.degrees(np.arccos(way @ agent.dir_vec / distance)))
        assert not env.world.intersect(agent, agent.pos, agent.radius)
    assert min(bearings) >= ASIDE
    assert len(set(np.round(bearings))) > 6, "the start is drawn, not set"


def shows_red(image):
    return bool(((image[..., 0] > 120) & (image[..., 1:] < 40).all(axis=-1)).any())


def test_the_box_is_not_in_the_first_picture(act, make):
    env = make("OneRoomS6Fast-v1", image_size=(64, 64))
    for seed in range(12):
        assert not shows_red(env.reset(seed=seed)[0]["image"]), seed
    sights = [shows_red(act(env, "turn left")[0]["image"]) for _ in range(8)]
    assert any(sights), "who turns round sees it"


def test_a_rule_that_no_room_can_meet_is_said_and_the_world_stays_usable(make, monkeypatch):
    monkeypatch.setattr("vlgym_miniworld.starts.WORLDS", 3)
    env = make("OneRoomS6-v1", min_distance=50)
    with pytest.raises(UserError, match="no start 50 m from the box"):
        env.reset(seed=0)
    env.min_distance = 1.0
    env.reset(seed=0)
    assert env.solve() is not None
