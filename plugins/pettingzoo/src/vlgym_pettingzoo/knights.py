"""Knights, archers, zombies in PettingZoo's real-time game; its planners think that zombies walk straight down."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from vlgym.games.multi import Round
from vlgym.types import Image

from .art import BLUE, GREEN, GREY, INK, RED, WHITE, Canvas, Colour, draw_turn
from .base import GameAtOnce, game_prompt

STEP, TURN, FALL = 25, 10, 5
"""A player's step in pixels, its turn in degrees, and a zombie's way down in pixels, each in one frame."""

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
    """Return a score of an arrow's chance to hit a zombie that walks straight on or staggers."""
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
    """True if a swing that begins now hits a zombie that walks straight down, before that touches the knight."""
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


os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")  # the engine imports pygame, which would print a greeting

ACTIONS = {"forward": 0, "backward": 1, "turn left": 2, "turn right": 3, "attack": 4, "stay": 5}
"""Names of the engine's actions."""

ROLES = ("archer", "knight")
"""Names of the seats."""

FIRST_ZOMBIES = 4
"""Zombies that are on their way when the game begins."""

HOLD_FRAMES, SPAWN_DELAY = 3, 10
"""Frames of the engine that one decision holds for, and from one zombie to the next."""

_LEFT, _TOP, _SCALE, _X0 = 8.0, 36.0, 0.307, 40
_WIDE, _HIGH = 368.0, 221.0
_GROUND, _WALL = (236, 232, 220), (150, 140, 130)
_TINT = (176, 74, 150)
_MACE = (120, 84, 40)


