"""Drawn levels: the package's rooms, private random numbers, solvable, and split by room."""

from __future__ import annotations

import random

import numpy as np
import pytest
from vlgym_sokoban import package
from vlgym_sokoban.generator import LevelGenerator, RoomSize, reverse_play, split_of_level
from vlgym_sokoban.groups import GROUPS, load_group
from vlgym_sokoban.package import find_file, load_generator, seed_generator
from vlgym_sokoban.solver import replay

from vlgym.errors import UserError

SMALL = RoomSize(7, 7, 2, 23)


@pytest.mark.parametrize(("dim", "boxes", "seeds"), [((7, 7), 2, 10), ((7, 9), 3, 3)])
def test_the_fast_reverse_play_finds_the_packages_room(dim: tuple[int, int], boxes: int, seeds: int) -> None:
    compared = 0
    for seed in range(seeds):
        rooms = []
        for fast in (False, True):
            module = load_generator()
            seed_generator(module, seed)
            if fast:
                module.reverse_playing = reverse_play
            try:
                rooms.append(module.generate_room(dim=dim, num_steps=int(1.7 * sum(dim)), num_boxes=boxes)[:2])
            except (RuntimeError, RuntimeWarning) as refusal:
                rooms.append(type(refusal))
        theirs, ours = rooms
        if isinstance(theirs, type):
            assert ours is theirs
            continue
        compared += 1
        assert np.array_equal(theirs[0], ours[0])
        assert np.array_equal(theirs[1], ours[1])
    assert compared > seeds // 2


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
    ours = load_generator()
    seed_generator(ours, 11)
    assert np.array_equal(ours.generate_room(dim=(7, 7), num_steps=23, num_boxes=2)[1], wanted)
    assert random.getstate() == python_state
    assert np.array_equal(np.random.get_state()[1], numpy_state[1])  # noqa: NPY002


def test_drawn_levels_are_solvable_in_the_asked_number_of_steps() -> None:
    generator = LevelGenerator(RoomSize(7, 7, 2, 23, min_solution=8, max_solution=12))
    for seed in range(8):
        level = generator.draw(np.random.default_rng(seed), "train")
        assert 8 <= len(level.solution) <= 12
        assert replay(level, level.solution).solved
        assert len(level.boxes) == 2
        assert not set(level.boxes) & set(level.targets)


def test_splits_share_no_room_and_none_of_the_shipped_levels() -> None:
    generator = LevelGenerator(SMALL)
    rooms = {}
    for split in ("train", "val", "test"):
        levels = [generator.draw(np.random.default_rng(seed), split) for seed in range(20)]
        assert {split_of_level(level) for level in levels} == {split}
        rooms[split] = {level.walls for level in levels}
    assert not rooms["train"] & rooms["val"]
    assert not rooms["train"] & rooms["test"]
    assert not rooms["val"] & rooms["test"]
    shipped = {split_of_level(level) for name in GROUPS for level in load_group(name)}
    assert shipped == {"benchmark"}


def test_a_missing_or_other_version_of_the_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        version = "0.0.5"

    monkeypatch.setattr(package.importlib.metadata, "distribution", lambda name: Other())
    with pytest.raises(UserError, match=r'found 0\.0\.5.*pip install --no-deps "gym-sokoban==0\.0\.6"'):
        find_file("envs/room_utils.py")

    def missing(name: str) -> None:
        raise package.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(package.importlib.metadata, "distribution", missing)
    with pytest.raises(UserError, match="not installed"):
        find_file("envs/room_utils.py")
