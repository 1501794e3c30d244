"""SokobanDrawn: the rooms of its levels, which are not Sokoban's shipped levels."""

import numpy as np
import pytest
from vlgym_sokoban.generator import split_of_level
from vlgym_sokoban.solver import solve

from vlgym.env.seeding import episode_seed
from vlgym.registry.making import make

ID = "vlgym/SokobanDrawn-v0"


@pytest.mark.parametrize("level", range(6))
def test_a_level_draws_rooms_of_its_size_boxes_and_solution_length_on_its_split(level: int) -> None:
    env = make(ID, level=level)
    room = env.level_arguments[level]["room"]
    split = ("train", "val", "test")[level % 3]
    _, info = env.reset(seed=episode_seed(ID, split, 0))
    drawn = env.board.level
    assert (drawn.rows, drawn.columns, info["boxes"]) == (room.rows, room.columns, room.boxes)
    assert room.min_solution <= len(solve(drawn).moves) <= room.max_solution
    assert split_of_level(drawn) == split
    assert 224 // drawn.rows >= 24, "a cell is smaller than the card says"


def test_without_a_level_it_is_sokoban_and_sokobans_own_levels_are_the_shipped_ones() -> None:
    drawn, plain = make(ID), make("vlgym/Sokoban-v0")
    drawn.reset(seed=1, options={"level": 1})
    a, b = drawn.reset(seed=3), plain.reset(seed=3)
    assert np.array_equal(a[0]["image"], b[0]["image"])
    assert (a[0]["text"], a[1]) == (b[0]["text"], b[1])
    assert plain.reset(seed=3, options={"level": 40})[1]["level"] == "small-v0/40"
    assert make("vlgym/Sokoban-v0", level=40).arguments["level"] == 40
