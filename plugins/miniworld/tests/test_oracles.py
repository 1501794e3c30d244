"""The oracles in real worlds."""

import math

import numpy as np
import pytest
from vlgym_miniworld.oracles import pick_up
from vlgym_miniworld.planner import Pose
from vlgym_miniworld.tasks import MiniWorldTask


@pytest.mark.parametrize(
    ("name", "strayed", "arguments"),
    [
        ("PutNext", 20, {}),
        ("OneRoom", 0, {"domain_rand": True}),
        pytest.param("FourRooms", 20, {}, marks=pytest.mark.exhaustive),
    ],
)
def test_the_oracle_wins_from_wherever_the_agent_has_strayed_to(make, act, name, strayed, arguments):
    env = make(name, seed=0, **arguments)
    wander, ended = np.random.default_rng(0), False
    while not ended:
        action = env.legal_actions()[int(wander.integers(3))] if env.turn < strayed else env.oracle()
        assert action is not None, f"no way after {env.turn} turns"
        _, _, *over, info = act(env, action)
        ended = any(over)
    assert info["success"]


def test_putnext_drops_a_wrong_box_first(make):
    env = make("PutNext", seed=0)
    world = env.world
    world.agent.carrying = next(e for e in world.entities if getattr(e, "color", "") == "blue")
    assert env.oracle() == "drop"
    assert env.state_text() == "You carry the blue box."


def test_a_red_box_that_cannot_be_carried_off_is_picked_up_and_then_dropped(make, monkeypatch):
    env = make("PutNext", seed=0)
    monkeypatch.setattr(MiniWorldTask, "oracle", lambda env: None)
    assert env.oracle() in ("turn left", "turn right", "move forward")
    env.world.agent.carrying = env.world.red_box
    assert env.oracle() == "drop"


def test_the_oracle_of_roomobjects_puts_down_what_it_carries(make):
    env = make("RoomObjects", seed=0)
    name, env.world.agent.carrying = env.name_things()["key"]
    assert env.oracle() == "drop"
    assert env.state_text() == f"You carry the {name}."


def test_the_oracle_keeps_off_the_street_and_off_the_wrong_objects(make):
    walk = make("Sidewalk", seed=0)
    edge, shut = walk.world.street.min_x, walk.goal().closed
    assert [shut(edge + side, 3.0) for side in (0.1, -0.1)] == [True, False]
    sign = make("Sign", seed=0, shape="key", color="red")
    places = [thing.pos for pair in sign.world._objects for thing in pair]
    assert [sign.goal().closed(x, z) for x, _, z in places] == [True] * 4 + [False, True]


def test_the_hand_does_not_pick_up_what_leans_on_a_wall_that_it_meets_first(make):
    world = make("PickupObjects", seed=0).world
    thing = next(entity for entity in world.entities if entity is not world.agent)
    world.entities = [thing, world.agent]
    for place, reached in ((5.0, True), (world.min_x + 0.3, False)):
        thing.pos = np.array([place, 0.0, 5.0])
        assert pick_up(world, [thing]).reached(Pose(place + 0.7, 5.0, math.pi)) == reached
