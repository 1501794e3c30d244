"""ALFWorld: milliseconds of a new game, of a step and of a picture, beside the same games on the untouched engine.

    python tests/benchmarks/alfworld_speed.py --games 60 --write

Both play the same generated games and the same random commands, a game of one after the same game of the other. The
environment's times hold everything: drawing the game, engine, picture, text. The engine's are those of opening a game
and of a command, without a picture. Milliseconds are the process's own processor time. The first game is not timed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from report import finish, parse_write, table
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.rooms import load_floor
from vlgym_alfworld.tasks import TASKS
from vlgym_alfworld.textgame import TextGame
from vlgym_alfworld.view import RoomView

import vlgym

ID = "vlgym/ALFWorld-v0"
COMMANDS = 3
MOST_CROWDED = 9
"""The kitchen with the most receptacles, 47."""

TARGETS = {"reset": 100.0, "step": 40.0, "picture": 10.0}
Times = dict[str, list[float]]


def timed(kind: str, times: Times, action: Callable[[], object]) -> None:
    """Run an action and note its milliseconds of processor time."""
    begun = time.process_time()
    action()
    times.setdefault(kind, []).append(1000 * (time.process_time() - begun))


def play_engine(running: TextGame, seed: int, times: Times) -> None:
    """Open a game and give it random commands."""
    rng = np.random.default_rng(seed)
    game = draw_game(rng, TASKS[seed % len(TASKS)])
    timed("reset", times, lambda: running.open(game))
    for _ in range(COMMANDS):
        command = running.commands[int(rng.integers(len(running.commands)))]
        timed("step", times, lambda command=command: running.command(command))  # type: ignore[misc]


def main() -> None:
    """Measure alternately and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=60)
    chosen = parse_write(__doc__ or "", parser)
    whole: Times = {}
    engines: dict[bool, Times] = {True: {}, False: {}}
    env = vlgym.make(ID)
    running = {fast: TextGame(fast=fast) for fast in engines}
    crowded = TextGame()
    crowded.open(draw_game(np.random.default_rng(3), TASKS[0], scene=MOST_CROWDED))
    floor = load_floor(MOST_CROWDED)
    view = RoomView(crowded.ids(), crowded.world(), floor, (448, 448))
    for seed in range(chosen.games + 1):
        times = {True: {}, False: {}} if seed == 0 else engines
        here: Times = {} if seed == 0 else whole
        timed("reset", here, lambda seed=seed: env.reset(seed=seed))  # type: ignore[misc]
        for _ in range(COMMANDS):
            reply = env.action_space.sample()
            timed("step", here, lambda reply=reply: env.step(reply))  # type: ignore[misc]
        timed("picture", here, lambda: view.draw(crowded.world()))
        for fast, game in running.items():
            play_engine(game, seed, times[fast])
    env.close()
    for game in (*running.values(), crowded):
        game.close()

    def row(what: str, found: Times, kind: str) -> list[str]:
        middle = statistics.median(found[kind])
        plain = engines[False].get(kind)
        share = f"{statistics.median(plain) / middle:.1f} times as fast" if plain else ""
        return [what, f"{middle:.1f}", f"{sorted(found[kind])[int(0.95 * len(found[kind]))]:.1f}", share]

    rows = [
        row(f"`{ID}`, `reset` (target {TARGETS['reset']:g})", whole, "reset"),
        row(f"`{ID}`, `step` (target {TARGETS['step']:g})", whole, "step"),
        row(f"picture of the most crowded kitchen, 448 x 448 (target {TARGETS['picture']:g})", whole, "picture"),
        row("engine alone, opening a game", engines[True], "reset"),
        row("engine alone, a command", engines[True], "step"),
        row("untouched engine, opening a game", engines[False], "reset"),
        row("untouched engine, a command", engines[False], "step"),
    ]
    body = (
        f"One process, {chosen.games} generated games with {COMMANDS} random commands each, of all six types, on each "
        "side alternately; milliseconds of processor time.\n\n"
    )
    header = ["what", "median ms", "95 % ms", "against the untouched engine"]
    packages = ["vlgym", "vlgym-alfworld", "alfworld", "textworld", "pillow"]
    finish("alfworld_speed", "ALFWorld: speed", body + table(header, rows), packages, chosen.write)


if __name__ == "__main__":
    main()
