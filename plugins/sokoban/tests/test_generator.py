"""Drawn levels: the package's rooms, private random numbers, solvable, and split by room."""

from __future__ import annotations

import random
from importlib.metadata import PackageNotFoundError
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
from vlgym_sokoban import package
from vlgym_sokoban.generator import LevelGenerator, RoomSize, reverse_play, split_of_room
from vlgym_sokoban.groups import GROUPS, load_group
from vlgym_sokoban.level import Level
from vlgym_sokoban.package import find_file, load_generator, seed_generator

from vlgym.errors import UserError


def draw_room(seed: int, dim: tuple[int, int], boxes: int, **changes: Any) -> Any:
    """Return room and state of the package with some functions replaced, or its refusal."""
    module = load_generator()
    seed_generator(module, seed)
    vars(module).update(changes)
    try:
        return np.stack(module.generate_room(dim=dim, num_steps=int(1.7 * sum(dim)), num_boxes=boxes)[:2])
    except (RuntimeError, RuntimeWarning) as refusal:
        return type(refusal)


@pytest.mark.parametrize(
    ("dim", "boxes", "seeds"), [((7, 7), 2, 8), pytest.param((7, 9), 3, 3, marks=pytest.mark.exhaustive)]
)
def test_the_fast_play_finds_the_packages_room(dim: tuple[int, int], boxes: int, seeds: int) -> None:
    pairs = [
        (draw_room(seed, dim, boxes), draw_room(seed, dim, boxes, reverse_playing=reverse_play))
        for seed in range(seeds)
    ]
    assert all(np.array_equal(theirs, ours) for theirs, ours in pairs)
    assert sum(isinstance(theirs, np.ndarray) for theirs, _ in pairs) > seeds // 2


def test_private_seeding_gives_the_room_of_the_global_generators_and_leaves_them_alone() -> None:
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        theirs = load_generator()
        random.seed(11)
        np.random.seed(11)  # noqa: NPY002
        wanted = theirs.generate_room(dim=(7, 7), num_steps=23, num_boxes=2)[1]
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
    assert np.array_equal(draw_room(11, (7, 7), 2)[1], wanted)
    assert random.getstate() == python_state
    assert np.array_equal(np.random.get_state()[1], numpy_state[1])  # noqa: NPY002


def find_walls(level: Level) -> np.ndarray:
    return np.array([[symbol == "#" for symbol in row] for row in level.to_rows()])


def test_splits_share_no_room_and_none_of_the_shipped_levels() -> None:
    generator = LevelGenerator(RoomSize(7, 7, 2, 23))
    rooms: list[frozenset[int]] = []
    for split in ("train", "val", "test"):
        levels = [generator.draw(np.random.default_rng(seed), split) for seed in range(10)]
        assert {split_of_room(find_walls(level)) for level in levels} == {split}
        rooms += {level.walls for level in levels}
    assert len(rooms) == len(set(rooms))
    shipped = [level for name in GROUPS for level in load_group(name)]
    assert {split_of_room(find_walls(level)) for level in shipped} == {"benchmark"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"return_value": Mock(version="0.0.5")}, r'found 0\.0\.5.*pip install --no-deps "gym-sokoban==0\.0\.6"'),
        ({"side_effect": PackageNotFoundError}, "not installed"),
    ],
)
def test_another_version_or_none_is_explained(answer: dict[str, Any], words: str) -> None:
    with patch.object(package.importlib.metadata, "distribution", **answer), pytest.raises(UserError, match=words):
        find_file("envs/room_utils.py")
