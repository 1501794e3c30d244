"""Spread and tag on MPE2's engine: pushes, frames of a turn, a field drawn from above."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from itertools import combinations, permutations
from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_number
from vlgym.games.multi import Round

from .base import BLUE, GREEN, GREY, INK, RED, WHITE, Canvas, Colour, GameAtOnce, game_prompt

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")  # which pygame, mpe2's import, prints

PUSHES = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0), "stay": (0, 0)}  # y is up
_CODES = {"stay": 0, "left": 1, "right": 2, "down": 3, "up": 4}  # the engine's
DT, DAMPING = 0.1, 0.25  # seconds of the engine's frame, and the part of the speed lost in each
_LEFT, _TOP, _SIDE = 26.0, 32.0, 332.0

Point = tuple[float, float]
Motion = tuple[Point, Point]  # place and speed


class ParticleGame(GameAtOnce):
    """Discs on a field that push themselves, all at once; a decision is `frame_skip` frames."""

    actions = tuple(PUSHES)
    reach: ClassVar[float] = 1.25  # the picture shows x and y from -reach to reach
    frames: ClassVar[int] = 1
    prompt = game_prompt("You move on a field.")
    ground = (226, 224, 216)

    def __init__(self, *, frame_skip: int | None = None, **kwargs: Any) -> None:
        self.frame_skip = self.frames if frame_skip is None else frame_skip
        check_number("frame_skip", self.frame_skip, least=1, most=20)
        self.engine = self.make_engine()
        super().__init__(**kwargs)

    def make_engine(self) -> Any:
        """Return MPE2's environment, without a turn limit."""
        raise NotImplementedError

    def fits(self) -> bool:
        """True if the engine's deal can be played."""
        raise NotImplementedError

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.rounds = 0
        while True:
            self.engine.reset(seed=int(rng.integers(2**31)))
            if self.fits():
                return

    def body_of(self, seat: int) -> Any:
        return self.engine.world.agents[seat]

    def glide(self, seat: int, push: Point, motion: Motion) -> Motion:
        """Return a seat's motion after a turn that begins with a push; it touches nothing."""
        (x, y), (across, up), body = *motion, self.body_of(seat)
        right, upward = push[0] * body.accel, push[1] * body.accel
        for _ in range(self.frame_skip):
            x, y = x + across * DT, y + up * DT
            across, up = across * (1 - DAMPING) + right * DT, up * (1 - DAMPING) + upward * DT
            fast = math.hypot(across, up)
            if body.max_speed is not None and fast > body.max_speed:
                across, up = across / fast * body.max_speed, up / fast * body.max_speed
        return (x, y), (across, up)

    def run_frame(self, moves: Mapping[int, str]) -> list[float]:
        """Run one frame of the engine; return the pay of each seat."""
        for seat in range(self.seats):
            self.engine.step(_CODES[moves[seat]])
        return [float(self.engine.rewards[name]) for name in self.engine.possible_agents]

    def at(self, point: Any) -> Point:
        """Return the place in the picture of a point of the field, in layout units."""
        (x, y), scale = point, _SIDE / (2 * self.reach)
        return _LEFT + (float(x) + self.reach) * scale, _TOP + (self.reach - float(y)) * scale

    def way_to(self, seat: int, point: Any) -> str:
        """Return in words where a point of the field lies from a seat's disc: `up left`."""
        across, up = point - self.body_of(seat).state.p_pos
        return f"{'up' if up > 0 else 'down'} {'right' if across > 0 else 'left'}"

    def long(self, length: float) -> float:
        """Return a length of the field in layout units."""
        return length * _SIDE / (2 * self.reach)

    def draw_field(self, canvas: Canvas, headline: str, side: float) -> None:
        """Draw a field with a square of this half side, and the line at the top."""
        canvas.box(_LEFT, _TOP, _SIDE, _SIDE, (238, 236, 228), GREY, 1)
        x, y = self.at((-side, side))
        canvas.box(x, y, self.long(2 * side), self.long(2 * side), WHITE, INK, 2)
        self.draw_headline(canvas, headline, _LEFT, 94)

    def draw_body(self, canvas: Canvas, body: Any, tint: Colour, label: str, name: str) -> None:
        """Draw an agent with an arrow along its glide; one outside on the edge, arrow outwards."""
        place, speed = body.state.p_pos, body.state.p_vel
        inside = np.clip(place, -self.reach * 0.94, self.reach * 0.94)
        (x, y), radius = self.at(inside), self.long(body.size)
        gone = bool(np.any(inside != place))
        canvas.disc(x, y, radius, tint, INK, 2)

        # The arrow begins at the disc's edge.
        across, up = (place - inside) if gone else speed * DT / DAMPING
        length = self.long(math.hypot(across, up))
        if length > 2:
            along = float(across) * self.long(1) / length, -float(up) * self.long(1) / length
            start = (x + along[0] * radius, y + along[1] * radius)
            canvas.arrow(start, along, min(length, 24.0) if gone else length, tint, (6, 4))
        canvas.text(label, x, y, max(11, radius * 1.1), WHITE, bold=0.3)
        if not name:
            return

        # The name stands above or below, where no other disc covers it.
        lines = above, below = y - radius - 9, y + radius + 9
        others = [self.at(each.state.p_pos) for each in self.engine.world.agents if each is not body]
        away = [min(math.dist((x, line), other) for other in others) for line in lines]
        free_above, free_below = (least > radius + 12 for least in away)
        equal = free_above == free_below and speed[1] <= 0.05
        line = above if above > _TOP + 8 and (free_above > free_below or equal) else below
        canvas.text(name, x, line, 14, tint, bold=0.4)


