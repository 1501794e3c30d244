"""The solver against brute force, and hand-made positions."""

from __future__ import annotations

import numpy as np
import pytest
from vlgym_sokoban.generator import LevelGenerator, RoomSize
from vlgym_sokoban.level import DIRECTIONS, Board, Level
from vlgym_sokoban.solver import DEAD, SOLVED, UNKNOWN, Guide, Warehouse, replay, solve, to_mask

Position = tuple[int, frozenset[int]]


def successors(level: Level, position: Position) -> list[Position]:
    """All positions one step away, by the rules alone."""
    board, positions = Board(level), []
    for name in DIRECTIONS:
        board.place(position[0], tuple(position[1]))
        if board.move(level.step_of(name)).moved:
            positions.append((board.player, frozenset(board.boxes)))
    return positions


def brute_force(level: Level) -> tuple[int | None, dict[Position, bool]]:
    """Return the length of a shortest solution, and each position's solvability."""
    start = (level.player, frozenset(level.boxes))
    distance, before = {start: 0}, {start: []}
    queue = [start]
    for position in queue:
        for child in successors(level, position):
            if child not in distance:
                distance[child] = distance[position] + 1
                before[child] = []
                queue.append(child)
            before[child].append(position)
    goals = [position for position in queue if position[1] == frozenset(level.targets)]
    solvable = set(goals)
    stack = list(goals)
    while stack:
        for parent in before[stack.pop()]:
            if parent not in solvable:
                solvable.add(parent)
                stack.append(parent)
    shortest = min((distance[goal] for goal in goals), default=None)
    return shortest, {position: position in solvable for position in queue}


@pytest.fixture(scope="module")
def rooms() -> list[tuple[Level, int | None, dict[Position, bool]]]:
    levels = []
    for boxes, count in ((1, 2), (2, 8), (3, 1)):
        generator = LevelGenerator(RoomSize(7, 7, boxes, 23))
        levels += [generator.draw(np.random.default_rng(seed), "train") for seed in range(count)]
    return [(level, *brute_force(level)) for level in levels]


def test_solutions_are_as_short_as_brute_force(rooms: list) -> None:
    for level, shortest, _ in rooms:
        solution = solve(level)
        assert solution.status == SOLVED
        assert len(solution.moves) == shortest
        assert replay(level, solution.moves).solved


def test_solvability_is_exact_in_small_rooms_and_deadlocks_are_never_wrong(rooms: list) -> None:
    lost = caught = 0
    for level, _, verdicts in rooms:
        house = Warehouse(level)
        guide, board = Guide(level), Board(level)
        rng = np.random.default_rng(1)
        positions = list(verdicts)
        for index in rng.permutation(len(positions))[:200]:
            player, boxes = positions[index]
            solvable = verdicts[positions[index]]
            board.place(player, tuple(boxes))
            assert guide.is_lost(board) is not solvable
            if house.bound(to_mask(boxes)) >= DEAD:
                assert not solvable
                caught += 1
            lost += not solvable
    assert lost > 100
    assert caught > 0.6 * lost


def test_a_block_of_four_on_targets_is_no_dead_lock() -> None:
    level = Level.from_rows(["########", "#      #", "# **   #", "# **   #", "#   $ .#", "# @    #", "########"])
    assert not Warehouse(level).has_frozen(to_mask(level.boxes))
    assert solve(level).status == SOLVED


def test_limits_leave_the_answer_open() -> None:
    level = Level.from_rows(["########", "#      #", "# $  . #", "# .  $ #", "#@     #", "########"])
    length = len(solve(level).moves)
    assert solve(level, max_steps=length).status == SOLVED
    assert solve(level, max_steps=length - 1).status == UNKNOWN
    assert solve(level, max_nodes=1).status == UNKNOWN
