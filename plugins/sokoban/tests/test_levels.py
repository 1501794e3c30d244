"""The shipped levels, level files, and the published numbers."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from vlgym_sokoban.__main__ import main
from vlgym_sokoban.groups import GROUPS, load_group, read_levels, write_levels
from vlgym_sokoban.level import LONGEST_SOLUTION, Level, score_of, upper_tenths
from vlgym_sokoban.plugin import LEVELS, MINI
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
        assert replace(pool.board.level, title=drawn.board.level.title) == drawn.board.level
