"""Planners for the archer and the knight. Both think that zombies walk straight down; in truth they stagger."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

STEP, TURN, FALL = 25, 10, 5
"""Of one frame: a player's step in pixels, its turn in degrees, and the pixels that a zombie comes down."""

ARROW = 45.0
"""Pixels that an arrow flies in a frame."""

SWING = (40, 20, 0, -20, -40, -60)
"""Degrees of the mace from where the knight looks, frame by frame."""

REACH, TOUCH = 32.0, 30.0
"""Pixels from the knight to the mace, and at which two things overlap, in each direction."""

BOUNDS = (116, 16, 1164, 704)
"""Left, top, right and bottom of where a player's middle can be."""

BOTTOM = 704.0
"""A zombie whose middle is below this line has won."""

DEPTH, FAR = 3, 400.0
"""Decisions that the knight looks ahead, and the pixels from which on no zombie matters in these."""

Point = tuple[float, float]


def choose(engine: Any, bodies: list[Any], seat: int, frames: int) -> str:
    """Return the action of a seat, 0 for the archer and 1 for the knight."""
    me, mate = bodies[seat], bodies[1 - seat]
    zombies = [_middle(zombie) for zombie in engine.zombie_list]
    place = _middle(me)
    heading = math.degrees(math.atan2(me.direction[0], -me.direction[1]))
    if not zombies:
        return "stay" if abs(heading) < 15 else "turn left" if heading > 0 else "turn right"
    if seat == 1:
        return _fight(place, heading, zombies, frames)
    weights = []
    for x, y in zombies:
        nearer = mate.is_alive and math.dist((x, y), mate.rect.center) < math.dist((x, y), place)
        weights.append((0.3 + (max(0.0, y) / BOTTOM) ** 2) * (0.5 if nearer else 1.0))
    return _shoot(place, heading, zombies, weights, frames)


def _shoot(place: Point, heading: float, zombies: list[Point], weights: list[float], frames: int) -> str:
    """The first action of the plan (turns, steps, turns back, waits, then a shot) that is worth most."""
    plans = [(0, 0, 0, wait) for wait in (0, 1, 2, 3, 5, 8)]
    for turn, steps in product(range(-3, 4), range(-4, 5)):
        if turn or steps:
            plans.append((turn, steps, 0, 0))
        if turn and steps:
            plans.append((turn, steps, -turn, 0))
    best, action = -math.inf, "stay"
    for turn, steps, back, wait in plans:
        end, time, danger = place, 0, 0.0
        for decision in range(abs(turn) + wait + abs(steps) + abs(back)):
            time += frames
            if abs(turn) <= decision - wait < abs(turn) + abs(steps):
                end = _walk(end, heading + turn * TURN * frames, 1 if steps > 0 else -1, frames)
            danger += _danger(end, zombies, time)
        aim = heading + (turn + back) * TURN * frames
        hope = max(weight * _hope(end, aim, zombie, time) for zombie, weight in zip(zombies, weights, strict=True))
        value = hope * 0.985**time - danger
        if value > best + 1e-9:
            best, action = value, _first(turn, steps, wait)
    return action


def _first(turn: int, steps: int, wait: int) -> str:
    if turn:
        return "turn right" if turn > 0 else "turn left"
    if steps:
        return "forward" if steps > 0 else "backward"
    return "stay" if wait else "attack"


def _hope(place: Point, aim: float, zombie: Point, time: int) -> float:
    """How likely an arrow hits: by how much it misses a zombie that walks straight on, and how far that may stagger."""
    x, y = zombie[0] - place[0], zombie[1] + FALL * time - place[1]
    across, down = (ARROW * part for part in _along(aim))
    down -= FALL
    flight = min(30.0, max(1.0, (x * across + y * down) / (across * across + down * down)))
    away = max(0.0, math.hypot(x - across * flight, y - down * flight) - 20)
    spread = 30 + 12 * math.sqrt(time + flight)
    return (30 / spread) ** 0.5 / (1 + (away / spread) ** 2)


def _fight(place: Point, heading: float, zombies: list[Point], frames: int) -> str:
    """The first action of the way that brings a zombie under the mace soonest, and none too near."""
    target = min(zombies, key=lambda zombie: _effort(place, heading, zombie) + 0.1 * (BOTTOM - zombie[1]) / FALL)
    zombies = [zombie for zombie in zombies if math.dist(zombie, place) < FAR]
    best, action = -math.inf, "stay"
    for ways in product(("stay", "turn left", "turn right", "forward", "backward"), repeat=DEPTH):
        end, look, danger, first = place, heading, 0.0, ways[0]
        for count in range(DEPTH + 1):
            later = [(x, y + FALL * count * frames) for x, y in zombies]
            left = [zombie for zombie in later if not _swing_hits(end, look, zombie)]
            if len(left) < len(later):
                danger += 60 * _danger(end, left, len(SWING))
                value = 100.0 + 20 * (len(later) - len(left)) - 10 * count - danger
                first = ways[0] if count else "attack"
                break
            if count < DEPTH:
                end, look = _act(end, look, ways[count], frames)
                danger += 60 * _danger(end, zombies, (count + 1) * frames)
        else:
            time = DEPTH * frames
            value = -_effort(end, look, (target[0], target[1] + FALL * time)) - danger
        if value > best + 1e-9:
            best, action = value, first
        if action == "attack" and first == "attack":
            break
    return action


def _act(place: Point, heading: float, action: str, frames: int) -> tuple[Point, float]:
    if action.startswith("turn"):
        return place, heading + (TURN if action == "turn right" else -TURN) * frames
    if action == "stay":
        return place, heading
    return _walk(place, heading, 1 if action == "forward" else -1, frames), heading


def _effort(place: Point, heading: float, zombie: Point) -> float:
    """About how many frames it takes to turn to a zombie and get at it."""
    away = math.degrees(math.atan2(zombie[0] - place[0], place[1] - zombie[1]))
    angle = abs((away - heading + 180) % 360 - 180)
    return angle / TURN + max(0.0, math.dist(place, zombie) - 55) / STEP


def _swing_hits(place: Point, heading: float, zombie: Point) -> bool:
    """Whether a swing that begins now hits a zombie that walks straight down, before that touches the knight."""
    if math.dist(place, zombie) > 120:
        return False
    for frame, degrees in enumerate(SWING):
        across, down = _along(heading + degrees)
        x, y = zombie[0] - place[0], zombie[1] + FALL * frame - place[1]
        if abs(x - across * REACH) < TOUCH - 3 and abs(y - down * REACH) < TOUCH - 3:
            return True
        if abs(x) < TOUCH and abs(y) < TOUCH:
            return False
    return False


def _middle(thing: Any) -> Point:
    return float(thing.rect.centerx), float(thing.rect.centery)


def _along(heading: float) -> Point:
    """The unit vector of a heading in degrees, 0 is up; down is positive y."""
    return math.sin(math.radians(heading)), -math.cos(math.radians(heading))


def _walk(place: Point, heading: float, sign: int, frames: int) -> Point:
    across, down = _along(heading)
    x, y = place[0] + sign * frames * round(across * STEP), place[1] + sign * frames * round(down * STEP)
    return min(max(x, BOUNDS[0]), BOUNDS[2]), min(max(y, BOUNDS[1]), BOUNDS[3])


def _danger(place: Point, zombies: list[Point], time: int) -> float:
    """The danger that one of the zombies touches a player there and then."""
    near = 0.0
    for x, y in zombies:
        across, down = abs(x - place[0]), abs(y + FALL * time - place[1])
        if across < 62 and down < 42:
            near += 2.0 if across < 34 else 0.8
    return near
