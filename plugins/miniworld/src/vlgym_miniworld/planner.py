"""Path search over (x, z, heading) with the moves and the collisions of a MiniWorld world.

Weighted A*: a field of walking distances to the targets guides it, and every edge is a real move
(turn by the turn step, forward by the forward step, blocked by walls and things as in MiniWorld), so
a plan can be executed as it is. Distances are in metres, angles in radians; the heading vector is
(cos a, -sin a) in (x, z), as in MiniWorld.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

LEFT, RIGHT, FORWARD = "turn left", "turn right", "move forward"

_BUCKET = 0.5  # edge of the buckets that hold nearby walls, metres
_FIELD_STEP = 0.2  # edge of the cells of the distance field, metres
_WEIGHTS = (1.2, 3.0)  # of the heuristic, in turn: above 1 trades a little length for much speed
_MAX_NODES = 60_000
_SLACK = 0.05  # the field's walker is this much thinner, so that tight poses have cells, metres
_WALL_BAND = 0.15  # cells this close to a wall are never free, metres; more than half a diagonal step

Circle = tuple[float, float, float]  # x, z, radius
Closed = Callable[[float, float], bool]  # places that end the episode badly


@dataclass(frozen=True)
class Pose:
    """Place of the agent: x, z in metres, heading in radians."""

    x: float
    z: float
    heading: float

    def close_to(self, other: Pose) -> bool:
        turned = math.remainder(self.heading - other.heading, math.tau)
        return max(abs(self.x - other.x), abs(self.z - other.z), abs(turned)) < 1e-6


class Walls:
    """Wall segments in buckets, for fast tests of circles up to the radius `reach`.

    `segments` is `[N, 2, 2]` float: end points (x, z) of each wall.
    """

    def __init__(self, segments: np.ndarray, reach: float) -> None:
        self._buckets: dict[tuple[int, int], list[tuple[float, ...]]] = {}
        for (ax, az), (bx, bz) in np.asarray(segments, dtype=float):
            length2 = (bx - ax) ** 2 + (bz - az) ** 2
            if length2 == 0:
                continue
            wall = (float(ax), float(az), float(bx - ax), float(bz - az), float(length2))
            for i in range(_bucket(min(ax, bx) - reach), _bucket(max(ax, bx) + reach) + 1):
                for j in range(_bucket(min(az, bz) - reach), _bucket(max(az, bz) + reach) + 1):
                    self._buckets.setdefault((i, j), []).append(wall)

    def hit(self, x: float, z: float, radius: float) -> bool:
        limit = radius * radius
        for ax, az, dx, dz, length2 in self._buckets.get((_bucket(x), _bucket(z)), ()):
            px, pz = x - ax, z - az
            t = (px * dx + pz * dz) / length2
            t = 0.0 if t < 0.0 else min(t, 1.0)
            px -= t * dx
            pz -= t * dz
            if px * px + pz * pz < limit:
                return True
        return False


@dataclass(frozen=True)
class Body:
    """Moving body: the agent's circle, and the circle that it carries ahead, if any.

    Attributes:
        turn, step: of one move, radians and metres.
        carried: radius of the carried thing, metres, or `None`.
        arm: distance from the agent to the carried thing, metres.
    """

    radius: float
    turn: float
    step: float
    carried: float | None = None
    arm: float = 0.0

    def carry(self, pose: Pose) -> tuple[float, float]:
        """Return the place of the carried thing."""
        cos, sin = math.cos(pose.heading), math.sin(pose.heading)
        return pose.x + self.arm * cos, pose.z - self.arm * sin


@dataclass(frozen=True)
class Ground:
    """Obstacles that a body may not touch."""

    walls: Walls
    things: tuple[Circle, ...] = ()
    closed: Closed | None = None

    def blocks(self, x: float, z: float, radius: float) -> bool:
        for tx, tz, tr in self.things:
            if (x - tx) ** 2 + (z - tz) ** 2 < (radius + tr) ** 2:
                return True
        return self.walls.hit(x, z, radius)

    def admits(self, pose: Pose, body: Body) -> bool:
        if self.closed is not None and self.closed(pose.x, pose.z):
            return False
        if self.blocks(pose.x, pose.z, body.radius):
            return False
        return body.carried is None or not self.blocks(*body.carry(pose), body.carried)


class Field:
    """Walking distance, in metres, to the nearest target, on a grid that grows as it is asked."""

    def __init__(self, targets: Iterable[Circle], ground: Ground, radius: float) -> None:
        self._ground = ground
        self._radius = radius - _SLACK
        self._targets = tuple(targets)
        self._free: dict[tuple[int, int], bool] = {}
        self._done: dict[tuple[int, int], float] = {}
        self._open: list[tuple[float, tuple[int, int]]] = [(0.0, _cell(x, z)) for x, z, _ in self._targets]
        heapq.heapify(self._open)

    def at(self, x: float, z: float) -> float:
        """Return the distance at a place; infinity without a way."""
        i, j = math.floor(x / _FIELD_STEP), math.floor(z / _FIELD_STEP)
        best = math.inf
        for cell in ((i, j), (i + 1, j), (i, j + 1), (i + 1, j + 1)):
            distance = self._distance(cell)
            if distance < best:
                off = math.hypot(cell[0] * _FIELD_STEP - x, cell[1] * _FIELD_STEP - z)
                best = min(best, distance + off)
        return best

    def way_down(self, x: float, z: float) -> float | None:
        """Return the heading towards the cell four steps down the field, or `None` at a target."""
        cell = _cell(x, z)
        if not math.isfinite(self._distance(cell)):
            return None
        for _ in range(4):
            cell = min(_neighbours(cell), key=lambda c: self._done.get(c, math.inf), default=cell)
        dx, dz = cell[0] * _FIELD_STEP - x, cell[1] * _FIELD_STEP - z
        return math.atan2(-dz, dx) if math.hypot(dx, dz) > _FIELD_STEP else None

    def _distance(self, cell: tuple[int, int]) -> float:
        done = self._done
        if cell in done:
            return done[cell]
        if not self._is_free(cell):
            return math.inf

        # Dijkstra's search goes on until it reaches the cell.
        while self._open:
            distance, here = heapq.heappop(self._open)
            if here in done:
                continue
            done[here] = distance
            for near in _neighbours(here):
                if near not in done and self._is_free(near):
                    diagonal = near[0] != here[0] and near[1] != here[1]
                    step = _FIELD_STEP * (math.sqrt(2) if diagonal else 1.0)
                    heapq.heappush(self._open, (distance + step, near))
            if here == cell:
                return distance
        return math.inf

    def _is_free(self, cell: tuple[int, int]) -> bool:
        if cell not in self._free:
            x, z = cell[0] * _FIELD_STEP, cell[1] * _FIELD_STEP
            ground = self._ground
            # A thing may lie closer to a wall than the walker can stand; the band keeps the field
            # from leaking through.
            self._free[cell] = not (ground.closed is not None and ground.closed(x, z)) and (
                not ground.blocks(x, z, self._radius)
                or (self._touches_target(x, z) and not ground.walls.hit(x, z, _WALL_BAND))
            )
        return self._free[cell]

    def _touches_target(self, x: float, z: float) -> bool:
        radius = self._radius
        return any(math.hypot(x - tx, z - tz) < tr + radius for tx, tz, tr in self._targets)


def search(
    start: Pose,
    body: Body,
    ground: Ground,
    field: Field,
    reached: Callable[[Pose], bool],
    near: float,
    weights: Sequence[float] = _WEIGHTS,
) -> tuple[list[str], list[Pose]] | None:
    """Return moves from `start` to a pose that is `reached`, and the poses, one more than the moves.

    `near` is the field's distance at which the goal is expected. `None`: there is no way.
    """
    cell, turns = 0.6 * body.step, round(math.tau / body.turn)
    nodes: list[tuple[int, str, Pose]] = []
    best: dict[tuple[int, int, int], int] = {}
    heap: list[tuple[float, int, int]] = []

    def push(pose: Pose, cost: int, parent: int, move: str) -> None:
        turned = round((pose.heading - start.heading) / body.turn) % turns
        key = (round(pose.x / cell), round(pose.z / cell), turned)
        if best.get(key, cost + 1) <= cost:
            return
        best[key] = cost

        # The steps that are left are at least the way down the field, and the turns to it.
        distance = field.at(pose.x, pose.z)
        if not math.isfinite(distance):
            return
        remaining = max(0.0, distance - near) / body.step
        way = field.way_down(pose.x, pose.z)
        if way is not None:
            remaining += abs(math.remainder(way - pose.heading, math.tau)) / body.turn
        heapq.heappush(heap, (cost + weights[0] * remaining, len(nodes), cost))
        nodes.append((parent, move, pose))

    push(start, 0, -1, "")
    while heap and len(nodes) < _MAX_NODES:
        _, index, cost = heapq.heappop(heap)
        pose = nodes[index][2]
        if reached(pose):
            return _unwind(nodes, index)
        for move, after in _moves(pose, body):
            # A pure turn of an empty-handed body never collides, as in MiniWorld.
            if (body.carried is None and move != FORWARD) or ground.admits(after, body):
                push(after, cost + 1, index, move)
    return search(start, body, ground, field, reached, near, weights[1:]) if weights[1:] else None


def _moves(pose: Pose, body: Body) -> Sequence[tuple[str, Pose]]:
    x, z, heading = pose.x, pose.z, pose.heading
    ahead = Pose(x + body.step * math.cos(heading), z - body.step * math.sin(heading), heading)
    left, right = Pose(x, z, heading + body.turn), Pose(x, z, heading - body.turn)
    return (LEFT, left), (RIGHT, right), (FORWARD, ahead)


def _unwind(nodes: list[tuple[int, str, Pose]], index: int) -> tuple[list[str], list[Pose]]:
    moves, poses = [], []
    while index != -1:
        index, move, pose = nodes[index]
        moves.append(move)
        poses.append(pose)
    return moves[-2::-1], poses[::-1]


def _bucket(value: float) -> int:
    return math.floor(value / _BUCKET)


def _cell(x: float, z: float) -> tuple[int, int]:
    return round(x / _FIELD_STEP), round(z / _FIELD_STEP)


def _neighbours(cell: tuple[int, int]) -> list[tuple[int, int]]:
    i, j = cell
    return [(i + di, j + dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if di or dj]
