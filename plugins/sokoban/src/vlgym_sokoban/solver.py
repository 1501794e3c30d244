"""A solver that ships: shortest solutions in steps by A*, and proofs that a position has none.

A node is a position right after a push; its successors are all pushes that the player can walk to. The price of an
edge is the walk and the push, so a solution has the fewest steps (walks and pushes alike), which is what reward and
score count. The bound is consistent: one push changes it by at most one. Work is limited in nodes, not
seconds, so results do not depend on the machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from vlgym.errors import UserError

from .board import Board
from .level import DIRECTIONS, LETTERS, Level

DEAD = 1 << 20
"""The bound of a position from which no solution exists."""


class Warehouse:
    """The unmoving parts of a level, prepared for search; it remembers the bounds it has computed.

    Sets of cells are bit masks: bit `c` is cell `c`.

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
        """True if some box off target can never move again.

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


MAX_NODES = 400_000

SOLVED, UNSOLVABLE, UNKNOWN = "solved", "unsolvable", "unknown"


@dataclass(frozen=True)
class Solution:
    """Result of the solver.

    Attributes:
        status: `solved`, `unsolvable` (proved) or `unknown` (the limit was reached first).
        moves: a shortest solution in LURD notation, pushes in upper case; empty unless solved.
        nodes: nodes expanded.
    """

    status: str
    moves: str = ""
    nodes: int = 0


def solve(
    level: Level,
    warehouse: Warehouse | None = None,
    *,
    max_steps: int | None = None,
    max_nodes: int = MAX_NODES,
    greed: int = 1,
) -> Solution:
    """Find a solution with the fewest steps.

    Args:
        level: the position.
        warehouse: of the same room, to share its memory between calls.
        max_steps: give up (`unknown`) once every solution is known to be longer.
        max_nodes: most nodes expanded before it gives up.
        greed: weight of the bound. 1 (default) finds a shortest solution. A larger weight finds some solution sooner,
            at most `greed` times as long, and then `max_steps` says nothing.
    """
    house = warehouse or Warehouse(level)
    columns = level.columns
    up, left = columns, 1
    goal = house.targets
    floor, live = house.floor, house.live
    boxes = to_mask(level.boxes)
    bound = house.bound(boxes)
    if bound >= DEAD:
        return Solution(UNSOLVABLE)
    start = (boxes, level.player)
    price: dict[tuple[int, int], int] = {start: 0}
    parent: dict[tuple[int, int], tuple[int, int]] = {}
    heap = [(greed * bound, 0, boxes, level.player)]
    closed: set[tuple[int, int]] = set()
    nodes = 0
    while heap:
        estimate, negative, boxes, player = heapq.heappop(heap)
        node = (boxes, player)
        if node in closed:
            continue
        closed.add(node)
        if max_steps is not None and estimate > max_steps:
            return Solution(UNKNOWN, nodes=nodes)
        if boxes == goal:
            return Solution(SOLVED, _write_moves(level, house, parent, node), nodes)
        nodes += 1
        if nodes > max_nodes:
            return Solution(UNKNOWN, nodes=nodes)
        cost = -negative
        free = floor & ~boxes
        # Cells on which the player must stand to push some box up, down, left or right.
        enter = free & live
        stand_up = (boxes & (enter << up)) << up & free
        stand_down = (boxes & (enter >> up)) >> up & free
        stand_left = (boxes & (enter << left)) << left & free
        stand_right = (boxes & (enter >> left)) >> left & free
        wanted = stand_up | stand_down | stand_left | stand_right
        reached = frontier = 1 << player
        walked = 0
        while frontier:
            hits = frontier & wanted
            if hits:
                wanted ^= hits
                for stands, step in ((stand_up, -up), (stand_down, up), (stand_left, -left), (stand_right, left)):
                    here = hits & stands
                    while here:
                        lowest = here & -here
                        here ^= lowest
                        box = lowest.bit_length() - 1 + step
                        following = boxes ^ (1 << box) | (1 << (box + step))
                        bound = house.bound(following)
                        if bound >= DEAD:
                            continue
                        total = cost + walked + 1
                        child = (following, box)
                        if total < price.get(child, DEAD):
                            price[child] = total
                            parent[child] = node
                            heapq.heappush(heap, (total + greed * bound, -total, following, box))
                if not wanted:
                    break
            frontier = (
                ((frontier << 1) | (frontier >> 1) | (frontier << columns) | (frontier >> columns)) & free & ~reached
            )
            reached |= frontier
            walked += 1
    return Solution(UNSOLVABLE, nodes=nodes)


def replay(level: Level, moves: str) -> Board:
    """Play a solution in LURD notation and return the board; a letter that does not do what it says raises."""
    board = Board(level)
    for index, letter in enumerate(moves):
        name = LETTERS.get(letter.lower())
        move = board.move(level.step_of(name) if name else 0)
        if not move.moved or move.pushed != letter.isupper():
            raise UserError(
                f"letter {index + 1} of the solution, {letter!r}, is no move that can be made there: u, d, l, r walk, "
                "U, D, L, R push. Fix or remove the Solution line."
            )
    return board


def _write_moves(
    level: Level, house: Warehouse, parent: dict[tuple[int, int], tuple[int, int]], node: tuple[int, int]
) -> str:
    chain = [node]
    while chain[-1] in parent:
        chain.append(parent[chain[-1]])
    chain.reverse()
    letters = []
    for (boxes, player), (following, landed) in pairwise(chain):
        gained = (following & ~boxes).bit_length() - 1
        name, step = next((name, step) for name, step in house.steps.items() if landed + step == gained)
        letters += [direction[0] for direction in house.walk(player, landed - step, boxes)]
        letters.append(name[0].upper())
    return "".join(letters)
