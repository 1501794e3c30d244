"""Rules and picture against gym-sokoban's engine, and the solver against brute force.

The engine's modules import the old `gym`, `pkg_resources` and `imageio`; stand-ins answer for those.
"""

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from PIL import Image
from vlgym_sokoban.generator import LevelGenerator, RoomSize
from vlgym_sokoban.level import DIRECTIONS, Board, Level
from vlgym_sokoban.package import draw_board, find_file
from vlgym_sokoban.solver import DEAD, SOLVED, UNKNOWN, Guide, Warehouse, replay, solve, to_mask

NAMES = list(DIRECTIONS)

CHANCES = [0.05, *[0.2] * 4, *[0.0375] * 4]  # of the package's nine actions: mostly pushes


def _module(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(attributes)
    return module


def _read_png(path: str) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


@pytest.fixture(scope="module", name="package_engine")
def load_engine() -> SimpleNamespace:
    """The package's `SokobanEnv` class and its `room_to_rgb` function."""
    folder = find_file("envs/room_utils.py").parent
    stand_ins = {
        "gym": _module("gym", Env=object),
        "gym.utils": _module("gym.utils", seeding=seeding),
        "gym.spaces": _module("gym.spaces", Box=gymnasium.spaces.Box),
        "gym.spaces.discrete": _module("gym.spaces.discrete", Discrete=gymnasium.spaces.Discrete),
        "pkg_resources": _module(
            "pkg_resources", resource_filename=lambda package, path: str(find_file(f"envs/{path}"))
        ),
        "imageio": _module("imageio", imread=_read_png),
        "gym_sokoban": _module("gym_sokoban", __path__=[str(folder.parent)]),
        "gym_sokoban.envs": _module("gym_sokoban.envs", __path__=[str(folder)]),
    }
    with patch.dict(sys.modules, stand_ins):
        engine = importlib.import_module("gym_sokoban.envs.sokoban_env")
        drawing = importlib.import_module("gym_sokoban.envs.render_utils")
    return SimpleNamespace(SokobanEnv=engine.SokobanEnv, room_to_rgb=drawing.room_to_rgb)


def load_into_package(engine: SimpleNamespace, level: Level, max_steps: int) -> object:
    """Return the package's environment with our level on its board, as its `reset` leaves it."""
    env = engine.SokobanEnv((level.rows, level.columns), max_steps=max_steps, num_boxes=len(level.boxes), reset=False)
    fixed = np.ones((level.rows, level.columns), int)
    fixed.ravel()[list(level.walls)] = 0
    fixed.ravel()[list(level.targets)] = 2
    state = fixed.copy()
    state.ravel()[list(level.boxes)] = 4
    state.ravel()[level.player] = 5
    env.room_fixed, env.room_state = fixed, state
    env.player_position = np.argwhere(state == 5)[0]
    env.num_env_steps = env.reward_last = env.boxes_on_target = 0
    return env


def codes(board: Board) -> np.ndarray:
    """Return our board as the package's `room_state`: it shows a player on a target as a player."""
    shape = board.level.rows, board.level.columns
    return np.array([min(board.code(cell), 5) for cell in range(shape[0] * shape[1])]).reshape(shape)


def test_random_play_is_the_packages(package_engine: SimpleNamespace) -> None:
    rng = np.random.default_rng(702)
    generator = LevelGenerator(RoomSize(7, 8, 2, 25))
    pushes = gained = lost = solved = 0
    for _ in range(20):
        level = generator.draw(rng, "train")
        board, limit = Board(level), 60
        theirs = load_into_package(package_engine, level, limit)
        solution = list(level.solution) if rng.random() < 0.3 else []
        for step in range(limit):
            action = 1 + "udlr".index(solution.pop(0).lower()) if solution else int(rng.choice(9, p=CHANCES))
            move = board.move(level.step_of(NAMES[(action - 1) % 4]) if action else 0, push=action < 5)
            _, their_reward, done, info = theirs.step(action, observation_mode="tiny_rgb_array")
            assert move.reward == pytest.approx(their_reward, abs=1e-12)
            assert (move.moved, move.pushed) == (info["action.moved_player"], info["action.moved_box"])
            assert np.array_equal(codes(board), theirs.room_state)
            assert done == (board.solved or step + 1 == limit)
            pushes += move.pushed
            gained += 0.5 < move.reward < 2
            lost += move.reward < -0.5
            solved += board.solved
            if done:
                break
    assert pushes > 60
    assert min(gained, lost, solved) > 0


def test_every_reward_of_the_sheet_on_a_hand_made_room() -> None:
    # Blocked by the wall; box 1 onto its target; off it again; blocked by two boxes in a row.
    board = Board(Level.from_rows(["########", "#@$. $.#", "########"]))
    assert [board.move(step).reward for step in (-1, 1, 1, 1)] == pytest.approx([-0.1, 0.9, -1.1, -0.1])
    board = Board(Level.from_rows(["#########", "#.$@ $. #", "#########"]))
    assert [board.move(step).reward for step in (-1, 1, 1, 1)] == pytest.approx([0.9, -0.1, -0.1, 10.9])


def test_the_picture_is_the_packages(package_engine: SimpleNamespace) -> None:
    rng = np.random.default_rng(5)
    generator = LevelGenerator(RoomSize(7, 7, 3, 23))
    shown: set[int] = set()
    while shown != set(range(7)):
        level = generator.draw(rng, "train")
        board = Board(level)
        fixed = np.array([{0: 0, 2: 2, 3: 2, 6: 2}.get(board.code(cell), 1) for cell in range(49)]).reshape(7, 7)
        for letter in level.solution:
            board.move(level.step_of(NAMES["udlr".index(letter.lower())]))
            shown |= {board.code(cell) for cell in range(49)}
            assert np.array_equal(draw_board(board, (112, 112)), package_engine.room_to_rgb(codes(board), fixed))


def test_a_room_stands_in_the_middle_and_doubled_sprites_repeat_pixels() -> None:
    board = Board(Level.from_rows(["#####", "#@$.#", "#####"]))
    once, twice = draw_board(board, (48, 80)), draw_board(board, (120, 160))
    assert np.array_equal(twice[12:-12], once.repeat(2, 0).repeat(2, 1))
    assert not twice[:12].any()


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


def test_where_no_shortest_solution_is_found_in_time_the_oracle_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlgym_sokoban.solver.SHORTEST_NODES", 1)
    level = Level.from_rows(["########", "#      #", "# $  . #", "# .  $ #", "#@     #", "########"])
    guide = Guide(level)
    guide.load(None, False)
    assert replay(level, guide.plan(Board(level))).solved
