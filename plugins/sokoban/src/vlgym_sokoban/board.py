"""The rules of gym-sokoban 0.0.6, move by move, and MageBench's score of an episode."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .level import Level

STEP_PENALTY = 0.1
BOX_REWARD = 1.0
FINISH_REWARD = 10.0

# Cell codes of the package; `PLAYER_ON_TARGET` is for drawing.
WALL, FLOOR, TARGET, BOX_ON_TARGET, BOX, PLAYER, PLAYER_ON_TARGET = range(7)
FULL = 100.0
POINTS_PER_REWARD = 5


def to_tenths(reward: float) -> int:
    """Return a reward, a multiple of 0.1, as an integer: a replayed solution scores 100 exactly."""
    return round(10 * reward)


def upper_tenths(level: Level) -> int:
    """Return `U` in tenths: `10 + n - 0.1 L` for `n` boxes off target and `L` steps."""
    missing = len(set(level.boxes) - set(level.targets))
    return to_tenths(FINISH_REWARD + BOX_REWARD * missing) - to_tenths(STEP_PENALTY) * len(level.solution)


def score_of(best_tenths: int, upper: int) -> float:
    """Return the score of the best reward of an episode and an upper bound, both in tenths."""
    return FULL + POINTS_PER_REWARD * (best_tenths - upper) / 10


@dataclass(frozen=True)
class Move:
    """Result of one action."""

    reward: float
    moved: bool
    pushed: bool


class Board:
    """The moving parts of a level: player and boxes."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self._targets = frozenset(level.targets)
        self.place(level.player, level.boxes)

    def place(self, player: int, boxes: tuple[int, ...]) -> None:
        self.player = player
        self.boxes = set(boxes)
        self.on_target = len(self.boxes & self._targets)

    @property
    def solved(self) -> bool:
        return self.on_target == len(self.boxes)

    def move(self, step: int, push: bool = True) -> Move:
        """Move the player by `step` cells; with `push` a box ahead moves into a free cell.

        A blocked move still pays the step penalty, and so does `step` 0, "no operation".
        """
        ahead, before = self.player + step, self.on_target
        moved = pushed = False
        if step and ahead not in self.level.walls:
            if ahead not in self.boxes:
                moved = True
            elif push:
                behind = ahead + step
                if behind not in self.level.walls and behind not in self.boxes:
                    self.boxes.remove(ahead)
                    self.boxes.add(behind)
                    self.on_target += (behind in self._targets) - (ahead in self._targets)
                    moved = pushed = True
        if moved:
            self.player = ahead

        # A box that reaches or leaves a target is paid, and the end.
        reward = -STEP_PENALTY
        if self.on_target != before:
            reward += BOX_REWARD if self.on_target > before else -BOX_REWARD
        if self.solved:
            reward += FINISH_REWARD
        return Move(reward, moved, pushed)

    def code(self, cell: int) -> int:
        """Return the package's cell code, with 6 for a player on a target."""
        if cell in self.level.walls:
            return WALL
        target = cell in self._targets
        if cell in self.boxes:
            return BOX_ON_TARGET if target else BOX
        if cell == self.player:
            return PLAYER_ON_TARGET if target else PLAYER
        return TARGET if target else FLOOR

    def to_level(self) -> Level:
        return replace(self.level, boxes=tuple(sorted(self.boxes)), player=self.player, solution="")
