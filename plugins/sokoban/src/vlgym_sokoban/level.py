"""A level: walls, targets, boxes and player of one room, as immutable data with a flat index for every cell."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from vlgym.errors import UserError

DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
"""Direction words and their change of (row, column)."""

LETTERS = {"u": "up", "d": "down", "l": "left", "r": "right"}
"""Letters of a solution in LURD notation; upper case marks a push."""

SYMBOLS = "# .$*@+"
"""XSB symbols: wall, floor, target, box, box on target, player, player on target."""


@dataclass(frozen=True)
class Level:
    """One room with its starting position.

    Cells are numbered row by row: `cell = row * columns + column`.

    Attributes:
        rows: height in cells.
        columns: width in cells.
        walls: cells of walls; the rim of the picture is always wall.
        targets: cells of targets, in increasing order.
        boxes: cells of boxes, in increasing order; as many as targets.
        player: cell of the player.
        title: name of the level, for example `small-v0/7`.
        solution: a solution in LURD notation, or empty where none is known.
    """

    rows: int
    columns: int
    walls: frozenset[int]
    targets: tuple[int, ...]
    boxes: tuple[int, ...]
    player: int
    title: str = ""
    solution: str = ""

    @classmethod
    def from_rows(cls, rows: Sequence[str], title: str = "", solution: str = "") -> Level:
        """Build a level from XSB rows; whatever lies outside the room becomes wall."""
        width = max((len(row) for row in rows), default=0)
        for number, row in enumerate(rows, 1):
            strange = set(row) - set(SYMBOLS)
            if strange:
                raise UserError(
                    f"row {number} {row!r} has {sorted(strange)[0]!r}; use only "
                    "# (wall), space, . (target), $ (box), * @ +."
                )
        cells = _fill_outside([row.ljust(width) for row in rows], width)
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
        symbols = []
        for cell in range(self.rows * self.columns):
            target = cell in self.targets
            if cell in self.walls:
                symbols.append("#")
            elif cell in self.boxes:
                symbols.append("*" if target else "$")
            elif cell == self.player:
                symbols.append("+" if target else "@")
            else:
                symbols.append("." if target else " ")
        text = "".join(symbols)
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
    columns = width + 2  # a ring of cells around the rows is the outside
    ring = " " * columns
    cells = list(ring + "".join(f" {row} " for row in rows) + ring)
    queue, visited = [0], {0}
    for cell in queue:
        row, column = divmod(cell, columns)
        if cells[cell] != " ":
            raise UserError(
                f"the room is open: {cells[cell]!r} in row {row}, column {column} can be reached from "
                "outside; close the wall (#)."
            )
        for beside in (cell - columns, cell + columns, cell - 1, cell + 1):
            if 0 <= beside < len(cells) and cells[beside] != "#" and beside not in visited:
                visited.add(beside)
                queue.append(beside)
    for cell in visited:
        cells[cell] = "#"
    return "".join("".join(cells[row * columns + 1 :][:width]) for row in range(1, len(rows) + 1))
