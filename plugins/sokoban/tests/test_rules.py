"""Our rules, rewards and picture against the engine of the installed gym-sokoban in random play.

Its modules import the old `gym`, `pkg_resources` and `imageio`; stand-ins answer for those.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from PIL import Image
from vlgym_sokoban.generator import LevelGenerator, RoomSize
from vlgym_sokoban.level import DIRECTIONS, Board, Level
from vlgym_sokoban.package import draw_board, find_file

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
    replaced = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        engine = importlib.import_module("gym_sokoban.envs.sokoban_env")
        drawing = importlib.import_module("gym_sokoban.envs.render_utils")
    finally:
        for name in [name for name in sys.modules if name.startswith("gym_sokoban")]:
            del sys.modules[name]
        for name, module in replaced.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
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
