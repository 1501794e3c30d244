"""Oracles: where to walk in each kind of task, and the pilot that follows a plan and corrects it.

A goal is built from the state of the world at every call, so an oracle works from any reachable
state. Planning costs tens of milliseconds; the plan is made again only when the agent left it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .planner import LEFT, Body, Circle, Closed, Field, Ground, Pose, Walls, search

PICK_UP, DROP = "pick up", "drop"
_REACH = 2.7  # MiniWorld's hand: centre 1.5 and radius 1.2 agent radii ahead
_MARGIN = 1e-6  # MiniWorld keeps some radii in single precision, metres


@dataclass(frozen=True)
class Goal:
    """Place that the agent must reach, and the action there.

    Attributes:
        key: changes when an old plan is void for another reason than the agent's pose.
        targets, things: circles that the field of distances starts from, and all that block.
        near: distance to a target's centre at which the goal is expected, metres.
        last: the action once the goal is reached.
    """

    key: tuple[Any, ...]
    targets: tuple[Circle, ...]
    things: tuple[Circle, ...]
    body: Body
    reached: Callable[[Pose], bool]
    near: float
    last: str = LEFT
    closed: Closed | None = None


class Pilot:
    """Leads the agent of one episode; keeps walls, field and plan."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self._walls = Walls(world.wall_segs[:, :, ::2], reach=max(1.2 * world.agent.radius, 0.7))
        self._ground = Ground(self._walls)
        self._key: tuple[Any, ...] | None = None
        self._field: Field | None = None
        self._moves: list[str] = []
        self._poses: list[Pose] = []
        self._at = 0

    def ground(self, things: tuple[Circle, ...]) -> Ground:
        return Ground(self._walls, things)

    def can_walk(self, goal: Goal) -> bool:
        """True if the field of distances reaches the agent: nearly as sure as a plan."""
        pose = pose_of(self.world)
        return math.isfinite(self._load(goal).at(pose.x, pose.z))

    def next(self, goal: Goal) -> str | None:
        """Return the next action towards the goal, or `None` when there is no way."""
        pose, field = pose_of(self.world), self._load(goal)
        if not self._follow(pose):
            plan = search(pose, goal.body, self._ground, field, goal.reached, goal.near)
            if plan is None:
                self._poses = []
                return None
            self._moves, self._poses, self._at = *plan, 0
        return self._moves[self._at] if self._at < len(self._moves) else goal.last

    @property
    def remaining(self) -> int:
        """Steps that are left of the plan, without the last action."""
        return len(self._moves) - self._at

    def _load(self, goal: Goal) -> Field:
        if self._field is None or goal.key != self._key:
            self._ground = Ground(self._walls, goal.things, goal.closed)
            self._field = Field(goal.targets, self._ground, goal.body.radius)
            self._key, self._poses = goal.key, []
        return self._field

    def _follow(self, pose: Pose) -> bool:
        """True if the pose is at or just after the last place in the plan."""
        for index in (self._at, self._at + 1):
            if index < len(self._poses) and pose.close_to(self._poses[index]):
                self._at = index
                return True
        return False


def pose_of(world: Any) -> Pose:
    return Pose(float(world.agent.pos[0]), float(world.agent.pos[2]), float(world.agent.dir))


def near_limit(world: Any, first: Any, second: Any) -> float:
    """Return the distance, in metres, below which MiniWorld calls two entities near each other."""
    return first.radius + second.radius + 1.1 * world.max_forward_step


def reach(world: Any, target: Any, avoid: Iterable[Any] = (), closed: Closed | None = None) -> Goal:
    """Go near an entity, without coming near the ones to avoid."""
    limit = near_limit(world, target, world.agent)
    tx, tz, tr = circle(target)
    hot = [(*circle(other)[:2], near_limit(world, other, world.agent)) for other in avoid]

    def shut(x: float, z: float) -> bool:
        near = any(math.hypot(x - hx, z - hz) < hr for hx, hz, hr in hot)
        return near or (closed is not None and closed(x, z))

    def reached(pose: Pose) -> bool:
        return math.hypot(pose.x - tx, pose.z - tz) < limit - _MARGIN

    others = things(world, without=(target,))
    key, target_circles, shuts = ("reach", tx, tz, others), ((tx, tz, tr),), hot or closed is not None
    return Goal(key, target_circles, others, _body(world), reached, limit, closed=shut if shuts else None)


