"""Levels from a seed: gym-sokoban's generator, checked by the solver; splits share no room.

A hash of the room's walls assigns it to train (7 of 10), val, test or the shipped benchmark levels
(1 of 10 each). A room of another split is thrown away before boxes are placed. So no two splits
share a room, and no drawn level is a benchmark level.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import UserError

from .level import LONGEST_SOLUTION, Level
from .package import load_generator, seed_generator
from .solver import SOLVED, solve, to_mask

MAX_DEPTH = 300
MAX_STATES = 300_000

_TARGET, _BOX_AT_START, _PLAYER = 2, 4, 5


def reverse_play(
    state: NDArray[np.int64], structure: NDArray[np.int64], *_: Any
) -> tuple[NDArray[np.int64] | None, int, None]:
    """Return the best room, its score and `None`: the package's `reverse_playing` 30 times as fast.

    It pulls the boxes of a solved room away by depth-first search over a few integers, in the
    package's order and limits. The first room with the highest score wins: pulls x sum of the
    boxes' Manhattan distances from their targets, or 0 while a box or the player is on a target.
    `state` and `structure` are the package's `[rows, columns]` cell codes.
    """
    columns = state.shape[1]
    fixed = structure.ravel().tolist()
    targets = [cell for cell, code in enumerate(fixed) if code == _TARGET]
    places = [divmod(cell, columns) for cell in range(len(fixed))]
    away = [[abs(r - t // columns) + abs(c - t % columns) for r, c in places] for t in targets]
    cells = len(fixed)
    target_mask = to_mask(targets)
    wall_mask = to_mask(cell for cell, code in enumerate(fixed) if code == 0)
    steps = (-columns, columns, -1, 1)

    # An entry: depth left, player, boxes (in the order of their targets), mask of boxes ever
    # pulled, mask of the others, pulls, sum of distances.
    visited: set[int] = set()
    best: tuple[int, tuple[int, ...]] | None = None
    best_score = -1
    start = state.ravel().tolist().index(_PLAYER)
    stack = [(MAX_DEPTH, start, tuple(targets), 0, target_mask, 0, 0)]
    while stack:
        depth, player, boxes, pulled, resting, pulls, distance = stack.pop()
        depth -= 1
        if depth <= 0 or len(visited) >= MAX_STATES:
            continue
        key = ((pulled << cells) | resting) << 10 | player
        if key in visited:
            continue
        visited.add(key)

        # The score counts where no target is covered.
        occupied = pulled | resting
        covered = (occupied | (1 << player)) & target_mask
        score = 0 if covered else pulls * distance
        if score > best_score:
            best_score, best = score, (player, boxes)

        # The next entries: all pulls, then all moves, in the package's order of actions.
        blocked = wall_mask | occupied
        moves, pulling = [], []
        for step in steps:
            ahead = player + step
            if blocked >> ahead & 1:
                continue
            behind = player - step
            move = (depth, ahead, boxes, pulled, resting, pulls, distance)
            # Without a box behind, the package's pull is its plain move, which it then finds seen.
            if not occupied >> behind & 1:
                pulling.append(move)
                continue
            moves.append(move)
            index, clear = boxes.index(behind), ~(1 << behind)
            after = (*boxes[:index], player, *boxes[index + 1 :])
            gained = away[index][player] - away[index][behind]
            masks = (pulled & clear) | (1 << player), resting & clear
            pulling.append((depth, ahead, after, *masks, pulls + 1, distance + gained))
        stack.extend(reversed(moves))
        stack.extend(reversed(pulling))

    # The package's codes: a fresh room with boxes and player of the best state.
    if best is None:
        return None, -1, None
    player, boxes = best
    room = structure.copy()
    room.ravel()[list(boxes)] = _BOX_AT_START
    room.ravel()[player] = _PLAYER
    return room, best_score, None


_BUCKETS = ("train",) * 7 + ("val", "test", "benchmark")
MAX_TRIES = 200  # seeds tried for one level before the request counts as impossible
MAX_DIGS = 20 * MAX_TRIES  # outlines drawn before a size counts as having too few (5 x 5 cells do)
SOLVER_NODES = 60_000  # a drawn level that takes the solver more nodes is replaced by another
_CODE_TO_SYMBOL = "# .*$@"


@dataclass(frozen=True)
class RoomSize:
    """Size of a room to generate, and range of its shortest solution."""

    rows: int
    columns: int
    boxes: int
    gen_steps: int
    min_solution: int = 1
    max_solution: int = LONGEST_SOLUTION


class LevelGenerator:
    """Draws solvable levels of one size for one split."""

    def __init__(self, size: RoomSize) -> None:
        self.size = size
        self._module = load_generator()
        self._module.reverse_playing = reverse_play  # type: ignore[attr-defined]
        self._dig = self._module.room_topology_generation
        self._module.room_topology_generation = self._dig_for_split  # type: ignore[attr-defined]
        self._split, self._digs = "train", 0

    def draw(self, rng: np.random.Generator, split: str) -> Level:
        """Return a level with its shortest solution."""
        self._split, self._digs = split, 0
        size = self.size
        for _ in range(MAX_TRIES):
            seed = int(rng.integers(2**32))
            level = self._make(seed)
            if level is None:
                continue

            # Only a solver's solution tells that the level can be solved, and how hard it is.
            solution = solve(level, max_steps=size.max_solution, max_nodes=SOLVER_NODES)
            if solution.status == SOLVED and size.min_solution <= len(solution.moves) <= size.max_solution:
                return replace(level, title=f"seed-{seed}", solution=solution.moves)
        raise UserError(
            f"No room of {size.rows} x {size.columns} cells with {size.boxes} boxes and a shortest solution "
            f"of {size.min_solution} to {size.max_solution} steps turned up in {MAX_TRIES} tries. "
            "Choose a larger room, fewer boxes or a wider range of solutions."
        )

    def _make(self, seed: int) -> Level | None:
        size = self.size
        seed_generator(self._module, seed)
        try:
            _, state, _ = self._module.generate_room(
                dim=(size.rows, size.columns), num_steps=size.gen_steps, num_boxes=size.boxes
            )
        except (RuntimeError, RuntimeWarning):
            # The package's ways to say that the room is too small or has no interesting start.
            return None
        return Level.from_rows(["".join(_CODE_TO_SYMBOL[code] for code in row) for row in state.tolist()])

    def _dig_for_split(self, *args: Any, **kwargs: Any) -> NDArray[np.int64]:
        while self._digs < MAX_DIGS:
            self._digs += 1
            room: NDArray[np.int64] = self._dig(*args, **kwargs)
            if split_of_room(room == 0) == self._split:
                return room
        cells = f"{self.size.rows} x {self.size.columns} cells"
        raise UserError(f"Rooms of {cells} have too few outlines for the {self._split} split. Choose a larger room.")


def split_of_room(walls: NDArray[np.bool_]) -> str:
    """Return the split that a room belongs to, by its walls: `[rows, columns]` bool."""
    outline = "\n".join("".join("#" if wall else " " for wall in row) for row in walls.tolist())
    return _BUCKETS[hashlib.sha256(outline.encode()).digest()[0] % len(_BUCKETS)]
