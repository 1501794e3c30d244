"""What an environment plays on: a game that runs, seen through one small interface. The drawn one is here, AI2-THOR's
is in `thor`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .game import Game
from .oracle import Advice, advise
from .rooms import load_floor
from .seeker import Memory, seek
from .tasks import met_conditions
from .textgame import TextGame
from .view import RoomView
from .world import World


class Backend(Protocol):
    """A game that runs.

    Attributes:
        feedback: what was said last: the view of the room at the start, then the answer to the last command.
        commands: what can be commanded now.
        won: whether the goal is met.
    """

    feedback: str
    commands: list[str]
    won: bool

    def open(self, game: Game, tag_seed: int | None = None) -> None:
        """Load a game and start it; with `tag_seed`, under drawn numbers of its objects where they can be seen."""

    def command(self, command: str) -> None:
        """Execute an admissible command."""

    def conditions(self) -> tuple[bool, ...]:
        """Return for each of the goal's conditions whether it is met."""

    def frame(self) -> NDArray[np.uint8]:
        """Return the picture: a fresh `[H, W, 3] uint8` array."""

    def advise(self, *, seeking: bool = False) -> Advice | None:
        """Return the oracle's next command, or `None`; with `seeking`, from what has been seen alone."""

    def close(self) -> None:
        """Free what the game holds."""


class DrawnBackend:
    """TextWorld's engine with a drawn plan of the room.

    Args:
        size: height and width of the picture, pixels.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._text = TextGame()
        self._game: Game | None = None
        self._world: World | None = None
        self._view: RoomView | None = None
        self._memory = Memory()
        self.feedback, self.commands, self.won = "", list[str](), False

    def open(self, game: Game, tag_seed: int | None = None) -> None:
        """Load a game and start it; with `tag_seed`, under drawn numbers of its objects."""
        self._text.open(game, tag_seed)
        self._game = game
        self._memory = Memory()
        self._take()
        self._view = RoomView(self._text.ids(), self.world, load_floor(game.scene), self._size)

    def command(self, command: str) -> None:
        """Execute an admissible command."""
        self._text.command(command)
        self._take()

    @property
    def world(self) -> World:
        """Snapshot of the state."""
        return _begun(self._world)

    def conditions(self) -> tuple[bool, ...]:
        """Return for each of the goal's conditions whether it is met."""
        return met_conditions(_begun(self._game).goal, self.world)

    def frame(self) -> NDArray[np.uint8]:
        """Draw the room."""
        return _begun(self._view).draw(self.world)

    def advise(self, *, seeking: bool = False) -> Advice | None:
        """Return the next command of the knowing oracle, or of the one that goes by what has been seen."""
        if self.won:
            return None
        goal = _begun(self._game).goal
        return (
            seek(goal, self.world, self._memory, self.commands) if seeking else advise(goal, self.world, self.commands)
        )

    def close(self) -> None:
        """Free the engine."""
        self._text.close()

    def _take(self) -> None:
        self.feedback, self.commands, self.won = self._text.feedback, self._text.commands, self._text.won
        self._world = self._text.world()
        self._memory.look(self._world)


def _begun(value: Any) -> Any:
    if value is None:
        raise RuntimeError("no game was opened")
    return value
