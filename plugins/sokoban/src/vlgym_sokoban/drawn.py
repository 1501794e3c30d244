"""Sokoban in drawn rooms of six difficulty levels."""

from typing import Any, ClassVar

import numpy as np

from .generator import LevelGenerator, RoomSize
from .sokoban import Sokoban


class SokobanDrawn(Sokoban):
    """Sokoban in rooms that are drawn for the level: more cells, more boxes, longer solutions.

    Goal: all boxes on targets, in as few steps as possible. Rules and score are `Sokoban`'s.
    Observation: the room in gym-sokoban's sprites; a cell has 24 or more pixels a side.
    Actions: `up`, `down`, `left`, `right`.
    Reward: per step -0.1, +1 if more boxes are on targets than before, -1 if fewer, +10 if all are.
    Endings: terminated when all boxes are on targets; truncated after 20 to 100 turns.
    Splits: by a hash of the room's walls.
    References: those of `Sokoban`.

    Args:
        level: difficulty level of every episode, 0 to 5. Shipped levels are played in `Sokoban`.
        **kwargs: of `Sokoban`.

    Options of `reset`: `level`, the difficulty level of one episode.
    """

    level_arguments: ClassVar = tuple(
        {"room": RoomSize(side, side, boxes, int(3.4 * side), shortest, longest), "max_turns": turns}
        for side, boxes, shortest, longest, turns in (
            (6, 1, 1, 6, 20), (7, 1, 6, 16, 30), (7, 2, 8, 20, 50),
            (7, 2, 18, 35, 60), (8, 3, 25, 45, 80), (9, 3, 30, 50, 100),
        )
    )  # fmt: skip
    room: RoomSize | None = None

    def __init__(self, *, level: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._generators: dict[RoomSize, LevelGenerator] = {}

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        if self.room is None:
            super().start(rng, options)
            return
        if self.room not in self._generators:
            self._generators[self.room] = LevelGenerator(self.room)
        self._begin_level(self._generators[self.room].draw(rng, self.seed_split or "train"))
