"""The picture: no two labels overlap in any room, hidden things stay hidden, doors show."""

import numpy as np
import pytest
from vlgym_alfworld import view
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import HEAT
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.rooms import load_floor
from vlgym_alfworld.view import RoomView

MOST_CROWDED = 9  # 47 receptacles, as many as scene 30


@pytest.fixture
def kitchen():
    running = TextGame()
    running.open(draw_game(np.random.default_rng(3), HEAT, scene=MOST_CROWDED))
    yield running
    running.close()


def draw(
    running: TextGame, size: tuple[int, int] = (448, 448), scene: int = MOST_CROWDED
) -> tuple[RoomView, np.ndarray]:
    made = RoomView(running.ids, running.world, load_floor(scene), size)
    return made, made.draw(running.world)


def test_what_lies_in_a_closed_receptacle_does_not_show(kitchen: TextGame):
    made, before = draw(kitchen)
    world = kitchen.world
    hidden = next(thing for thing, place in world.holder.items() if place in world.openable)
    moved = dict(world.holder)
    del moved[hidden]
    import dataclasses

    assert np.array_equal(made.draw(dataclasses.replace(world, holder=moved)), before)
    kitchen.command(f"go to {world.holder[hidden]}")
    assert hidden not in " ".join(view.describe(kitchen.world))
    kitchen.command(f"open {world.holder[hidden]}")
    assert hidden in " ".join(view.describe(kitchen.world))


def test_a_door_is_brown_when_closed_green_when_open_and_the_frame_is_red_where_the_agent_is(kitchen: TextGame):
    kitchen.command("go to fridge 1")
    made, closed = draw(kitchen)
    left, top, _, _ = made.plan.tiles["fridge 1"]
    bar = (slice(top + 4, top + 8), slice(left + 3, left + 6))
    assert (closed[bar] == view.CLOSED).all()
    assert (closed[top, left] == view.HERE).all()
    kitchen.command("open fridge 1")
    assert (made.draw(kitchen.world)[bar] == view.OPEN).all()
    kitchen.command("go to microwave 1")
    assert (made.draw(kitchen.world)[bar] == view.OPEN).all()
    assert (made.draw(kitchen.world)[top, left] == view.INK).all()
