"""The path search on floors drawn by hand."""

import math

import numpy as np
import pytest
from vlgym_miniworld.oracles import start_of_best_tour
from vlgym_miniworld.planner import FORWARD, Body, Field, Ground, Pose, Walls, search

ROOM = [((0, 0), (10, 0)), ((10, 0), (10, 10)), ((10, 10), (0, 10)), ((0, 10), (0, 0))]
BODY = Body(radius=0.4, turn=math.radians(15), step=0.15)


def walls(*more):
    return Walls(np.array([*ROOM, *more], dtype=float), reach=0.7)


def go(start, target, ground, body=BODY, near=1.0):
    tx, tz = target
    field = Field([(tx, tz, 0.5)], ground, body.radius)
    return search(start, body, ground, field, lambda pose: math.hypot(pose.x - tx, pose.z - tz) < near, near)


def test_a_target_straight_ahead_takes_the_distance_over_the_step():
    moves, poses = go(Pose(2.0, 5.0, 0.0), (8.0, 5.0), Ground(walls()))
    # From 6 m away to under 1 m: more than 5 m in steps of 0.15 m, that is 34 steps.
    assert moves == [FORWARD] * 34
    assert len(poses) == 35
    assert poses[-1].x == pytest.approx(2.0 + 34 * 0.15)


def test_a_way_leads_through_a_gap_clear_of_its_edges_where_the_agent_fits():
    ground = Ground(walls(((5, 0), (5, 4.5)), ((5, 5.5), (5, 10))))
    _, poses = go(Pose(2.0, 1.0, 0.3), (8.0, 9.0), ground)
    assert not any(ground.blocks(pose.x, pose.z, BODY.radius) for pose in poses)
    crossing = [pose.z for pose in poses if 4.8 < pose.x < 5.2]
    assert crossing
    assert all(4.5 < z < 5.5 for z in crossing)
    ground = Ground(walls(((5, 0), (5, 4.7)), ((5, 5.3), (5, 10))))
    assert go(Pose(2.0, 1.0, 0.0), (8.0, 9.0), ground) is None


def test_a_thing_in_the_way_is_walked_round():
    ground = Ground(walls(), things=((5.0, 5.0, 0.8),))
    _, poses = go(Pose(2.0, 5.0, 0.0), (8.0, 5.0), ground)
    assert min(math.hypot(pose.x - 5.0, pose.z - 5.0) for pose in poses) >= 1.2


def test_a_carried_box_stays_clear_of_walls_and_things():
    body = Body(radius=0.4, turn=math.radians(15), step=0.15, carried=0.5, arm=1.1)
    ground = Ground(walls(((5, 0), (5, 4)), ((5, 6), (5, 10))), things=((7.0, 5.0, 0.3),))
    moves, poses = go(Pose(2.0, 2.0, 0.0), (8.0, 8.0), ground, body=body, near=1.5)
    assert moves
    for pose in poses:
        x, z = pose.x + 1.1 * math.cos(pose.heading), pose.z - 1.1 * math.sin(pose.heading)
        assert not ground.blocks(pose.x, pose.z, 0.4)
        assert not ground.blocks(x, z, 0.5)


def test_the_field_does_not_leak_through_a_wall_to_a_thing_that_leans_on_it():
    # The target stands 0.5 m behind a wall across the whole room but for a gap at the far end.
    ground = Ground(walls(((5, 0), (5, 8))))
    field = Field([(5.5, 2.0, 0.5)], ground, 0.4)
    assert field.at(4.4, 2.0) > 10.0  # down to the gap at z > 8 and back, not half a metre
    assert field.at(6.5, 2.0) < 1.5


def test_the_best_tour_avoids_the_pocket_without_a_way_on():
    # Stop 0 is nearest but every way on from it is 60 steps; 1, 2 and 3 lie close together.
    legs = [[0, 60, 60, 60], [60, 0, 10, 12], [60, 10, 0, 10], [60, 12, 10, 0]]
    assert start_of_best_tour([5, 30, 40, 40], legs, length=3, branches=3) == 1
    # With tours of one stop the nearest wins.
    assert start_of_best_tour([5, 30, 40, 40], legs, length=1, branches=3) == 0
