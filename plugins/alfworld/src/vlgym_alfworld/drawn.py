"""A game in TextWorld's engine with a drawn plan of its room, and with both oracles."""

import contextlib
import importlib
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import UserError

from .game import Game, World, met_conditions, read_world
from .oracle import Advice, Memory, advise, seek
from .package import DOWNLOAD_AGAIN, fast_engine, forget_facts, import_quietly
from .rooms import load_floor
from .view import RoomView

TAGS = range(10, 100)  # drawn numbers of objects, where the picture alone shall tell their names

_IDLE: list[Any] = []  # never unloaded: each has a copy of a C++ library, which can crash others


class TextGame:
    """A running game and its picture, of `size` (height and width in pixels).

    `fast=False` plays with the untouched engine, for comparison.
    """

    feedback: str  # at the start the room, then the answer to the last command
    commands: list[str]  # admissible ones, sorted by the engine
    won: bool
    world: World
    ids: dict[str, str]  # the simulator's id of each named thing

    def __init__(self, size: tuple[int, int] = (448, 448), *, fast: bool = True) -> None:
        self._size = size
        self._scope = fast_engine if fast else contextlib.nullcontext
        self._env: Any = None

    def open(self, game: Game, tag_seed: int | None = None) -> None:
        """Load a game and start it; with `tag_seed` its objects get drawn numbers (`mug #37`)."""
        with self._scope():
            if self._env is None:
                self._env = _IDLE.pop() if _IDLE else _make_engine()
            forget_facts()
            try:
                self._env.load(game.data())
                if tag_seed is not None:
                    tag_objects(self._env._entity_infos, tag_seed)
                state = self._env.reset()
            except (Exception, SystemExit) as error:
                name = game.file or f"Game {game.name}"
                reason = f"{type(error).__name__}: {error}"
                fix = f" {DOWNLOAD_AGAIN}" if game.file else ""
                raise UserError(f"{name}: TextWorld's engine rejects it ({reason}).{fix}") from error

        # The engine's first text has a title and the task, which the prompt tells.
        self._names = {name: info.name.strip() for name, info in state["_entity_infos"].items()}
        self.ids = {name: key for key, name in self._names.items()}
        self._game, self._memory = game, Memory()
        self._view: RoomView | None = None
        self._take(state, None)
        parts = [part.strip() for part in state.feedback.split("\n\n")]
        titles = ("-=", "Your task is to:")
        self.feedback = " ".join(part for part in parts if part and not part.startswith(titles))

    def command(self, command: str) -> None:
        """Execute an admissible command."""
        with self._scope():
            state, _, _ = self._env.step(command)
        self._take(state, self.world)
        self.feedback = state.feedback.strip()

    def conditions(self) -> tuple[bool, ...]:
        """Return for each of the goal's conditions whether it is met."""
        return met_conditions(self._game.goal, self.world)

    def frame(self) -> NDArray[np.uint8]:
        """Draw the room: a fresh `[H, W, 3] uint8` array."""
        if self._view is None:
            floor = load_floor(self._game.scene)
            self._view = RoomView(self.ids, self.world, floor, self._size)
        return self._view.draw(self.world)

    def advise(self, *, seeking: bool) -> Advice | None:
        """Return the next command of the knowing or the seeking oracle."""
        if self.won:
            return None
        if seeking:
            return seek(self._game.goal, self.world, self._memory, self.commands)
        return advise(self._game.goal, self.world, self.commands)

    def close(self) -> None:
        """Hand the engine back for the next game of this process."""
        if self._env is not None:
            _IDLE.append(self._env)
            self._env = None

    def _take(self, state: Any, before: World | None) -> None:
        self.facts = state["_facts"]
        self.world = read_world(self.facts, self._names, before)
        self._memory.look(self.world)
        self.commands = list(state["admissible_commands"])
        self.won = bool(state["won"])


def tag_objects(infos: Mapping[str, Any], seed: int) -> None:
    """Give each object of a loaded game another drawn number, `mug #37`; furniture keeps its name."""
    objects = sorted((info.name, key) for key, info in infos.items() if info.type == "object")
    numbers = TAGS if len(objects) <= len(TAGS) else range(100, 100 + 10 * len(objects))
    drawn = random.Random(seed).sample(numbers, len(objects))
    for (name, key), number in zip(objects, drawn, strict=True):
        infos[key].name = f"{name.strip().rpartition(' ')[0]} #{number}"


def _make_engine() -> Any:
    textworld = import_quietly("textworld")
    wrappers = import_quietly("alfworld.agents.environment.alfred_tw_env")
    engine = importlib.import_module("textworld.envs").PddlEnv
    return wrappers.AlfredDemangler(engine(textworld.EnvInfos(admissible_commands=True, won=True)))
