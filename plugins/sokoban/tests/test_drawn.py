"""SokobanDrawn: the rooms of its levels, and its level next to Sokoban's number of a shipped level."""

import numpy as np
import pytest
from vlgym_sokoban.generator import split_of_level
from vlgym_sokoban.solver import solve

from vlgym.env.seeding import episode_seed
from vlgym.registry.making import make

ID = "vlgym/SokobanDrawn-v0"
SMALLEST_CELL = 24
"""Side of a cell in pixels on the last level, at 224 x 224."""


@pytest.mark.parametrize("level", range(6))
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_level_draws_rooms_of_its_size_boxes_and_solution_length_on_its_split(level: int, split: str) -> None:
    env = make(ID, level=level)
    room = env.level_arguments[level]["room"]
    for index in range(2):
        _, info = env.reset(seed=episode_seed(ID, split, index))
        drawn = env.board.level
        assert (drawn.rows, drawn.columns, info["boxes"]) == (room.rows, room.columns, room.boxes)
        assert room.min_solution <= len(solve(drawn).moves) <= room.max_solution
        assert split_of_level(drawn) == split
        assert 224 // drawn.rows >= SMALLEST_CELL


def test_without_a_level_it_is_sokoban_and_sokobans_own_levels_are_the_shipped_ones() -> None:
    drawn, plain = make(ID), make("vlgym/Sokoban-v0")
    drawn.reset(seed=1, options={"level": 5})
    a, b = drawn.reset(seed=3), plain.reset(seed=3)
    assert np.array_equal(a[0]["image"], b[0]["image"])
    assert (a[0]["text"], a[1]) == (b[0]["text"], b[1])
    assert plain.reset(seed=3, options={"level": 40})[1]["level"] == "small-v0/40"
    assert make("vlgym/Sokoban-v0", level=40).arguments["level"] == 40