def distance(one: Any, other: Any) -> float:
    """Return the distance of two of the engine's things."""
    return math.dist(one.state.p_pos, other.state.p_pos)


def motion_of(body: Any) -> Motion:
    return tuple(body.state.p_pos.tolist()), tuple(body.state.p_vel.tolist())


PUSH = 5.0  # the engine's acceleration of a push that lasts one frame; a turn's frames share it
APART = 0.5  # least distance of two landmarks: agents that stand on them do not touch
COVERS = 0.15  # an agent within this distance, its radius, covers a landmark

_TINTS = ((196, 84, 20), (130, 60, 160), (90, 90, 98))


class MPESpread(ParticleGame):
    """Spread: three agents must stand on three landmarks, one on each.

    Goal: cover all three landmarks at once. An agent's disc covers one whose middle lies under it.
    Observation: the field from above: numbered agents, you in blue, arrows to where each comes to
        rest without a push, lettered landmarks (green when covered), and the turns that are left.
        The text does not tell where things are.
    Actions: `up`, `down`, `left`, `right` (push yourself that way), `stay`. All push at once.
        Agents glide on after a push, and bump into each other.
    Reward: the engine's, the same for all: minus the sum of the landmarks' distances to the nearest
        agent, as the mean over the frames of a turn.
    Endings: terminated when all are covered at the end of a turn; truncated after 25 turns.
    Success: all three landmarks are covered. `score` is the number of those that are.
    Splits: train, val and test differ by seed: all places, and the seat.
    Oracle: a planner: it shares out landmarks by the least sum of ways, and pushes so that it comes
        to rest on its own. Default opponents: the same.
    References: Lowe et al., 2017; MPE2's `simple_spread_v3` with `local_ratio=0`. Ours: the four
        frames of a turn share the engine's push; landmarks lie at least 0.5 apart; the end when all
        are covered, by an agent's radius.

    Args:
        frame_skip: frames of the engine that one decision holds for; they share one push.
    """

    seats = 3
    symmetric: ClassVar[bool] = True
    frames: ClassVar[int] = 4

    def make_engine(self) -> Any:
        from mpe2 import simple_spread_v3

        engine = simple_spread_v3.raw_env(local_ratio=0.0, max_cycles=10**9)
        for body in engine.world.agents:
            body.accel = PUSH / self.frame_skip
        return engine

    def fits(self) -> bool:
        self.flipped = False
        world = self.engine.world
        gaps = [distance(*pair) for pair in combinations(world.landmarks, 2)]
        bumps = [distance(*pair) for pair in combinations(world.agents, 2)]
        return min(gaps) >= APART and min(bumps) > 2 * COVERS and not all(self.covered())

    def number_of(self, seat: int) -> int:
        return self.seats - seat if self.flipped else seat + 1

    def covered(self) -> list[bool]:
        """Tell for each landmark if it is covered."""
        agents, marks = self.engine.world.agents, self.engine.world.landmarks
        return [min(distance(body, mark) for body in agents) < COVERS for mark in marks]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        paid = [self.run_frame(moves) for _ in range(self.frame_skip)]
        self.rounds += 1
        return Round(tuple(np.mean(paid, axis=0).tolist()), terminated=self.ended())

    def ended(self) -> bool:
        return all(self.covered())

    def goal(self, seat: int) -> str:
        return (
            "Three agents, seen from above, must cover three landmarks: an agent's disc must lie over the middle of "
            "each, so every agent takes another landmark. You cannot speak with the others. up, down, left and right "
            "push you that way as you see the field, stay does not push. You glide on after a push and slow down; the "
            "arrow shows where you come to rest without another push. Agents bump into each other. All push at once. "
            f"There are {self.max_turns} turns. You all lose points each turn for the distance from every landmark to "
            "the agent next to it. The game ends well when all three are covered."
        )

    def tell(self, seat: int) -> str:
        return f"You are agent {self.number_of(seat)}. "

    def won(self, seat: int) -> bool:
        return self.ended()

    def points(self, seat: int) -> float | None:
        return float(sum(self.covered()))

    def details(self, seat: int) -> dict[str, Any]:
        away = distance(self.body_of(seat), self.mark_of(seat))
        return {"covered": sum(self.covered()), "distance": round(away, 6)}

    def mark_of(self, seat: int) -> Any:
        return self.engine.world.landmarks[self.share()[seat]]

    def share(self) -> tuple[int, ...]:
        """Return the landmark of each seat by the least sum of ways from their places of rest."""
        marks = [mark.state.p_pos for mark in self.engine.world.landmarks]
        states = [body.state for body in self.engine.world.agents]
        rests = [state.p_pos + state.p_vel * DT / DAMPING for state in states]
        away = [[math.dist(rest, mark) for mark in marks] for rest in rests]

        def ways(taken: tuple[int, ...]) -> float:
            return sum(away[seat][mark] for seat, mark in enumerate(taken))

        return min(permutations(range(self.seats)), key=ways)

    def advise(self, seat: int) -> str | None:
        mark, motion = self.mark_of(seat).state.p_pos, motion_of(self.body_of(seat))

        def miss(action: str) -> float:
            (x, y), (across, up) = self.glide(seat, PUSHES[action], motion)
            return math.dist((x + across * DT / DAMPING, y + up * DT / DAMPING), mark)

        return min(reversed(PUSHES), key=miss)

    def explain(self, seat: int, action: str) -> str:
        way = self.way_to(seat, self.mark_of(seat).state.p_pos)
        return f"landmark {'ABC'[self.share()[seat]]} is mine, {way}, so {action}"

    def mirror(self) -> None:
        first, last = self.engine.world.agents[0].state, self.engine.world.agents[-1].state
        first.p_pos, last.p_pos = last.p_pos, first.p_pos
        first.p_vel, last.p_vel = last.p_vel, first.p_vel
        self.flipped = True

    def paint(self, canvas: Canvas, seat: int) -> None:
        covered = self.covered()
        self.draw_field(canvas, f"covered: {sum(covered)} of 3", 1.0)

        # A scale at the bottom left: the way of one push.
        left, y = _LEFT + 10, _TOP + _SIDE - 11
        right = left + self.long(PUSH * DT * DT / DAMPING)
        canvas.line([(left, y), (right, y)], INK, 2)
        for x in (left, right):
            canvas.line([(x, y - 4), (x, y + 4)], INK, 2)
        canvas.text("how far one push takes you", right + 8, y, 12, INK, "lm")

        # Agents are drawn between a landmark's ring and its letter, the own one last.
        marks = [
            (letter, *self.at(mark.state.p_pos), GREEN if done else INK)
            for letter, mark, done in zip("ABC", self.engine.world.landmarks, covered, strict=True)
        ]
        for _, x, y, tint in marks:
            canvas.disc(x, y, self.long(COVERS) + 4, None, tint, 3)
        numbers = {other: self.number_of(other) for other in range(self.seats)}
        for other in sorted(numbers, key=lambda each: (each == seat, numbers[each])):
            tint = BLUE if other == seat else _TINTS[numbers[other] - 1]
            label, name = str(numbers[other]), "you" if other == seat else ""
            self.draw_body(canvas, self.body_of(other), tint, label, name)
        for letter, x, y, tint in marks:
            canvas.line([(x - 5, y), (x + 5, y)], tint, 2)
            canvas.line([(x, y - 5), (x, y + 5)], tint, 2)
            x, y = x + self.long(COVERS), y + self.long(COVERS)
            canvas.box(x - 2, y - 8, 16, 16, tint, WHITE, 1, 4)
            canvas.text(letter, x + 6, y, 13, WHITE, bold=0.3)


