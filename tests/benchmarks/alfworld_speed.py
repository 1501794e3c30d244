"""ALFWorld: milliseconds of a new game, of a step and of a picture, beside the same games with the engine's parts.

    python tests/benchmarks/alfworld_speed.py --games 60 --write

All play the same generated games and the same random commands, a game of one after the same game of the next. The
environment's times hold everything: drawing the game, engine, picture, text. The engine's are those of opening a game
and of a command, without a picture. "The package's translation" is our fast engine with all but `grounding.py` and
`joins.py`: what these two modules are worth at a reset. Milliseconds are the process's own processor time. The first
game is not timed.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from report import finish, parse_write, table
from vlgym_alfworld import engine, household
from vlgym_alfworld.game import Game
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.joins import Unsupported
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
SIDES = ("ours", "package", "untouched")
Times = dict[str, list[float]]


def timed(kind: str, times: Times, action: Callable[[], object]) -> None:
    """Run an action and note its milliseconds of processor time."""
    begun = time.process_time()
    action()
    times.setdefault(kind, []).append(1000 * (time.process_time() - begun))


@contextlib.contextmanager
def package_translates() -> Iterator[None]:
    """Leave the translation of games to the `fast_downward` package, once a game."""

    def refuse(*_: Any) -> tuple[Any, str]:
        raise Unsupported("for the comparison")

    def draw(*args: Any, **options: Any) -> Game:
        game = draw_game(*args, **options)
        return replace(game, problem=f"{game.problem}\n")  # another text: the remembered translation does not serve

    with patch.object(engine, "translate_directly", refuse), patch.object(household, "draw_game", draw):
        yield


def play_engine(running: TextGame, seed: int, times: Times) -> None:
    """Open a game and give it random commands."""
    rng = np.random.default_rng(seed)
    game = household.draw_game(rng, TASKS[seed % len(TASKS)])
    timed("reset", times, lambda: running.open(game))
    for _ in range(COMMANDS):
        command = running.commands[int(rng.integers(len(running.commands)))]
        timed("step", times, lambda command=command: running.command(command))  # type: ignore[misc]


def main() -> None:
    """Measure alternately and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=60)
    chosen = parse_write(__doc__ or "", parser)
    env, running, untouched, crowded = vlgym.make(ID), TextGame(), TextGame(fast=False), TextGame()
    crowded.open(draw_game(np.random.default_rng(3), TASKS[0], scene=MOST_CROWDED))
    view = RoomView(crowded.ids(), crowded.world(), load_floor(MOST_CROWDED), (448, 448))
    found: dict[str, Times] = {}

    def play(side: str, seed: int) -> None:
        """Play the game of a seed on one side; the first is not timed."""
        times = {} if seed == 0 else found.setdefault(side, {})
        with package_translates() if side == "package" else contextlib.nullcontext():
            if side != "untouched":
                timed("env reset", times, lambda: env.reset(seed=seed))
                for _ in range(COMMANDS):
                    reply = env.action_space.sample()
                    timed("env step", times, lambda reply=reply: env.step(reply))  # type: ignore[misc]
                timed("picture", times, lambda: view.draw(crowded.world()))
            play_engine(untouched if side == "untouched" else running, seed, times)

    for seed in range(chosen.games + 1):
        for side in SIDES if seed % 2 else reversed(SIDES):  # who comes first parses texts that the next one remembers
            play(side, seed)
    env.close()
    for game in (running, untouched, crowded):
        game.close()

    def row(what: str, side: str, kind: str) -> list[str]:
        times = found[side][kind]
        middle = statistics.median(times)
        plain = found["untouched"].get(kind.removeprefix("env "))
        share = f"{statistics.median(plain) / middle:.1f} times as fast" if plain else ""
        return [what, f"{middle:.1f}", f"{sorted(times)[int(0.95 * len(times))]:.1f}", share]

    rows = [
        row(f"`{ID}`, `reset` (target {TARGETS['reset']:g})", "ours", "env reset"),
        row(f"`{ID}`, `step` (target {TARGETS['step']:g})", "ours", "env step"),
        row(f"picture of the most crowded kitchen, 448 x 448 (target {TARGETS['picture']:g})", "ours", "picture"),
        row("engine alone, opening a game", "ours", "reset"),
        row("engine alone, a command", "ours", "step"),
        row(f"`{ID}`, `reset`, the package's translation", "package", "env reset"),
        row("engine alone, opening a game, the package's translation", "package", "reset"),
        row("untouched engine, opening a game", "untouched", "reset"),
        row("untouched engine, a command", "untouched", "step"),
    ]
    gain = statistics.median(found["package"]["env reset"]) / statistics.median(found["ours"]["env reset"])
    body = (
        f"One process, {chosen.games} generated games with {COMMANDS} random commands each, of all six types, on each "
        "side alternately; milliseconds of processor time. Our translation makes `reset` "
        f"{gain:.1f} times as fast as the package's.\n\n"
    )
    header = ["what", "median ms", "95 % ms", "against the untouched engine"]
    packages = ["vlgym", "vlgym-alfworld", "alfworld", "textworld", "pillow"]
    finish("alfworld_speed", "ALFWorld: speed", body + table(header, rows), packages, chosen.write)


if __name__ == "__main__":
    main()
