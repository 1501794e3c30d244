"""Starts of the newer versions: away from the box, not facing it, the same for the same seed."""

import math

import numpy as np
import pytest
from vlgym_miniworld.oracles import pose_of
from vlgym_miniworld.plugin import ASIDE, SPECS_1
from vlgym_miniworld.starts import locate

from vlgym.errors import UserError

TITLES = [spec.title for spec in SPECS_1]
SMALLEST_BOX = 8  # pixels high, in the far corner of the largest room, at 224 x 224


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


def test_a_least_distance_alone_is_kept(make):
    env = make("OneRoomS6Fast", min_distance=4.0)
    for seed in range(6):
        env.reset(seed=seed)
        assert locate(pose_of(env.world), env.world.box)[1] >= 4.0


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


def walls_apart(env):
    return [float(env.world.max_x - env.world.min_x), float(env.world.max_z - env.world.min_z)]


@pytest.mark.parametrize(("title", "cell", "gap"), [("OneRoomS6Fast", 1.0, 0.0), ("MazeS3Fast", 3.0, 0.25)])
def test_a_level_sets_size_distance_turns_and_boxes_of_other_colours(make, title, cell, gap):
    env = make(f"{title}-v1")
    usual, _ = env.reset(seed=3)
    size = walls_apart(env)
    for level, arguments in enumerate(env.level_arguments):
        env.reset(seed=3, options={"level": level})
        side = next(iter(arguments["layout"].values()))
        assert walls_apart(env) == pytest.approx([side * cell + (side - 1) * gap] * 2)
        bearing, distance = locate(pose_of(env.world), env.world.box)
        assert distance >= arguments["min_distance"]
        assert bearing >= arguments["min_bearing"]
        others = [thing for thing in env.world.entities if thing not in (env.world.box, env.world.agent)]
        assert len(others) == arguments.get("distractors", 0)
        assert all(thing.color != "red" for thing in others)
        assert env.world.max_episode_steps == env.max_turns == arguments["max_turns"]
        assert env.oracle()
        assert env.pilot.remaining < env.max_turns
    again, _ = env.reset(seed=3)
    assert walls_apart(env) == size
    assert np.array_equal(usual["image"], again["image"])


def test_the_red_box_can_be_seen_across_the_largest_room(make):
    env = make("OneRoom-v1", seed=0, image_size=(224, 224), level=5)
    world = env.world
    world.entities = [world.box, world.agent]
    far = world.max_x - 0.6
    world.box.pos, world.agent.pos = np.array([far, 0, 0.6]), np.array([0.6, 0, far])
    world.agent.dir = math.pi / 4
    picture = world.render_obs().astype(int)
    red = (picture[..., 0] > 100) & (picture[..., 1:].max(axis=2) < 50)
    assert red.any(axis=1).sum() >= SMALLEST_BOX
