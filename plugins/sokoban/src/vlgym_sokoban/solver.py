"""A solver: shortest solutions by A*, proofs that none exists, and the oracle's plan.

A node is a position right after a push; its successors are all pushes that the player can walk to.
An edge costs the walk and the push, since reward and score count steps. The bound is consistent:
one push changes it by at most one. Work is limited in nodes: machines make no difference.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from vlgym.errors import UserError

from .level import DIRECTIONS, LETTERS, Board, Level, Move

DEAD = 1 << 20  # the bound of a position from which no solution exists


class Warehouse:
    """The unmoving parts of a level, prepared for search; it remembers the bounds it has computed.

    Sets of cells are bit masks: bit `c` is cell `c`. From `live` cells a lone box reaches a target.
    """

    def __init__(self, level: Level) -> None:
        self.columns = columns = level.columns
        self.steps = {name: level.step_of(name) for name in DIRECTIONS}
        walls = to_mask(level.walls)
        self.floor = ((1 << level.rows * columns) - 1) & ~walls
        self.targets = to_mask(level.targets)
        self._pushes = [self._measure_pushes(target) for target in level.targets]
        self.live = to_mask(set().union(*self._pushes))

        # A box is stuck on an axis if a side is wall, or both ways lead to dead squares.
        dead = ~self.live
        self._stuck_x = (walls << 1) | (walls >> 1) | ((dead << 1) & (dead >> 1))
        self._stuck_y = (walls << columns) | (walls >> columns) | ((dead << columns) & (dead >> columns))
        self._bounds: dict[int, int] = {}

    def bound(self, boxes: int) -> int:
        """Return a lower bound on the pushes from a mask of boxes; `DEAD` if it is proved lost.

        It is the cheapest assignment of boxes to targets, each pair at its pushes in an empty room.
        """
        known = self._bounds.get(boxes)
        if known is None:
            lost = boxes & ~self.live or self.has_frozen(boxes)
            known = self._bounds[boxes] = DEAD if lost else self._assign(boxes)
        return known

    def has_frozen(self, boxes: int) -> bool:
        """True if some box off target can never move again."""
        # In the largest set of boxes that are stuck on both axes by walls, dead squares or boxes of
        # the set, none can be the first to move.
        frozen, columns = boxes, self.columns
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
        # The search begins at the goal, so that the path reads forwards.
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

        path, cell = [], start
        while cell != goal:
            cell, name = came[cell]
            path.append(name)
        return path

    def _measure_pushes(self, target: int) -> dict[int, int]:
        """Return for each cell the fewest pushes of a lone box to `target`."""
        distances = {target: 0}
        queue = [target]
        for cell in queue:
            for step in self.steps.values():
                before, player = cell - step, cell - 2 * step
                free = player >= 0 and self.floor >> before & 1 and self.floor >> player & 1
                if free and before not in distances:
                    distances[before] = distances[cell] + 1
                    queue.append(before)
        return distances

    def _assign(self, boxes: int) -> int:
        """Cheapest assignment, box by box over the sets of targets taken so far."""
        costs = {0: 0}
        for box in to_cells(boxes):
            following: dict[int, int] = {}
            for taken, cost in costs.items():
                for index, distances in enumerate(self._pushes):
                    bit = 1 << index
                    if not taken & bit and box in distances:
                        total = min(cost + distances[box], following.get(taken | bit, DEAD))
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
    """Result of the solver."""

    status: str  # solved, unsolvable (proved) or unknown (a limit was reached first)
    moves: str = ""  # LURD notation, pushes in upper case; empty unless solved
    nodes: int = 0  # nodes expanded


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
        warehouse: of the same room, to share its memory between calls.
        max_steps: give up (`unknown`) once every solution is known to be longer.
        max_nodes: most nodes expanded before it gives up.
        greed: weight of the bound. 1 finds a shortest solution, more finds some solution sooner.
    """
    house = warehouse or Warehouse(level)
    columns = up = level.columns
    left = 1
    floor, live = house.floor, house.live
    boxes = to_mask(level.boxes)
    bound = house.bound(boxes)
    if bound >= DEAD:
        return Solution(UNSOLVABLE)

    # The heap gives the least estimate, of equal ones the farthest on its way.
    price = {(boxes, level.player): 0}
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
        if boxes == house.targets:
            return Solution(SOLVED, _write_moves(house, parent, node), nodes)
        nodes += 1
        if nodes > max_nodes:
            return Solution(UNKNOWN, nodes=nodes)

        # Cells on which the player must stand to push some box up, down, left or right.
        free = floor & ~boxes
        enter = free & live
        stand_up = (boxes & (enter << up)) << up & free
        stand_down = (boxes & (enter >> up)) >> up & free
        stand_left = (boxes & (enter << left)) << left & free
        stand_right = (boxes & (enter >> left)) >> left & free
        pushes = ((stand_up, -up), (stand_down, up), (stand_left, -left), (stand_right, left))

        # The walk spreads over the free cells, a step at a time, until it has met all of them.
        wanted = stand_up | stand_down | stand_left | stand_right
        reached = frontier = 1 << player
        total = 1 - negative
        while frontier and wanted:
            hits = frontier & wanted
            wanted ^= hits
            for stands, step in pushes if hits else ():
                for cell in to_cells(hits & stands):
                    box = cell + step
                    following = boxes ^ (1 << box) | (1 << (box + step))
                    child = (following, box)
                    bound = house.bound(following)
                    if bound < DEAD and total < price.get(child, DEAD):
                        price[child] = total
                        parent[child] = node
                        heapq.heappush(heap, (total + greed * bound, -total, following, box))
            near = (frontier << 1) | (frontier >> 1) | (frontier << columns) | (frontier >> columns)
            frontier = near & free & ~reached
            reached |= frontier
            total += 1
    return Solution(UNSOLVABLE, nodes=nodes)


