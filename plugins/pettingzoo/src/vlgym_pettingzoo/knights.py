"""Knights, archers, zombies in PettingZoo's real-time game, with planners."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from itertools import product
from operator import mul
from typing import Any

import numpy as np

from vlgym.games.multi import Round

from .base import BLUE, GREEN, GREY, INK, RED, WHITE, Canvas, GameAtOnce, game_prompt

HOLD_FRAMES, SPAWN_DELAY = 3, 10  # frames of a decision, and from one zombie to the next

# In pixels and degrees of the engine, and in one frame.
STEP, TURN, FALL, ARROW = 25, 10, 5, 45.0  # of a player, a player, a zombie, an arrow
SWING = (40, 20, 0, -20, -40, -60)  # degrees of the mace from the knight's heading, by frame
REACH, TOUCH = 32.0, 30.0  # from the knight to the mace; at which things overlap, in each direction
BOUNDS = (116, 16, 1164, 704)  # left, top, right and bottom of a player's middle
BOTTOM = 704.0  # a zombie whose middle is below this line has won
DEPTH, FAR = 3, 400.0  # decisions of the knight's look-ahead; the distance that matters in these

Point = tuple[float, float]


def _shoot(place: Point, heading: float, zombies: list[Point], weights: list[float]) -> str:
    """Return the first action of the best plan of turns, steps, turns back, waits, then a shot."""
    plans = [(0, 0, 0, wait) for wait in (0, 1, 2, 3, 5, 8)]
    for turn, steps in product(range(-3, 4), range(-4, 5)):
        if turn or steps:
            plans.append((turn, steps, 0, 0))
        if turn and steps:
            plans.append((turn, steps, -turn, 0))

    # A plan is worth its best hit, less the danger on the way.
    best, action = -math.inf, "stay"
    for turn, steps, back, wait in plans:
        end, time, danger = place, 0, 0.0
        for decision in range(abs(turn) + wait + abs(steps) + abs(back)):
            time += HOLD_FRAMES
            if abs(turn) <= decision - wait < abs(turn) + abs(steps):
                end = _walk(end, heading + turn * TURN * HOLD_FRAMES, 1 if steps > 0 else -1)
            danger += _danger(end, zombies, time)
        aim = heading + (turn + back) * TURN * HOLD_FRAMES
        hopes = [_hope(end, aim, zombie, time) for zombie in zombies]
        value = max(map(mul, weights, hopes)) * 0.985**time - danger
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


def _fight(place: Point, heading: float, zombies: list[Point]) -> str:
    """Return the first action of the way that soonest brings a zombie under the mace."""

    def urgency(zombie: Point) -> float:
        return _effort(place, heading, zombie) + 0.1 * (BOTTOM - zombie[1]) / FALL

    target = min(zombies, key=urgency)
    zombies = [zombie for zombie in zombies if math.dist(zombie, place) < FAR]
    best, action = -math.inf, "stay"
    for ways in product(("stay", "turn left", "turn right", "forward", "backward"), repeat=DEPTH):
        end, look, danger, first = place, heading, 0.0, ways[0]

        # The value of a way: of its first swing that hits, else of how near it comes to the target.
        for count in range(DEPTH + 1):
            later = [(x, y + FALL * count * HOLD_FRAMES) for x, y in zombies]
            left = [zombie for zombie in later if not _swing_hits(end, look, zombie)]
            if len(left) < len(later):
                danger += 60 * _danger(end, left, len(SWING))
                value = 100.0 + 20 * (len(later) - len(left)) - 10 * count - danger
                first = ways[0] if count else "attack"
                break
            if count < DEPTH:
                end, look = _act(end, look, ways[count])
                danger += 60 * _danger(end, zombies, (count + 1) * HOLD_FRAMES)
        else:
            time = DEPTH * HOLD_FRAMES
            value = -_effort(end, look, (target[0], target[1] + FALL * time)) - danger
        if value > best + 1e-9:
            best, action = value, first
        if action == "attack" and first == "attack":
            break
    return action


def _act(place: Point, heading: float, action: str) -> tuple[Point, float]:
    if action.startswith("turn"):
        return place, heading + (TURN if action == "turn right" else -TURN) * HOLD_FRAMES
    if action == "stay":
        return place, heading
    return _walk(place, heading, 1 if action == "forward" else -1), heading


def _effort(place: Point, heading: float, zombie: Point) -> float:
    """Return about how many frames it takes to turn to a zombie and get at it."""
    away = math.degrees(math.atan2(zombie[0] - place[0], place[1] - zombie[1]))
    angle = abs((away - heading + 180) % 360 - 180)
    return angle / TURN + max(0.0, math.dist(place, zombie) - 55) / STEP


def _swing_hits(place: Point, heading: float, zombie: Point) -> bool:
    """True if a swing that begins now hits a zombie before that touches the knight."""
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
    """Return the unit vector of a heading in degrees, 0 is up; down is positive y."""
    return math.sin(math.radians(heading)), -math.cos(math.radians(heading))


def _walk(place: Point, heading: float, sign: int) -> Point:
    across, down = _along(heading)
    x = place[0] + sign * HOLD_FRAMES * round(across * STEP)
    y = place[1] + sign * HOLD_FRAMES * round(down * STEP)
    return min(max(x, BOUNDS[0]), BOUNDS[2]), min(max(y, BOUNDS[1]), BOUNDS[3])


def _danger(place: Point, zombies: list[Point], time: int) -> float:
    """Return the danger that a zombie touches a player there and then."""
    near = 0.0
    for x, y in zombies:
        across, down = abs(x - place[0]), abs(y + FALL * time - place[1])
        if across < 62 and down < 42:
            near += 2.0 if across < 34 else 0.8
    return near


os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")  # pygame prints it

ACTIONS = {"forward": 0, "backward": 1, "turn left": 2, "turn right": 3, "attack": 4, "stay": 5}
ROLES = ("archer", "knight")  # by seat
FIRST_ZOMBIES = 4  # on their way when the game begins

_LEFT, _TOP, _SCALE, _X0 = 8.0, 36.0, 0.307, 40
_WIDE, _HIGH = 368.0, 221.0
_GROUND, _WALL, _TINT, _MACE = (236, 232, 220), (150, 140, 130), (176, 74, 150), (120, 84, 40)


class KnightsArchersZombies(GameAtOnce):
    """Knights, archers, zombies: an archer and a knight keep zombies from the bottom line.

    Goal: no zombie reaches the bottom line before the turns are over, and one of you stays alive.
        Seat 0 is the archer, who shoots arrows; seat 1 the knight, who swings a mace.
    Observation: the ground from above: both players with names and the way they look, you in blue,
        zombies (Z), arrows, the mace, the line; below it a dial with your heading, and who can
        attack now. The text tells your role, not where things are.
    Actions: `forward`, `backward` (75 pixels of the engine, where you look or away from it), `turn
        left`, `turn right` (30 degrees), `attack`, `stay`. Both act at once; each action holds for
        three frames, a fifth of a second in the engine.
    Reward: 1 for each zombie that is killed, by either; both are paid.
    Endings: terminated when a zombie reaches the line, or both are dead; truncated after 60 turns.
        A zombie's touch kills a player, and the other goes on.
    Success: the line has held for 60 turns. `score` is the number of zombies killed.
    Splits: train, val and test differ by seed: zombies' places and steps, and the seat.
    Oracle: a planner: the archer weighs plans of turns, steps and a shot by how likely they hit;
        the knight looks three decisions ahead for a swing that hits. Default opponent: the same.
    References: PettingZoo's `knights_archers_zombies_v11`. Ours: actions that hold, a zombie each
        ten frames (its: 20), four at the beginning, one reward for both, the end after 60 turns.
    """

    at_once = False  # the dead do not act
    actions = tuple(ACTIONS)
    prompt = game_prompt("You defend a line.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        # A reset would leave the engine's time to the next zombie as it was.
        make_engine = _load_engine()
        self.engine = make_engine(spawn_delay=SPAWN_DELAY, num_archers=1, num_knights=1, max_cycles=10**9)
        self.engine.reset(seed=int(rng.integers(2**31)))
        self.bodies = [self.engine.agent_map[f"{name}_0"] for name in ROLES]
        self.rounds = self.killed = 0
        while len(self.engine.zombie_list) < FIRST_ZOMBIES:
            self._run_frame(dict.fromkeys((0, 1), "stay"))

    def movers(self) -> tuple[int, ...]:
        alive = tuple(seat for seat in (0, 1) if self.bodies[seat].is_alive)
        return () if self.engine.game_over else alive

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        killed = float(sum(self._run_frame(moves) for _ in range(HOLD_FRAMES)))
        self.killed += int(killed)
        self.rounds += 1
        over = bool(self.engine.game_over)
        last = self.rounds >= self.max_turns  # a dead seat has had fewer turns
        return Round((killed, killed), terminated=over, truncated=last and not over)

    def _run_frame(self, moves: Mapping[int, str]) -> int:
        """Run one frame of the engine, unless the game is over; return the zombies killed in it."""
        engine = self.engine
        zombies, frame = list(engine.zombie_list), engine.frames
        while not engine.game_over and engine.agents and engine.frames == frame:
            name = engine.agent_selection
            seat = ROLES.index(name.split("_")[0])
            engine.step(None if engine.terminations[name] else ACTIONS[moves[seat]])
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
        me, mate = self.bodies[seat], self.bodies[1 - seat]
        place, zombies = _middle(me), [_middle(zombie) for zombie in self.engine.zombie_list]
        heading = math.degrees(math.atan2(me.direction[0], -me.direction[1]))
        if not zombies:
            return "stay" if abs(heading) < 15 else "turn left" if heading > 0 else "turn right"
        if seat == 1:
            return _fight(place, heading, zombies)

        # The lower a zombie, the more it matters; half if the knight is nearer to it.
        weights = []
        for spot in zombies:
            nearer = mate.is_alive and math.dist(spot, mate.rect.center) < math.dist(spot, place)
            weights.append((0.3 + (max(0.0, spot[1]) / BOTTOM) ** 2) * (0.5 if nearer else 1.0))
        return _shoot(place, heading, zombies, weights)

    def explain(self, seat: int, action: str) -> str:
        here = self.bodies[seat].rect.center
        zombies = [_middle(zombie) for zombie in self.engine.zombie_list]
        if not zombies:
            return f"I see no zombie, so {action}"
        x, y = min(zombies, key=lambda zombie: math.dist(here, zombie))
        way = f"{'up' if y < here[1] else 'down'} {'right' if x > here[0] else 'left'}"
        return f"I see {len(zombies)} zombies, the nearest {way} of me, so {action}"

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Return the place in the picture of a point of the engine's screen, in layout units."""
        return _LEFT + (point[0] - _X0) * _SCALE, _TOP + point[1] * _SCALE

    def paint(self, canvas: Canvas, seat: int) -> None:
        self.draw_headline(canvas, f"zombies killed: {self.killed}", _LEFT, 106)
        canvas.box(_LEFT, _TOP, _WIDE, _HIGH, _GROUND, INK, 1)
        for x in (_LEFT, self.at((1180, 0))[0]):
            canvas.box(x, _TOP, self.at((100, 0))[0] - _LEFT, _HIGH, _WALL, INK, 1)
        canvas.line([(_LEFT, _TOP + _HIGH), (_LEFT + _WIDE, _TOP + _HIGH)], RED, 4)

        # Zombies, then players, the own one last and so on top.
        for zombie in self.engine.zombie_list:
            x, y = self.at(zombie.rect.center)
            canvas.disc(x, y, 7.5, GREEN, INK, 1)
            canvas.text("Z", x, y, 10, WHITE, bold=0.3)
        for other in (1 - seat, seat):
            self._draw_body(canvas, other, seat)
        self._draw_panel(canvas, seat)

    def _draw_body(self, canvas: Canvas, other: int, seat: int) -> None:
        body, tint = self.bodies[other], BLUE if other == seat else _TINT
        # Arrows fly on after their archer's death.
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
            canvas.cross(x, y, 6, GREY, 3)
            return
        canvas.arrow((x, y), body.direction, 20, tint, (5, 5))
        canvas.disc(x, y, 8, tint, INK, 2)
        canvas.text(ROLES[other][0].upper(), x, y, 10, WHITE, bold=0.3)

        # The name stands next to a player at the line, else below or above, inside the ground.
        words = f"you ({ROLES[other]})" if other == seat else ROLES[other]
        anchor = "mm"
        if y > _TOP + _HIGH - 24:
            shift, anchor = (13, "lm") if x < _LEFT + _WIDE / 2 else (-13, "rm")
            x, y = x + shift, min(y, _TOP + _HIGH - 14)
        else:
            x = min(max(x, _LEFT + 48), _LEFT + _WIDE - 48)
            y += 17 if body.direction[1] < 0.3 else -17
        canvas.text(words, x, y, 13, tint, anchor, bold=0.4)

    def _draw_panel(self, canvas: Canvas, seat: int) -> None:
        body, middle = self.bodies[seat], (62.0, 307.0)
        canvas.disc(*middle, 42, WHITE, GREY, 2)
        for degrees in range(0, 360, 30):
            across, down = _along(degrees)
            near = 32 if degrees % 90 == 0 else 37
            ends = [(middle[0] + across * far, middle[1] + down * far) for far in (near, 42)]
            canvas.line(ends, GREY, 2)
        if body.is_alive:
            canvas.arrow(middle, body.direction, 34, BLUE, (8.5, 8.5))
        canvas.text("you look", middle[0], 359, 13)
        for row, other in enumerate((seat, 1 - seat)):
            y = 282 + 34 * row
            who, tint = ("You", BLUE) if other == seat else ("Other", _TINT)
            canvas.text(f"{who}: {ROLES[other]},", 124, y, 16, tint, "lm", bold=0.3)
            body = self.bodies[other]
            busy = "can attack" if body.timeout is None else ("not ready", "cannot act yet")[other]
            canvas.text(busy if body.is_alive else "dead", 240, y, 16, INK, "lm")
        canvas.text("Z: zombie     red line: keep them off it", 124, 354, 13, GREY, "lm")


def _load_engine() -> Any:
    """Return the engine's class; its import leaves `sys.dont_write_bytecode` as it was."""
    before = sys.dont_write_bytecode
    try:
        from pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies import raw_env
    finally:
        sys.dont_write_bytecode = before
    return raw_env