class KnightsArchersZombies(GameAtOnce):
    """Knights, archers, zombies: an archer and a knight keep zombies from the bottom line, together.

    Goal: no zombie reaches the bottom line before the turns are over, and one of you stays alive. Seat 0 is the archer,
        who shoots arrows; seat 1 is the knight, who swings a mace at what is close.
    Observation: the ground from above: both players with names and the way they look, you in blue, zombies (Z), arrows,
        the mace, the line; below it a dial with your heading, and who can attack now (448 x 448 pixels by default). The
        text says which one you are, not where things are.
    Actions: `forward`, `backward` (75 pixels of the engine, where you look or away from it), `turn left`, `turn right`
        (30 degrees), `attack`, `stay`. Both act at once; each holds for three frames, which is five decisions a second
        at the engine's 15 frames.
    Reward: 1 for each zombie that is killed, by either; both are paid.
    Endings: terminated when a zombie reaches the line, or both are dead; truncated after 60 turns. Whom a zombie
        touches is dead, and the other goes on.
    Success: the line has held for 60 turns. `score` is the number of zombies killed.
    Splits: train, val and test differ by seed: where zombies come from and how they stagger, and the seat.
    Oracle: a planner: the archer weighs plans of turns, steps and a shot by how likely they hit; the knight looks three
        decisions ahead for a swing that hits. Both keep off zombies. Default opponent: the same.
    References: Terry et al., PettingZoo: Gym for Multi-Agent Reinforcement Learning, NeurIPS 2021. The engine is its
        `knights_archers_zombies_v11` with one archer and one knight. Ours: held actions, a zombie each
        ten frames (the engine: 20), four at the beginning, one reward for both, the end after 60
        turns; drawing, texts and planners.
    """

    at_once = False  # the dead do not act
    actions = tuple(ACTIONS)
    prompt = game_prompt("You defend a line.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Begin with a fresh engine: a reset of it leaves the time to the next zombie as it was."""
        self.engine = _load_engine()(spawn_delay=SPAWN_DELAY, num_archers=1, num_knights=1, max_cycles=10**9)
        self.engine.reset(seed=int(rng.integers(2**31)))
        self.bodies = [self.engine.agent_map[f"{name}_0"] for name in ROLES]
        self.rounds = self.killed = 0
        while len(self.engine.zombie_list) < FIRST_ZOMBIES:
            self._run_frame(dict.fromkeys((0, 1), "stay"))

    def movers(self) -> tuple[int, ...]:
        return () if self.engine.game_over else tuple(seat for seat in (0, 1) if self.bodies[seat].is_alive)

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        killed = sum(self._run_frame(moves) for _ in range(HOLD_FRAMES))
        self.killed += killed
        self.rounds += 1
        over = bool(self.engine.game_over)
        last = self.rounds >= self.max_turns  # a dead seat has had fewer turns
        return Round((float(killed), float(killed)), terminated=over, truncated=last and not over)

    def _run_frame(self, moves: Mapping[int, str]) -> int:
        """One frame of the engine, unless the game is over; return the zombies killed in it."""
        engine = self.engine
        zombies, frame = list(engine.zombie_list), engine.frames
        while not engine.game_over and engine.agents and engine.frames == frame:
            name = engine.agent_selection
            gone = engine.terminations[name]
            engine.step(None if gone else ACTIONS[moves[ROLES.index(name.split("_")[0])]])
        return sum(zombie not in engine.zombie_list for zombie in zombies)

    def goal(self, seat: int) -> str:
        yours = (
            "You are the archer: attack shoots an arrow where you look. It flies on until it hits a zombie. The "
            "bow is made ready by attacking on; that takes about a turn."
            if seat == 0
            else "You are the knight: attack swings a mace through the space in front of you, then you cannot act for "
            "about two turns. It only reaches what is very close."
        )
        degrees, pixels = TURN * HOLD_FRAMES, self.bodies[seat].speed * HOLD_FRAMES
        return (
            f"{yours} An archer and a knight, seen from above, keep zombies from the red line at the bottom. Zombies "
            "come from the top, walk down and stagger left and right. A zombie that touches a player kills it. All is "
            "lost when a zombie reaches the line, or both players are dead. forward and backward take you "
            f"{pixels} of the ground's 720 pixels along the way you look, turn left and turn right turn you by "
            f"{degrees} degrees. Both act at once, and the zombies do not wait. Hold the line for "
            f"{self.max_turns} turns. Each zombie killed pays 1 to both."
        )

    def tell(self, seat: int) -> str:
        return f"You are the {ROLES[seat]}. "

    def won(self, seat: int) -> bool:
        return not self.engine.game_over and self.rounds >= self.max_turns

    def points(self, seat: int) -> float | None:
        return float(self.killed)

    def details(self, seat: int) -> dict[str, Any]:
        alive = [bool(body.is_alive) for body in self.bodies]
        return {"role": ROLES[seat], "alive": alive[seat], "other_alive": alive[1 - seat], "killed": self.killed}

    def advise(self, seat: int) -> str | None:
        return choose(self.engine, self.bodies, seat, HOLD_FRAMES)

    def explain(self, seat: int, action: str) -> str:
        here, zombies = self.bodies[seat].rect.center, [_middle(zombie) for zombie in self.engine.zombie_list]
        if not zombies:
            return f"I see no zombie, so {action}"
        x, y = min(zombies, key=lambda zombie: math.dist(here, zombie))
        way = f"{'up' if y < here[1] else 'down'} {'right' if x > here[0] else 'left'}"
        return f"I see {len(zombies)} zombies, the nearest {way} of me, so {action}"

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the place in the picture of a point of the engine's screen, in layout units."""
        return _LEFT + (point[0] - _X0) * _SCALE, _TOP + point[1] * _SCALE

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        canvas.text(f"zombies killed: {self.killed}", _LEFT, 17, 16, anchor="lm", bold=0.3)
        left = max(0, self.max_turns - self.rounds)
        canvas.text(f"turns left: {left}", 264, 17, 14, anchor="rm")
        canvas.box(270, 10, 106, 14, WHITE, INK, 1)
        canvas.box(270, 10, 106 * left / self.max_turns, 14, BLUE, INK, 1)
        canvas.box(_LEFT, _TOP, _WIDE, _HIGH, _GROUND, INK, 1)
        for x in (_LEFT, self.at((1180, 0))[0]):
            canvas.box(x, _TOP, self.at((100, 0))[0] - _LEFT, _HIGH, _WALL, INK, 1)
        canvas.line([(_LEFT, _TOP + _HIGH), (_LEFT + _WIDE, _TOP + _HIGH)], RED, 4)
        for zombie in self.engine.zombie_list:
            x, y = self.at(zombie.rect.center)
            canvas.disc(x, y, 7.5, GREEN, INK, 1)
            canvas.text("Z", x, y, 10, WHITE, bold=0.3)
        for other in (1 - seat, seat):
            self._draw_body(canvas, other, seat)
        self._draw_panel(canvas, seat)
        draw_turn(canvas, self.movers(), seat)
        return canvas.finish()

    def _draw_body(self, canvas: Canvas, other: int, seat: int) -> None:
        body, tint = self.bodies[other], BLUE if other == seat else _TINT
        for weapon in body.weapons:
            x, y = self.at(weapon.rect.center)
            if other == 0:
                along = (weapon.direction[0] * 8, weapon.direction[1] * 8)
                canvas.line([(x - along[0], y - along[1]), (x + along[0], y + along[1])], INK, 2)
                canvas.disc(x + along[0], y + along[1], 2.5, RED, None)
            else:
                canvas.disc(x, y, 5, _MACE, INK, 1)
        x, y = self.at(body.rect.center)
        if not body.is_alive:
            for turn in (1, -1):
                canvas.line([(x - 6, y - 6 * turn), (x + 6, y + 6 * turn)], GREY, 3)
            return
        _draw_heading(canvas, (x, y), body.direction, 20, tint)
        canvas.disc(x, y, 8, tint, INK, 2)
        canvas.text(ROLES[other][0].upper(), x, y, 10, WHITE, bold=0.3)
        words = f"you ({ROLES[other]})" if other == seat else ROLES[other]
        if y > _TOP + _HIGH - 24:
            left = x < _LEFT + _WIDE / 2
            canvas.text(
                words, x + (13 if left else -13), min(y, _TOP + _HIGH - 14), 13, tint, "lm" if left else "rm", bold=0.4
            )
            return
        below = y + 17 if body.direction[1] < 0.3 else y - 17
        canvas.text(words, min(max(x, _LEFT + 48), _LEFT + _WIDE - 48), below, 13, tint, bold=0.4)

    def _draw_panel(self, canvas: Canvas, seat: int) -> None:
        body, middle = self.bodies[seat], (62.0, 307.0)
        canvas.disc(*middle, 42, WHITE, GREY, 2)
        for degrees in range(0, 360, 30):
            along = (math.sin(math.radians(degrees)), -math.cos(math.radians(degrees)))
            near = 32 if degrees % 90 == 0 else 37
            points = [(middle[0] + along[0] * far, middle[1] + along[1] * far) for far in (near, 42)]
            canvas.line(points, GREY, 2)
        if body.is_alive:
            _draw_heading(canvas, middle, body.direction, 34, BLUE)
        canvas.text("you look", middle[0], 359, 13)
        for row, other in enumerate((seat, 1 - seat)):
            y, who = 282 + 34 * row, "You" if other == seat else "Other"
            canvas.text(f"{who}: {ROLES[other]},", 124, y, 16, BLUE if other == seat else _TINT, "lm", bold=0.3)
            canvas.text(self._describe(other), 240, y, 16, INK, "lm")
        canvas.text("Z: zombie     red line: keep them off it", 124, 354, 13, GREY, "lm")

    def _describe(self, seat: int) -> str:
        """Return a player's condition: dead, ready to attack, or not ready."""
        body = self.bodies[seat]
        if not body.is_alive:
            return "dead"
        if body.timeout is None:
            return "can attack"
        return "not ready" if seat == 0 else "cannot act yet"


def _load_engine() -> Any:
    """Return the engine's class; its import leaves `sys.dont_write_bytecode` as it was."""
    before = sys.dont_write_bytecode
    try:
        from pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies import raw_env
    finally:
        sys.dont_write_bytecode = before
    return raw_env


def _draw_heading(canvas: Canvas, middle: tuple[float, float], along: Any, length: float, tint: Colour) -> None:
    """An arrow from a point in a direction (down is positive y)."""
    (x, y), across, down = middle, float(along[0]), float(along[1])
    tip = (x + across * length, y + down * length)
    canvas.line([middle, tip], tint, 3)
    wing = length / 4
    for turn in (1, -1):
        end = (tip[0] - (across + turn * down) * wing, tip[1] - (down - turn * across) * wing)
        canvas.line([tip, end], tint, 3)