def replay(level: Level, moves: str) -> Board:
    """Play a solution in LURD notation and return the board; refuse an impossible letter."""
    board = Board(level)
    for index, letter in enumerate(moves):
        name = LETTERS.get(letter.lower())
        move = board.move(level.step_of(name) if name else 0)
        if not move.moved or move.pushed != letter.isupper():
            raise UserError(
                f"letter {index + 1} of the solution, {letter!r}, is no move that can be made there: "
                "u, d, l, r walk, U, D, L, R push. Fix or remove the Solution line."
            )
    return board


def _write_moves(house: Warehouse, parent: dict[tuple[int, int], tuple[int, int]], node: tuple[int, int]) -> str:
    chain = [node]
    while chain[-1] in parent:
        chain.append(parent[chain[-1]])

    # Each node adds the walk to its box, and the push.
    letters: list[str] = []
    for (boxes, player), (following, landed) in pairwise(reversed(chain)):
        gained = (following & ~boxes).bit_length() - 1
        name, step = next((name, step) for name, step in house.steps.items() if landed + step == gained)
        letters += [direction[0] for direction in house.walk(player, landed - step, boxes)]
        letters.append(name[0].upper())
    return "".join(letters)


SHORTEST_NODES = 100_000  # spent on a shortest solution; beyond that some solution has to do
PROOF_NODES = 20_000
GREED = 5


class Guide:
    """Follows one episode."""

    def __init__(self, level: Level) -> None:
        self._house = Warehouse(level)
        self._plan: str | None = level.solution
        self.unsolvable = False

    def follow(self, board: Board, letter: str, move: Move) -> None:
        """Note a move in a direction (`u`, `d`, `l`, `r`) that was just played on `board`."""
        if not move.moved:
            return
        if self._plan and self._plan[0].lower() == letter:
            self._plan = self._plan[1:]
            return
        self._plan = None

        # Walking can be undone, and nothing saves a lost position: only pushes matter.
        if move.pushed and not self.unsolvable:
            self.unsolvable = self.is_lost(board)

    def is_lost(self, board: Board) -> bool:
        """True if it is proved that no solution exists from here, within some nodes of search."""
        solution = solve(board.to_level(), self._house, max_nodes=PROOF_NODES, greed=GREED)
        return solution.status == UNSOLVABLE

    def plan(self, board: Board) -> str:
        """Return a solution in LURD notation; empty if solved, lost, or too hard."""
        if self._plan is None and self.unsolvable:
            self._plan = ""
        elif self._plan is None:
            position = board.to_level()
            solution = solve(position, self._house, max_nodes=SHORTEST_NODES)
            if solution.status != SOLVED:
                solution = solve(position, self._house, greed=GREED)
            self._plan = solution.moves
        return self._plan

    def next_push(self, board: Board) -> tuple[int, str] | None:
        """Return cell and direction of the next box to push; `None` without a plan."""
        cell = board.player
        for letter in self.plan(board):
            direction = LETTERS[letter.lower()]
            cell += board.level.step_of(direction)
            if letter.isupper():
                return cell, direction
        return None

    def save(self) -> dict[str, object]:
        return {"plan": self._plan, "unsolvable": self.unsolvable}

    def load(self, plan: str | None, unsolvable: bool) -> None:
        self._plan, self.unsolvable = plan, unsolvable