RUNNER = 2  # the runner's seat; the chasers have seats 0 and 1
FIELD = 1.0  # the field reaches from -FIELD to FIELD; who runs must stay in it
START = 0.8  # least distance of a chaser from the runner at the beginning
SCALE = 10.0  # the engine pays this for a touch; here a touch is worth 1

_OTHER, _ROCK = (214, 92, 40), (92, 94, 104)


class MPETag(ParticleGame):
    """Tag: two chasers want to touch a runner, who is smaller and faster, among two rocks.

    Goal: seats 0 and 1 are the chasers: touch the runner before the turns are over, or drive it out
        of the field. Seat 2 is the runner: be neither touched nor leave the field.
    Observation: the field from above: numbered chasers, the runner R, your disc in blue, an arrow
        for the speed of each, rocks, and the turns that are left. The text tells your disc alone.
    Actions: `up`, `down`, `left`, `right` (push yourself that way), `stay`. All push at once. Discs
        glide on after a push, and bump into rocks and each other.
    Reward: a tenth of the engine's: for each frame of a touch 1 to both chasers and -1 to the
        runner for each chaser that touches it; the runner also loses near the field's edge. A
        runner who leaves the field pays, and both chasers earn, as for a touch.
    Endings: terminated by a touch, or when the runner leaves the field; truncated after 25 turns.
    Success: of a chaser, that the game ended by the rules; of the runner, that it lasted 25 turns.
        `score` is the number of turns that the runner has lasted.
    Splits: train, val and test differ by seed: all places, and the seat.
    Oracle: a planner: the runner looks two turns ahead for the way on which it keeps clear; the
        chasers head for where it can be met, from two sides. The opponent `search` runs from, or
        straight at, where the others are now. Default opponents: the oracle.
    References: Lowe et al., 2017; MPE2's `simple_tag_v3` with two chasers. Ours: a turn lasts two
        frames; the game ends with a touch or beyond the edge; chasers begin at least 0.8 away,
        nobody on a rock, and rocks lie apart.

    Args:
        frame_skip: frames of the engine that one decision holds for.
    """

    seats = 3
    frames: ClassVar[int] = 2
    reach: ClassVar[float] = 1.15

    def make_engine(self) -> Any:
        from mpe2 import simple_tag_v3

        return simple_tag_v3.raw_env(num_good=1, num_adversaries=2, num_obstacles=2, max_cycles=10**9)

    def fits(self) -> bool:
        self.caught = self.left = False
        agents, rocks = self.engine.world.agents, self.engine.world.landmarks
        runner = agents[RUNNER]
        pairs = [(body, rock) for body in agents for rock in rocks]
        return (
            distance(*rocks) >= rocks[0].size + rocks[1].size + 0.02
            and all(distance(*pair) - pair[0].size - pair[1].size > 0.02 for pair in pairs)
            and min(distance(body, runner) for body in agents[:RUNNER]) >= START
            and distance(*agents[:RUNNER]) > 0.2
            and float(np.max(np.abs(runner.state.p_pos))) < 0.85
        )

    def ended(self) -> bool:
        return self.caught or self.left

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        paid = np.zeros(self.seats)
        for _ in range(self.frame_skip):
            paid += self.run_frame(moves)
            runner = self.body_of(RUNNER)
            chasers = self.engine.world.agents[:RUNNER]
            self.caught = any(distance(body, runner) < body.size + runner.size for body in chasers)
            self.left = bool(np.max(np.abs(runner.state.p_pos)) > FIELD)
            if self.left and not self.caught:
                paid += (SCALE, SCALE, -SCALE)
            if self.ended():
                break
        self.rounds += 1
        return Round(tuple((paid / SCALE).tolist()), terminated=self.ended())

    def goal(self, seat: int) -> str:
        yours = (
            "You are the runner, a small disc marked R. Keep away from both chasers, and stay inside the white field, "
            "until the turns are over."
            if seat == RUNNER
            else f"You are chaser {seat + 1}. Touch the runner, the small disc marked R, before the turns are over, "
            "together with the other chaser."
        )
        return (
            f"{yours} Two chasers hunt one runner, seen from above. The runner is faster. It loses when a chaser "
            "touches it, or when it leaves the white field. up, down, left and right push you that way as you see the "
            "field, stay does not push. You glide on after a push; the arrows show where everybody is heading. Rocks "
            f"stop you. All push at once. There are {self.max_turns} turns."
        )

    def tell(self, seat: int) -> str:
        return "You are the runner. " if seat == RUNNER else f"You are chaser {seat + 1}. "

    def won(self, seat: int) -> bool:
        return not self.ended() and self.rounds >= self.max_turns if seat == RUNNER else self.ended()

    def points(self, seat: int) -> float | None:
        return float(self.rounds - self.ended())

    def details(self, seat: int) -> dict[str, Any]:
        return {"role": "runner" if seat == RUNNER else "chaser", "caught": self.caught, "left": self.left}

    def advise(self, seat: int) -> str | None:
        return self._flee(2) if seat == RUNNER else self._push_to(seat, self._meet(seat))

    def search(self, seat: int) -> str | None:
        runner = self.body_of(RUNNER).state
        return self._flee(1) if seat == RUNNER else self._push_to(seat, tuple(runner.p_pos.tolist()))

    def explain(self, seat: int, action: str) -> str:
        if seat == RUNNER:
            first, second = (self.way_to(seat, self.body_of(chaser).state.p_pos) for chaser in range(RUNNER))
            return f"the chasers are {first} and {second}, so {action}"
        return f"the runner is {self.way_to(seat, self.body_of(RUNNER).state.p_pos)}, so {action}"

    def _meet(self, seat: int) -> Point:
        """Return a chaser's target: the runner's next place; for the farther, nearer the middle."""
        runner, body = self.body_of(RUNNER).state, self.body_of(seat)
        away = [distance(self.body_of(each), self.body_of(RUNNER)) for each in range(RUNNER)]
        time = min(away[seat] / body.max_speed, 0.6)
        x, y = (runner.p_pos + runner.p_vel * time).tolist()
        if away[seat] > away[1 - seat] and away[seat] > 0.4:
            x, y = 0.7 * x, 0.7 * y
        return max(-FIELD, min(FIELD, x)), max(-FIELD, min(FIELD, y))

    def _push_to(self, seat: int, target: Point) -> str:
        """Return a chaser's push that brings it nearest to a point in two turns, clear of rocks."""

        def cost(action: str) -> float:
            place, speed = self.glide(seat, PUSHES[action], motion_of(self.body_of(seat)))
            after = (place[0] + speed[0] * 0.2, place[1] + speed[1] * 0.2)
            return math.dist(after, target) + self._rocks(seat, after) + self._rocks(seat, place)

        return min(PUSHES, key=cost)

    def _rocks(self, seat: int, place: Point) -> float:
        """Return the depth of a place inside a rock."""
        room, rocks = self.body_of(seat).size + 0.03, self.engine.world.landmarks
        return sum(max(0.0, rock.size + room - math.dist(place, rock.state.p_pos)) for rock in rocks)

    def _flee(self, turns: int) -> str:
        """Return the runner's push that keeps clearest of chasers who come straight on."""
        *chasers, start = map(motion_of, self.engine.world.agents)
        return max(PUSHES, key=lambda action: self._safety(action, start, chasers, turns))

    def _safety(self, action: str, start: Motion, chasers: list[Motion], turns: int) -> float:
        motion = place, speed = self.glide(RUNNER, PUSHES[action], start)
        moved = [self._chase(seat, chaser, place) for seat, chaser in enumerate(chasers)]

        # Distances to chasers, edge and rocks make the value of the place.
        near, far = sorted(math.dist(place, chaser[0]) for chaser in moved)
        edge = max(0.0, max(map(abs, place)) - 0.8)
        value = min(near, 0.6) * 2 + 0.3 * min(far, 1.0) - 4 * edge - 4 * self._rocks(RUNNER, place)
        value -= 10 * (near < 0.15) + 20 * (edge > 0.18)

        # In the last turn the glide on counts, else the best next push.
        if turns == 1:
            rest = (place[0] + speed[0] * 0.2, place[1] + speed[1] * 0.2)
            return value - 4 * max(0.0, max(map(abs, rest)) - 0.85) - 0.1 * math.hypot(*rest)
        return value * 0.5 + max(self._safety(after, motion, moved, turns - 1) for after in PUSHES)

    def _chase(self, seat: int, chaser: Motion, place: Point) -> Motion:
        """Return a chaser's motion after a turn of pushing straight towards a place."""
        x, y = chaser[0]
        away = math.dist((x, y), place) or 1.0
        return self.glide(seat, ((place[0] - x) / away, (place[1] - y) / away), chaser)

    def paint(self, canvas: Canvas, seat: int) -> None:
        headline = "caught!" if self.caught else "out of the field!" if self.left else "chasers 1, 2 hunt R"
        self.draw_field(canvas, headline, FIELD)
        for rock in self.engine.world.landmarks:
            x, y = self.at(rock.state.p_pos)
            canvas.disc(x, y, self.long(rock.size), _ROCK, GREY, 2)
            canvas.text("rock", x, y, 15, WHITE)
        for other in sorted(range(self.seats), key=lambda each: (each == seat, each)):
            tint = BLUE if other == seat else (RED, _OTHER, GREEN)[other]
            name = "you" if other == seat else ("", "", "runner")[other]
            self.draw_body(canvas, self.body_of(other), tint, "12R"[other], name)
