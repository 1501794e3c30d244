"""What can be said of a box position without search: dead squares, frozen boxes, a lower bound on pushes.

Sets of cells are integers used as bit masks (bit `c` is cell `c`), so that whole rows of cells are handled by one
operation.
"""

from __future__ import annotations

from collections.abc import Iterable

from .level import DIRECTIONS, Level

DEAD = 1 << 20
"""The bound of a position from which no solution exists."""


class Warehouse:
    """The unmoving parts of a level, prepared for search; it remembers the bounds it has computed.

    Attributes:
        steps: change of cell number of up, down, left, right.
        floor: mask of cells that are not wall.
        targets: mask of targets.
        live: mask of cells from which a lone box can be pushed to some target.
    """

    def __init__(self, level: Level) -> None:
        columns = level.columns
        self.columns = columns
        self.steps = {name: level.step_of(name) for name in DIRECTIONS}
        cells = level.rows * columns
        walls = to_mask(level.walls)
        self.floor = ((1 << cells) - 1) & ~walls
        self.targets = to_mask(level.targets)
        self._pushes = [self._measure_pushes(target) for target in level.targets]
        self.live = 0
        for distances in self._pushes:
            self.live |= to_mask(distances)
        dead = ~self.live
        # A box cannot move along an axis if a side is wall, or if either way leads to a dead square.
        self._stuck_x = (walls << 1) | (walls >> 1) | ((dead << 1) & (dead >> 1))
        self._stuck_y = (walls << columns) | (walls >> columns) | ((dead << columns) & (dead >> columns))
        self._bounds: dict[int, int] = {}

    def bound(self, boxes: int) -> int:
        """Return a lower bound on the pushes that a box position (mask) needs; `DEAD` if it is proved lost.

        It is the cheapest assignment of boxes to targets, each pair at the number of pushes it would take in an
        otherwise empty room.
        """
        known = self._bounds.get(boxes)
        if known is None:
            known = self._bounds[boxes] = DEAD if boxes & ~self.live or self.has_frozen(boxes) else self._assign(boxes)
        return known

    def has_frozen(self, boxes: int) -> bool:
        """Whether some box off target can never move again.

        The largest set of boxes is found in which each is stuck on both axes by walls, dead squares or boxes of the
        set: none of them can be the first to move.
        """
        frozen = boxes
        columns = self.columns
        while frozen:
            stuck_x = self._stuck_x | (frozen << 1) | (frozen >> 1)
            stuck_y = self._stuck_y | (frozen << columns) | (frozen >> columns)
            rest = frozen & stuck_x & stuck_y
            if rest == frozen:
                break
            frozen = rest
        return bool(frozen & ~self.targets)

    def walk(self, start: int, goal: int, boxes: int) -> list[str]:
        """Return the direction words of a shortest walk from `start` to `goal` without a push."""
        free = self.floor & ~boxes
        came: dict[int, tuple[int, str]] = {goal: (-1, "")}
        queue = [goal]
        for cell in queue:
            if cell == start:
                break
            for name, step in self.steps.items():
                before = cell - step
                if free >> before & 1 and before not in came:
                    came[before] = (cell, name)
                    queue.append(before)
        path = []
        cell = start
        while cell != goal:
            cell, name = came[cell]
            path.append(name)
        return path

    def _measure_pushes(self, target: int) -> dict[int, int]:
        """Return for each cell the fewest pushes that bring a lone box to `target`, wherever the player is."""
        distances = {target: 0}
        queue = [target]
        for cell in queue:
            for step in self.steps.values():
                before, player = cell - step, cell - 2 * step
                if before in distances or not self.floor >> before & 1 or not self._is_floor(player):
                    continue
                distances[before] = distances[cell] + 1
                queue.append(before)
        return distances

    def _is_floor(self, cell: int) -> bool:
        return cell >= 0 and bool(self.floor >> cell & 1)

    def _assign(self, boxes: int) -> int:
        """Cheapest assignment, box by box over the sets of targets taken so far."""
        costs = {0: 0}
        for box in to_cells(boxes):
            following: dict[int, int] = {}
            for taken, cost in costs.items():
                for index, distances in enumerate(self._pushes):
                    bit = 1 << index
                    if taken & bit or box not in distances:
                        continue
                    total = cost + distances[box]
                    if total < following.get(taken | bit, DEAD):
                        following[taken | bit] = total
            costs = following
        return min(costs.values(), default=DEAD)


def to_mask(cells: Iterable[int]) -> int:
    mask = 0
    for cell in cells:
        mask |= 1 << cell
    return mask


def to_cells(mask: int) -> list[int]:
    cells = []
    while mask:
        lowest = mask & -mask
        cells.append(lowest.bit_length() - 1)
        mask ^= lowest
    return cells
