"""Sokoban: steps per second with the picture drawn, beside gym-sokoban's own step, which draws its room too.

    python tests/benchmarks/sokoban_speed.py --rounds 7 --write

All play the same random moves in the same shipped 7 x 7 room, restarted every 50 steps, in interleaved rounds. Seconds
are processor seconds of this process. gym-sokoban is loaded as the plugin's tests load it, which read one sprite file a
call with Pillow; here its look-up of file names is kept in memory, so that only the package's own work is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from report import finish, parse_write, table
from vlgym_sokoban.board import Board
from vlgym_sokoban.groups import load_group
from vlgym_sokoban.painter import Painter

import vlgym

GROUP, LEVEL = "small-v0", 2
EPISODE = 50
TARGET = 3000
WORDS = ("up", "down", "left", "right")
"""In the order of the package's pushes 1 to 4."""

TESTS = Path(__file__).resolve().parents[2] / "plugins" / "sokoban" / "tests"


def load_module(path: Path) -> ModuleType:
    """Import a file that is no package."""
    spec = importlib.util.spec_from_file_location(f"vlgym_sokoban_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_package() -> Any:
    """Return gym-sokoban's `SokobanEnv` and `room_to_rgb`."""
    package = load_module(TESTS / "conftest.py").package_engine.__wrapped__()
    drawing = package.room_to_rgb.__globals__
    drawing["pkg_resources"] = SimpleNamespace(resource_filename=cache(drawing["pkg_resources"].resource_filename))
    return package


def time_episodes(begin: Callable[[], Callable[[int], object]], moves: list[int]) -> float:
    """Return steps per processor second; `begin` starts an episode, untimed, and returns its step function."""
    spent = 0.0
    for first in range(0, len(moves), EPISODE):
        step = begin()
        begun = time.process_time()
        for move in moves[first : first + EPISODE]:
            step(move)
        spent += time.process_time() - begun
    return len(moves) / spent


def begin_ours(env: Any) -> Callable[[], Callable[[int], object]]:
    """Return how an episode of the environment begins: reply read, rules, picture, text and info are timed."""
    replies = [env.parser.format([word]) for word in WORDS]

    def begin() -> Callable[[int], object]:
        env.reset(seed=0)
        return lambda move: env.step(replies[move])

    return begin


def begin_rules(pixels: int) -> Callable[[int], object]:
    """Begin an episode of our rules and picture alone, without reply, text, info and the proof of lost positions."""
    level = load_group(GROUP)[LEVEL]
    board, painter = Board(level), Painter((pixels * level.rows, pixels * level.columns))
    painter.draw(board)
    steps = [level.step_of(word) for word in WORDS]

    def step(move: int) -> object:
        painter.redraw(board, board.move(steps[move]).changed)
        return painter.picture()

    return step


def main() -> None:
    """Measure in interleaved rounds and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2000, help="steps of a round")
    chosen = parse_write(__doc__ or "", parser)
    moves = np.random.default_rng(0).integers(len(WORDS), size=chosen.steps).tolist()
    level = load_group(GROUP)[LEVEL]
    package, load_level = load_package(), load_module(TESTS / "test_rules.py").load_into_package
    decode = package.room_to_rgb.__globals__["imageio"]
    remembered = SimpleNamespace(imread=cache(decode.imread))
    ours = {
        size: vlgym.make("vlgym/Sokoban-v0", group=GROUP, level=LEVEL, image_size=(size, size)) for size in (224, 112)
    }

    def begin_theirs(reader: Any) -> Callable[[], Callable[[int], object]]:
        def begin() -> Callable[[int], object]:
            package.room_to_rgb.__globals__["imageio"] = reader
            env = load_level(package, level, 10 * EPISODE)
            return lambda move: env.step(move + 1, observation_mode="rgb_array")

        return begin

    contests = {
        "`vlgym/Sokoban-v0`, 224 x 224": begin_ours(ours[224]),
        "`vlgym/Sokoban-v0`, 112 x 112": begin_ours(ours[112]),
        "our rules and picture alone, 112 x 112": lambda: begin_rules(16),
        "gym-sokoban as it is, 112 x 112": begin_theirs(decode),
        "gym-sokoban, its sprites kept in memory": begin_theirs(remembered),
    }
    rates: dict[str, list[float]] = {name: [] for name in contests}
    for _ in range(chosen.rounds):
        for name, begin in contests.items():
            rates[name].append(time_episodes(begin, moves))
    for env in ours.values():
        env.close()
    *_, plain, kept = rates.values()

    def ratio(found: list[float], base: list[float]) -> str:
        return f"{statistics.median(a / b for a, b in zip(found, base, strict=True)):.2f}"

    rows = [
        [name, f"{statistics.median(found):,.0f}", ratio(found, plain), ratio(found, kept)]
        for name, found in rates.items()
    ]
    body = (
        f"One process, level {LEVEL} of {GROUP} (7 x 7 cells), random moves, {chosen.rounds} interleaved rounds of "
        f"{chosen.steps} steps; median rates in steps per processor second, and medians of the rounds' ratios. Target: "
        f"{TARGET:,} steps/s of the environment with its picture. gym-sokoban reads its seven sprite files again for "
        "every picture; the last row spares it that.\n\n"
    )
    header = ["what", "steps/s", "ratio to gym-sokoban as it is", "ratio to gym-sokoban, sprites in memory"]
    packages = ["vlgym", "vlgym-sokoban", "gym-sokoban", "numpy", "pillow"]
    finish("sokoban_speed", "Sokoban: speed", body + table(header, rows), packages, chosen.write)


if __name__ == "__main__":
    main()
