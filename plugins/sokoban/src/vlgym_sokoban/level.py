"""A level, one room as immutable data with numbered cells, and the board on which it is played.

The rules are those of gym-sokoban 0.0.6, move by move, and the score of an episode MageBench's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vlgym.errors import UserError

DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}  # row, column
LETTERS = {name[0]: name for name in DIRECTIONS}  # of LURD notation, where upper case marks a push
SYMBOLS = "# .$*@+"  # of XSB: wall, floor, target, box, box on target, player, player on target
LONGEST_SOLUTION = 50  # steps of a level's shortest solution, and MageBench's Online limit


@dataclass(frozen=True)
class Level:
    """One room with its starting position; `cell = row * columns + column`."""

    rows: int
    columns: int
    walls: frozenset[int]  # with the whole rim
    targets: tuple[int, ...]  # in increasing order
    boxes: tuple[int, ...]  # in increasing order; as many as targets
    player: int
    title: str = ""  # for example `small-v0/7`
    solution: str = ""  # in LURD notation, or empty where none is known

    @classmethod
    def from_rows(cls, rows: Sequence[str], title: str = "", solution: str = "") -> Level:
        """Build a level from XSB rows; cells outside the room become wall."""
        width = max((len(row) for row in rows), default=0)
        for number, row in enumerate(rows, 1):
            if strange := sorted(set(row) - set(SYMBOLS)):
                use = "# (wall), space, . (target), $ (box), * @ +"
                raise UserError(f"row {number} {row!r} has {strange[0]!r}; use only {use}.")
        cells = _fill_outside([row.ljust(width) for row in rows], width)

        # One player, and as many targets as boxes, make it a level.
        level = cls(
            rows=len(rows),
            columns=width,
            walls=frozenset(cell for cell, symbol in enumerate(cells) if symbol == "#"),
            targets=tuple(cell for cell, symbol in enumerate(cells) if symbol in ".*+"),
            boxes=tuple(cell for cell, symbol in enumerate(cells) if symbol in "$*"),
            player=next((cell for cell, symbol in enumerate(cells) if symbol in "@+"), -1),
            title=title,
            solution=solution,
        )
        level._check(sum(symbol in "@+" for symbol in cells))
        return level

    def to_rows(self) -> list[str]:
        def show(cell: int) -> str:
            if cell in self.walls:
                return "#"
            pair = "$*" if cell in self.boxes else "@+" if cell == self.player else " ."
            return pair[cell in self.targets]

        text = "".join(map(show, range(self.rows * self.columns)))
        return [text[start : start + self.columns] for start in range(0, len(text), self.columns)]

    def checksum(self) -> str:
        """Return a hash of the board (not of title or solution): 16 hexadecimal digits."""
        return hashlib.sha256("\n".join(self.to_rows()).encode()).hexdigest()[:16]

    def step_of(self, direction: str) -> int:
        """Return the change of cell number of a direction word."""
        rows, columns = DIRECTIONS[direction]
        return rows * self.columns + columns

    def _check(self, players: int) -> None:
        if players != 1:
            raise UserError(f"the room has {players} players; mark exactly one cell with @ (or + on a target).")
        if not self.targets or len(self.targets) != len(self.boxes):
            raise UserError(
                f"the room has {len(self.boxes)} boxes and {len(self.targets)} targets; "
                "it needs as many of each, at least 1."
            )
        if set(self.targets) == set(self.boxes):
            raise UserError("every box stands on a target already; move one.")


def _fill_outside(rows: Sequence[str], width: int) -> str:
    """Return the cells row by row, those that are joined to the outside turned into wall."""
    # A ring of cells around the rows is the outside.
    columns = width + 2
    ring = " " * columns
    cells = list(ring + "".join(f" {row} " for row in rows) + ring)

    # Floor that is joined to it belongs to it; anything else there shows that a wall is missing.
    queue, visited = [0], {0}
    for cell in queue:
        row, column = divmod(cell, columns)
        if cells[cell] != " ":
            raise UserError(
                f"the room is open: {cells[cell]!r} in row {row}, column {column} can be reached from "
                "outside; close the wall (#)."
            )
        for neighbour in (cell - columns, cell + columns, cell - 1, cell + 1):
            if 0 <= neighbour < len(cells) and cells[neighbour] != "#" and neighbour not in visited:
                visited.add(neighbour)
                queue.append(neighbour)

    # The ring goes again.
    for cell in visited:
        cells[cell] = "#"
    return "".join("".join(cells[row * columns + 1 :][:width]) for row in range(1, len(rows) + 1))


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
