"""A game in TextWorld's engine with a drawn plan of its room, and with both oracles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .game import Game
from .oracle import Advice, advise
from .rooms import load_floor
from .seeker import Memory, seek
from .tasks import met_conditions
from .textgame import TextGame
from .view import RoomView


class DrawnGame(TextGame):
    """A game that runs, and its picture.

    Args:
        size: height and width of the picture, pixels.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self._size = size

    def open(self, game: Game, tag_seed: int | None = None) -> None:
        """Load a game and start it; with `tag_seed`, under drawn numbers of its objects."""
        super().open(game, tag_seed)
        self._goal = game.goal
        self._memory = Memory()
        self._memory.look(self.world)
        self._view = RoomView(self.ids, self.world, load_floor(game.scene), self._size)

    def command(self, command: str) -> None:
        """Execute an admissible command."""
        super().command(command)
        self._memory.look(self.world)

    def conditions(self) -> tuple[bool, ...]:
        """Return for each of the goal's conditions whether it is met."""
        return met_conditions(self._goal, self.world)

    def frame(self) -> NDArray[np.uint8]:
        """Draw the room: a fresh `[H, W, 3] uint8` array."""
        return self._view.draw(self.world)

    def advise(self, *, seeking: bool) -> Advice | None:
        """Return the next command of the knowing oracle, or of the one that goes by what has been seen."""
        if self.won:
            return None
        if seeking:
            return seek(self._goal, self.world, self._memory, self.commands)
        return advise(self._goal, self.world, self.commands)
