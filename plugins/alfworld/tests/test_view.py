"""The picture: hidden things stay hidden, doors show."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from vlgym_alfworld import view
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import HEAT
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.rooms import load_floor

MOST_CROWDED = 9  # 47 receptacles, as many as scene 30


@pytest.fixture
def kitchen() -> Iterator[TextGame]:
    running = TextGame()
    running.open(draw_game(np.random.default_rng(3), HEAT, scene=MOST_CROWDED))
    yield running
    running.close()


def show(running: TextGame) -> view.RoomView:
    return view.RoomView(running.ids, running.world, load_floor(MOST_CROWDED), (448, 448))


def test_what_lies_in_a_closed_receptacle_does_not_show(kitchen: TextGame):
    made, world = show(kitchen), kitchen.world
    hidden = next(thing for thing, place in world.holder.items() if place in world.openable)
    others = {thing: place for thing, place in world.holder.items() if thing != hidden}
    before = made.draw(world)
    assert np.array_equal(made.draw(dataclasses.replace(world, holder=others)), before)
    for verb, seen in (("go to", False), ("open", True)):
        kitchen.command(f"{verb} {world.holder[hidden]}")
        assert (hidden in " ".join(view.describe(kitchen.world))) == seen


def test_doors_and_the_agents_place_have_colours(
    kitchen: TextGame,
):
    made = show(kitchen)
    left, top, _, _ = made.plan.tiles["fridge 1"]
    for command, door, frame in (
        ("go to fridge 1", view.CLOSED, view.HERE),
        ("open fridge 1", view.OPEN, view.HERE),
        ("go to microwave 1", view.OPEN, view.INK),
    ):
        kitchen.command(command)
        picture = made.draw(kitchen.world)
        assert (picture[top + 4 : top + 8, left + 3 : left + 6] == door).all()
        assert (picture[top, left] == frame).all()
