"""Levels of rooms and mazes: their size, what else stands there, and the red box in the distance."""

import math

import numpy as np
import pytest
from vlgym_miniworld.oracles import pose_of
from vlgym_miniworld.starts import locate

SMALLEST_BOX = 8  # pixels high, in the far corner of the largest room, at 224 x 224


def walls_apart(env):
    return float(env.world.max_x - env.world.min_x)


@pytest.mark.parametrize(("title", "cell", "gap"), [("OneRoomS6Fast", 1.0, 0.0), ("MazeS3Fast", 3.0, 0.25)])
def test_a_level_sets_size_distance_turns_and_boxes_of_other_colours(make, title, cell, gap):
    env = make(f"{title}-v1")
    usual, _ = env.reset(seed=3)
    size = walls_apart(env)
    for level, arguments in enumerate(env.level_arguments):
        env.reset(seed=3, options={"level": level})
        side = next(iter(arguments["layout"].values()))
        assert walls_apart(env) == pytest.approx(side * cell + (side - 1) * gap)
        bearing, distance = locate(pose_of(env.world), env.world.box)
        assert distance >= arguments["min_distance"]
        assert bearing >= arguments["min_bearing"]
        others = [thing for thing in env.world.entities if thing not in (env.world.box, env.world.agent)]
        assert len(others) == arguments.get("distractors", 0)
        assert all(thing.color != "red" for thing in others)
        assert env.world.max_episode_steps == env.max_turns == arguments["max_turns"]
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
