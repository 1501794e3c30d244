"""Levels, shipped, in files and drawn, and the published numbers."""

import hashlib
import random
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
from vlgym_sokoban import package
from vlgym_sokoban.__main__ import main
from vlgym_sokoban.generator import LevelGenerator, RoomSize, reverse_play, split_of_room
from vlgym_sokoban.groups import GROUPS, load_group, read_levels, write_levels
from vlgym_sokoban.level import LONGEST_SOLUTION, Level, score_of, upper_tenths
from vlgym_sokoban.package import find_file, load_generator, seed_generator
from vlgym_sokoban.plugin import LEVELS, MINI, vlgym_suites
from vlgym_sokoban.solver import SOLVED, replay, solve

import vlgym
from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError

SWEPT = pytest.mark.exhaustive

# Digest of the steps of MageBench's stored solutions, by group (from its `upper_bound.json`).
SOLUTION_STEPS = "74a0ed1b7fbb6cdc"


def idle_score(levels: list[Level]) -> float:
    return sum(score_of(0, upper_tenths(level)) for level in levels) / len(levels)


def test_there_are_182_different_levels_with_the_published_steps() -> None:
    levels = {name: load_group(name) for name in GROUPS}
    steps = {name: tuple(len(level.solution) for level in group) for name, group in levels.items()}
    assert hashlib.sha256(repr(steps).encode()).hexdigest()[:16] == SOLUTION_STEPS
    assert {name: len(group) for name, group in steps.items()} == LEVELS
    assert len({level.checksum() for group in levels.values() for level in group}) == 182
    for name, group in GROUPS.items():
        for index, level in enumerate(levels[name]):
            shape = (level.rows, level.columns, len(level.boxes), level.title)
            assert shape == (group.rows, group.columns, group.boxes, f"{name}/{index}")


@SWEPT
@pytest.mark.parametrize("name", GROUPS)
def test_the_solver_solves_every_level_and_the_stored_solutions_solve_it_too(name: str) -> None:
    for level in load_group(name):
        solution = solve(replace(level, solution=""), greed=3)
        assert solution.status == SOLVED, level.title
        assert replay(level, solution.moves).solved, level.title
        assert replay(level, level.solution).solved, level.title
        assert len(level.solution) <= min(len(solution.moves), LONGEST_SOLUTION), level.title


@pytest.mark.parametrize(
    ("name", "every"),
    [("small-v0", 5), *(pytest.param(*case, marks=SWEPT) for case in (("small-v1", 5), ("v0", 5)))],
)
def test_the_solver_proves_stored_solutions_shortest(name: str, every: int) -> None:
    for level in load_group(name)[::every]:
        solution = solve(replace(level, solution=""))
        assert (solution.status, len(solution.moves)) == (SOLVED, len(level.solution)), level.title


def test_the_idle_player_scores_41_175_on_mini_and_45_60_on_all() -> None:
    mini = [load_group(name)[index] for name, index in MINI]
    assert len(mini) == len(set(MINI)) == 20
    assert [(len(part.items), part.repeats) for part in vlgym_suites()] == [(182, 3), (20, 3)]
    assert idle_score(mini) == pytest.approx(41.175, abs=1e-9)
    assert idle_score([level for name in GROUPS for level in load_group(name)]) == pytest.approx(45.6016, abs=1e-4)


def test_writing_and_reading_a_file_gives_the_same_levels() -> None:
    levels = [
        Level.from_rows(["#######", "#@ $ .#", "#######"], "mine/0", "rRR"),
        Level.from_rows(["#####", "#+$ #", "# *.#", "# $ #", "#####"], "mine/1"),
    ]
    text = write_levels(levels, "two levels\nfor a test")
    assert text.startswith("; two levels\n; for a test\n")
    assert read_levels(text) == levels


def test_a_board_alone_is_a_level_and_what_lies_outside_becomes_wall() -> None:
    (level,) = read_levels("  ####\n###  #\n#@ $.###\n######\n")
    assert level.to_rows() == ["########", "###  ###", "#@ $.###", "########"]
    assert level.solution == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#####\n#@$.#\n#####\nChecksum: 0123\n", r"mine\.xsb, board at line 1: the checksum is 0123"),
        *(
            (f"; c\n\n#####\n#@$.#\n#####\nSolution: {moves}\n", r"mine\.xsb, board at line 3: letter 1 .*Fix or rem")
            for moves in "Lrux"
        ),
        ("######\n#@ $.#\n######\nSolution: r\n", r"board at line 1: the solution leaves a box off target"),
        ("#####\n#@$.#\n#####\nAuthor: me\n", r"mine\.xsb, line 4: 'Author: me' is neither"),
        ("#####\n#@$?#\n#####\n", r"mine\.xsb, board at line 1: row 2 .* has '\?'"),
        ("#####\n#@$. \n#####\n#####\n", r"board at line 1: the room is open: '\.' in row 2, column 4"),
        ("#####\n#@* #\n#####\n", r"every box stands on a target"),
        ("; nothing\n", r"mine\.xsb holds no level"),
        ("Title: me\n", r"board at line 1: Title stands without a board"),
    ],
)
def test_bad_files_are_refused_with_file_line_and_fix(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_levels(text, "mine.xsb")


def test_the_command_writes_the_levels_that_the_episodes_of_the_split_draw(tmp_path: Path) -> None:
    path = tmp_path / "pool.xsb"
    assert main([str(path), "--group", "small-v1", "--split", "val", "--count", "3"]) == 0
    pool = vlgym.make("vlgym/Sokoban-v0", level_file=str(path))
    drawn = vlgym.make("vlgym/Sokoban-v0", group="small-v1")
    for index in range(3):
        drawn.reset(seed=episode_seed("vlgym/Sokoban-v0", "val", index))
        pool.reset(seed=0, options={"level": index})
        assert replace(drawn.board.level, title=f"small-v1/val/{index}") == pool.board.level
    assert main([str(tmp_path / "nowhere" / "pool.xsb"), "--count", "1"]) == 1


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
        ({"return_value": Mock(version="0.0.6", locate_file=Path("/no").joinpath)}, "without envs/room_utils.py"),
    ],
)
def test_another_version_or_none_is_explained(answer: dict[str, Any], words: str) -> None:
    with patch.object(package.importlib.metadata, "distribution", **answer), pytest.raises(UserError, match=words):
        find_file("envs/room_utils.py")