def pick_up(world: Any, wanted: Iterable[Any], ground: Ground | None = None) -> Goal:
    """Stand so that the hand meets one of the wanted entities first.

    With `ground` (the walls and all other things) the entity must also have room ahead of the
    agent, which carries it away.
    """
    wanted = tuple(wanted)
    ranked = [(*circle(entity), entity) for entity in world.entities if entity is not world.agent]
    targets = tuple(circle(entity) for entity in wanted)
    radius = world.agent.radius
    hand = 1.2 * radius
    walls = ground.walls if ground else Walls(world.wall_segs[:, :, ::2], reach=hand)

    def reached(pose: Pose) -> bool:
        hx = pose.x + 1.5 * radius * math.cos(pose.heading)
        hz = pose.z - 1.5 * radius * math.sin(pose.heading)
        if walls.hit(hx, hz, hand):
            return False
        met = (e for x, z, r, e in ranked if math.hypot(x - hx, z - hz) < hand + r - _MARGIN)
        thing = next(met, None)
        if thing is None or not any(thing is entity for entity in wanted):
            return False
        return ground is None or ground.admits(pose, _body(world, thing))

    others = things(world, without=wanted)
    near = _REACH * radius + min(r for _, _, r in targets)
    return Goal(("pick up", targets, others), targets, others, _body(world), reached, near, PICK_UP)


def put_next(world: Any, carried: Any, target: Any) -> Goal:
    """Carry an entity to where it is near another one when dropped."""
    body = _body(world, carried)
    tx, tz, tr = circle(target)
    limit = near_limit(world, carried, target)

    def reached(pose: Pose) -> bool:
        x, z = body.carry(pose)
        return math.hypot(x - tx, z - tz) < limit - _MARGIN

    others = things(world, without=(carried,))
    near = body.arm + limit
    return Goal(("put next", others), ((tx, tz, tr),), others, body, reached, near, DROP)


def circle(entity: Any) -> Circle:
    return float(entity.pos[0]), float(entity.pos[2]), float(entity.radius)


def things(world: Any, without: Iterable[Any]) -> tuple[Circle, ...]:
    """Return the circles of all entities but the agent and some."""
    skip = {id(world.agent), *(id(entity) for entity in without)}
    return tuple(circle(entity) for entity in world.entities if id(entity) not in skip)


def _body(world: Any, carried: Any | None = None) -> Body:
    radius, longest = world.agent.radius, world.max_forward_step
    return Body(
        radius=radius,
        turn=math.radians(world.params.sample(None, "turn_step")),
        step=float(world.params.sample(None, "forward_step")),
        carried=None if carried is None else carried.radius,
        arm=0.0 if carried is None else 1.05 * (radius + carried.radius + longest),
    )


class KitPlanner:
    """Chooses the next health kit so that no leg of the tour ahead is long.

    The nearest kit may lead into a bare corner.
    """

    _legs_ahead = 6
    _branches = 4  # nearest kits that are tried as the next leg
    _mean_turns = 4.0  # guess for the turns before a later leg, in steps

    def __init__(self, world: Any) -> None:
        self.world = world
        self._kits: tuple[Circle, ...] = ()
        self._choice: list[Any] = []

    def next_kits(self) -> list[Any]:
        """Return the kits to fetch one of; the choice stands until a kit moves."""
        kits = [entity for entity in self.world.entities if entity is not self.world.agent]
        circles = tuple(circle(kit) for kit in kits)
        if circles != self._kits:
            self._kits, self._choice = circles, [kits[self._choose(circles)]]
        return self._choice

    def settle_for_any(self) -> None:
        """Accept every kit until one moves."""
        self._choice = [entity for entity in self.world.entities if entity is not self.world.agent]

    def _choose(self, circles: tuple[Circle, ...]) -> int:
        places = np.array([(x, z) for x, z, _ in circles])
        body, pose = _body(self.world), pose_of(self.world)
        hand = _REACH * body.radius

        # Steps of each leg: the way, and turns to its direction.
        between = np.linalg.norm(places[:, None] - places[None], axis=-1)
        legs = np.maximum(0.0, between - hand) / body.step + self._mean_turns
        way = places - (pose.x, pose.z)
        bearing = np.arctan2(-way[:, 1], way[:, 0]) - pose.heading
        turns = np.abs(np.angle(np.exp(1j * bearing))) / body.turn
        first = np.maximum(0.0, np.linalg.norm(way, axis=1) - hand) / body.step + turns
        return start_of_best_tour(first.tolist(), legs.tolist(), self._legs_ahead, self._branches)


def start_of_best_tour(first: list[float], legs: list[list[float]], length: int, branches: int) -> int:
    """Return the first of the `length` different stops whose longest leg is shortest."""
    order = [sorted(range(len(row)), key=row.__getitem__) for row in legs]

    def longest(stop: int, visited: tuple[int, ...], so_far: float, bound: float) -> float:
        if so_far >= bound or len(visited) == length:
            return so_far
        tried = 0
        for after in order[stop]:
            if after in visited or after == stop:
                continue
            cost = longest(after, (*visited, after), max(so_far, legs[stop][after]), bound)
            bound = min(bound, cost)
            tried += 1
            if tried == branches:
                break
        return bound if tried else so_far

    best, choice = math.inf, 0
    for stop in sorted(range(len(first)), key=first.__getitem__):
        cost = longest(stop, (stop,), first[stop], best)
        if cost < best:
            best, choice = cost, stop
    return choice
