"""The picture: no two labels overlap in any room, hidden things stay hidden, doors show."""

import numpy as np
import pytest
from vlgym_alfworld import view
from vlgym_alfworld.floorplan import make_plan
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.package import constants
from vlgym_alfworld.rooms import load_floor, load_room
from vlgym_alfworld.tasks import COOL, HEAT
from vlgym_alfworld.textgame import TextGame
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
    made = RoomView(running.ids(), running.world(), load_floor(scene), size)
    return made, made.draw(running.world())


def test_no_two_labels_overlap_and_all_lie_in_the_picture_in_all_120_rooms():
    for scene in sorted(constants().SCENE_NUMBERS):
        room = load_room(scene)
        labels = []
        for number, place in enumerate(room.places):
            x, height, z = (float(part) for part in place.id.split("|")[1:4])
            labels.append((f"{place.kind} {number}", x, height, z, 80, 15))  # as wide as the longest name
        area = (4, 4, 444, 348)
        tiles = list(make_plan(tuple(labels), tuple(map(tuple, load_floor(scene).tolist())), area).tiles.values())
        assert len(tiles) == len(room.places)
        for index, (left, top, right, bottom) in enumerate(tiles):
            assert area[0] <= left < right <= area[2], scene
            assert area[1] <= top < bottom <= area[3], scene
            for a, b, c, d in tiles[:index]:
                assert right <= a or c <= left or bottom <= b or d <= top, f"labels overlap in scene {scene}"


def test_every_label_of_the_most_crowded_kitchen_fits_its_tile_at_11_pixels_or_more(kitchen: TextGame):
    made, picture = draw(kitchen)
    assert len(made.plan.tiles) == 47
    assert made._label >= 11
    for name, (left, top, right, bottom) in made.plan.tiles.items():
        assert view._font(made._label).getlength(name) <= right - left - view.BAR
        tile = picture[top + 2 : bottom - 2, left + 2 + view.BAR : right - 2].astype(int)
        assert (tile.sum(axis=2) < 250).sum() > 10, f"no ink in the tile of {name}"


def test_labels_stand_near_the_true_places(kitchen: TextGame):
    made, _ = draw(kitchen)
    ids = kitchen.ids()
    shifts = []
    for name, (left, top, right, bottom) in made.plan.tiles.items():
        x, _, z = view.position_of(ids[name])
        across, down = made.plan.pixel(x, z)
        shifts.append(np.hypot((left + right) / 2 - across, (top + bottom) / 2 - down))
    assert np.median(shifts) < 45
    assert max(shifts) < 130


def test_what_lies_in_a_closed_receptacle_does_not_show(kitchen: TextGame):
    made, before = draw(kitchen)
    world = kitchen.world()
    hidden = next(thing for thing, place in world.holder.items() if place in world.openable)
    moved = dict(world.holder)
    del moved[hidden]
    import dataclasses

    assert np.array_equal(made.draw(dataclasses.replace(world, holder=moved)), before)
    kitchen.command(f"go to {world.holder[hidden]}")
    assert hidden not in " ".join(view.describe(kitchen.world()))
    kitchen.command(f"open {world.holder[hidden]}")
    assert hidden in " ".join(view.describe(kitchen.world()))


def test_a_door_is_brown_when_closed_green_when_open_and_the_frame_is_red_where_the_agent_is(kitchen: TextGame):
    kitchen.command("go to fridge 1")
    made, closed = draw(kitchen)
    left, top, _, _ = made.plan.tiles["fridge 1"]
    bar = (slice(top + 4, top + 8), slice(left + 3, left + 6))
    assert (closed[bar] == view.CLOSED).all()
    assert (closed[top, left] == view.HERE).all()
    kitchen.command("open fridge 1")
    assert (made.draw(kitchen.world())[bar] == view.OPEN).all()
    kitchen.command("go to microwave 1")
    assert (made.draw(kitchen.world())[bar] == view.OPEN).all()
    assert (made.draw(kitchen.world())[top, left] == view.INK).all()


def test_the_band_names_what_is_held_with_its_state():
    running = TextGame()
    game = draw_game(np.random.default_rng(3), COOL, scene=30)
    running.open(game)
    thing = next(thing for thing, kind in running.world().object_kinds.items() if kind == game.goal.thing.lower())
    place = running.world().holder[thing]
    for command in (
        f"go to {place}",
        f"open {place}",
        f"take {thing} from {place}",
        "go to fridge 1",
        f"cool {thing} with fridge 1",
    ):
        running.command(command)
    assert view.describe(running.world())[0] == f"Holding: {thing} (cool)"
    running.close()


def test_a_long_list_of_contents_fits_the_band_at_9_pixels_or_more(kitchen: TextGame):
    import dataclasses

    world = kitchen.world()
    many = {f"peppershaker {number}": "countertop 1" for number in range(1, 31)}
    full = dataclasses.replace(world, holder=many, agent_at=world.receptacle_at["countertop 1"])
    made, _ = draw(kitchen)
    lines, size = made._fit(view.describe(full), 448 - 12, view.BAND - 6)
    assert size >= view.SMALLEST_TEXT
    assert len(lines) * round(size * 1.18) <= view.BAND - 6
    assert all(view._font(size).getlength(line) <= 448 - 12 for line in lines)


@pytest.mark.parametrize("size", [(448, 448), (896, 896), (224, 224), (300, 400), (56, 112)])
def test_pictures_have_the_size_asked_for_and_are_fresh(kitchen: TextGame, size: tuple[int, int]):
    made, picture = draw(kitchen, size)
    assert picture.shape == (*size, 3)
    assert picture.dtype == np.uint8
    assert not np.shares_memory(picture, made.draw(kitchen.world()))
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 8
