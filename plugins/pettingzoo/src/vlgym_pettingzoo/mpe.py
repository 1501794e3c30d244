"""Spread and tag on MPE2's engine: pushes, frames of a turn, a field drawn from above."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from itertools import permutations
from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_number
from vlgym.games.multi import Round
from vlgym.types import Image

from .art import BLUE, GREEN, GREY, INK, RED, WHITE, Canvas, Colour, draw_turn
from .base import GameAtOnce, game_prompt

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")  # mpe2 imports pygame, which would print a greeting

PUSHES = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0), "stay": (0, 0)}
"""Each action's direction; y grows upwards, as in the engine."""

_CODES = {"stay": 0, "left": 1, "right": 2, "down": 3, "up": 4}
"""The engine's numbers of the actions."""

DT, DAMPING = 0.1, 0.25
"""The engine's seconds of a frame, and the part of the speed that is lost in each."""

DEAL_TRIES = 1000
_LEFT, _TOP, _SIDE = 26.0, 32.0, 332.0

Point = tuple[float, float]


class ParticleGame(GameAtOnce):
    """Discs on a field that push themselves about, all at once. A subclass makes the engine, deals and scores.

    Attributes:
        reach: of the class: the picture shows x and y from -reach to reach, in units of the engine.
        engine: MPE2's environment.
        rounds: turns that were played.

    Args:
        frame_skip: frames of the engine that one decision holds for; at least 1.
        **kwargs: of `MultiVLEnv`.
    """

    actions = tuple(PUSHES)
    reach: ClassVar[float] = 1.25
    frames: ClassVar[int] = 1
    prompt = game_prompt("You move on a field.")

    def __init__(self, *, frame_skip: int | None = None, **kwargs: Any) -> None:
        self.frame_skip = self.frames if frame_skip is None else frame_skip
        check_number("frame_skip", self.frame_skip, least=1, most=20)
        self.engine = self.make_engine()
        super().__init__(**kwargs)

    def make_engine(self) -> Any:
        """Return MPE2's environment, without a turn limit."""
        raise TypeError(f"{type(self).__name__} must define make_engine()")

    def fits(self) -> bool:
        """True if the engine's deal can be played."""
        return True

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.rounds = 0
        for _ in range(DEAL_TRIES):
            self.engine.reset(seed=int(rng.integers(2**31)))
            if self.fits():
                return
        raise RuntimeError(f"{type(self).__name__}: {DEAL_TRIES} deals, and none can be played")

    def body_of(self, seat: int) -> Any:
        return self.engine.world.agents[seat]

    def run_frame(self, moves: Mapping[int, str]) -> list[float]:
        """One frame of the engine; return what it pays each seat."""
        for seat in range(self.seats):
            self.engine.step(_CODES[moves[seat]])
        return [float(self.engine.rewards[name]) for name in self.engine.possible_agents]

    def at(self, point: Any) -> Point:
        """Return the place in the picture of a point of the field, in layout units."""
        scale = _SIDE / (2 * self.reach)
        return _LEFT + (float(point[0]) + self.reach) * scale, _TOP + (self.reach - float(point[1])) * scale

    def way_to(self, seat: int, point: Any) -> str:
        """Return in words where a point of the field lies from a seat's disc: `up left`."""
        across, up = point - self.body_of(seat).state.p_pos
        return f"{'up' if up > 0 else 'down'} {'right' if across > 0 else 'left'}"

    def long(self, length: float) -> float:
        """A length of the field in layout units."""
        return length * _SIDE / (2 * self.reach)

    def draw_field(self, seat: int, headline: str, side: float) -> Canvas:
        """An empty field with a square of this half side, the headline, the turns that are left and the turn bar."""
        canvas = Canvas(self.image_size, (226, 224, 216))
        canvas.box(_LEFT, _TOP, _SIDE, _SIDE, (238, 236, 228), GREY, 1)
        x, y = self.at((-side, side))
        canvas.box(x, y, self.long(2 * side), self.long(2 * side), WHITE, INK, 2)
        draw_turn(canvas, self.movers(), seat)
        canvas.text(headline, _LEFT, 17, 16, anchor="lm", bold=0.3)
        left = max(0, self.max_turns - self.rounds)
        canvas.text(f"turns left: {left}", 264, 17, 14, anchor="rm")
        canvas.box(270, 10, 94, 14, WHITE, INK, 1)
        canvas.box(270, 10, 94 * left / self.max_turns, 14, BLUE, INK, 1)
        return canvas

    def draw_scale(self, canvas: Canvas, length: float, words: str) -> None:
        """A bar of this length of the field at the bottom left, with what it means."""
        y, width = _TOP + _SIDE - 11, self.long(length)
        canvas.line([(_LEFT + 10, y), (_LEFT + 10 + width, y)], INK, 2)
        for x in (_LEFT + 10, _LEFT + 10 + width):
            canvas.line([(x, y - 4), (x, y + 4)], INK, 2)
        canvas.text(words, _LEFT + 18 + width, y, 12, INK, "lm")

    def draw_body(self, canvas: Canvas, body: Any, tint: Colour, label: str, name: str) -> None:
        """Draw an agent: a disc with its label, its name next to it, and an arrow to where it glides without a push.

        One that has left the picture is drawn on its edge, with an arrow outwards.
        """
        place, speed = body.state.p_pos, body.state.p_vel
        inside = np.clip(place, -self.reach * 0.94, self.reach * 0.94)
        x, y = self.at(inside)
        radius = self.long(body.size)
        gone = bool(np.any(inside != place))
        glide = (place - inside) if gone else speed * DT / DAMPING
        length = self.long(math.hypot(*glide))
        canvas.disc(x, y, radius, tint, INK, 2)
        if length > 2:
            along = (float(glide[0]) * self.long(1) / length, -float(glide[1]) * self.long(1) / length)
            start = (x + along[0] * radius, y + along[1] * radius)
            length = min(length, 24.0) if gone else length
            tip = (start[0] + along[0] * length, start[1] + along[1] * length)
            canvas.line([start, tip], tint, 3)
            for turn in (1, -1):
                wing = (-along[0] * 6 - turn * along[1] * 4, -along[1] * 6 + turn * along[0] * 4)
                canvas.line([tip, (tip[0] + wing[0], tip[1] + wing[1])], tint, 3)
        canvas.text(label, x, y, max(11, radius * 1.1), WHITE, bold=0.3)
        if name:
            above, below = y - radius - 9, y + radius + 9
            others = [self.at(each.state.p_pos) for each in self.engine.world.agents if each is not body]
            free = {line: all(math.dist((x, line), place) > radius + 12 for place in others) for line in (above, below)}
            up = above > _TOP + 8 and (free[above] > free[below] or (free[above] == free[below] and speed[1] <= 0.05))
            canvas.text(name, x, above if up else below, 14, tint, bold=0.4)


def glide(place: Point, speed: Point, push: Point, frames: int, top: float | None = None) -> tuple[Point, Point]:
    """Return the place and speed after `frames` frames of an agent that touches nothing."""
    (x, y), (across, up) = place, speed
    for _ in range(frames):
        x, y = x + across * DT, y + up * DT
        across, up = across * (1 - DAMPING) + push[0] * DT, up * (1 - DAMPING) + push[1] * DT
        fast = math.hypot(across, up)
        if top is not None and fast > top:
            across, up = across / fast * top, up / fast * top
    return (x, y), (across, up)


PUSH = 5.0
"""The engine's acceleration of a push that lasts one frame; a turn's frames share it."""

APART = 0.5
"""Least distance of two landmarks: agents that stand on them do not touch."""

COVERS = 0.15
"""An agent within this distance, its own radius, covers a landmark."""

_TINTS = ((196, 84, 20), (130, 60, 160), (90, 90, 98))


class MPESpread(ParticleGame):
    """Spread: three agents must stand on three landmarks, one on each. Nobody is told which is theirs.

    Goal: cover all three landmarks at once. A landmark is covered when an agent's disc lies over its middle.
    Observation: the field from above: the agents with numbers, you in blue, arrows to where each glides if it pushes
        no more, the landmarks with letters (green when covered), and the turns that are left (448 x 448 pixels by
        default). The text does not tell where things are.
    Actions: `up`, `down`, `left`, `right` (push yourself that way), `stay` (no push). All push at once. Agents glide
        on after a push, and bump into each other.
    Reward: the engine's, the same for all: minus the sum of the landmarks' distances to the agent next to each, as the
        mean over the frames of a turn.
    Endings: terminated when all three landmarks are covered at the end of a turn; truncated after 25 turns.
    Success: all three landmarks are covered. `score` is the number of landmarks that are covered.
    Splits: train, val and test differ by seed: all places, and the seat.
    Oracle: a planner: it shares out landmarks so that the ways add up to the least, and pushes so that it comes to rest
        on its own. Default opponents: the same.
    References: Lowe et al., Multi-Agent Actor-Critic for Mixed Cooperative-Competitive Environments, 2017. The engine
        is MPE2's `simple_spread_v3` with `local_ratio=0` (one reward for all). Ours: a turn lasts four frames, which
        share the engine's push (`frame_skip=1` pushes as the engine does); landmarks lie at least 0.5 apart; the end
        when all are covered, by an agent's radius; drawing, texts and planner.

    Args:
        frame_skip: frames of the engine that one decision holds for; they share one push.
        **kwargs: of `MultiVLEnv`.
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
        places = [mark.state.p_pos for mark in self.engine.world.landmarks]
        gaps = [math.dist(places[one], places[two]) for one, two in ((0, 1), (0, 2), (1, 2))]
        bodies = [body.state.p_pos for body in self.engine.world.agents]
        bumps = [math.dist(bodies[one], bodies[two]) for one, two in ((0, 1), (0, 2), (1, 2))]
        return min(gaps) >= APART and min(bumps) > 2 * COVERS and not all(self.covered())

    def number_of(self, seat: int) -> int:
        """The number that is drawn on a seat's disc, from 1."""
        return self.seats - seat if self.flipped else seat + 1

    def covered(self) -> list[bool]:
        """Return, for each landmark, true if it is covered."""
        world = self.engine.world
        return [
            min(math.dist(body.state.p_pos, mark.state.p_pos) for body in world.agents) < COVERS
            for mark in world.landmarks
        ]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        paid = [self.run_frame(moves) for _ in range(self.frame_skip)]
        self.rounds += 1
        return Round(tuple(np.mean(paid, axis=0).tolist()), terminated=all(self.covered()))

    def movers(self) -> tuple[int, ...]:
        return () if self.rounds and all(self.covered()) else super().movers()

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
        return all(self.covered())

    def points(self, seat: int) -> float | None:
        return float(sum(self.covered()))

    def details(self, seat: int) -> dict[str, Any]:
        """Landmarks covered, and how far the own one is by the oracle's sharing out."""
        mark = self.engine.world.landmarks[self.share()[seat]]
        away = math.dist(self.body_of(seat).state.p_pos, mark.state.p_pos)
        return {"covered": sum(self.covered()), "distance": round(away, 6)}

    def share(self) -> tuple[int, ...]:
        """The landmark of each seat, so that the ways from where they come to rest add up to the least."""
        marks = [mark.state.p_pos for mark in self.engine.world.landmarks]
        rests = [body.state.p_pos + body.state.p_vel * DT / DAMPING for body in self.engine.world.agents]
        away = [[math.dist(rest, mark) for mark in marks] for rest in rests]
        return min(
            permutations(range(self.seats)), key=lambda taken: sum(away[seat][mark] for seat, mark in enumerate(taken))
        )

    def advise(self, seat: int) -> str | None:
        """The push after which it comes to rest nearest to its landmark."""
        body = self.body_of(seat)
        mark = self.engine.world.landmarks[self.share()[seat]].state.p_pos
        place, speed = body.state.p_pos.tolist(), body.state.p_vel.tolist()

        def miss(action: str) -> float:
            push = (PUSHES[action][0] * body.accel, PUSHES[action][1] * body.accel)
            (x, y), (across, up) = glide(place, speed, push, self.frame_skip)
            return math.dist((x + across * DT / DAMPING, y + up * DT / DAMPING), mark)

        return min(reversed(PUSHES), key=miss)

    def explain(self, seat: int, action: str) -> str:
        mark = self.share()[seat]
        way = self.way_to(seat, self.engine.world.landmarks[mark].state.p_pos)
        return f"landmark {'ABC'[mark]} is mine, {way}, so {action}"

    def mirror(self) -> None:
        first, last = self.engine.world.agents[0].state, self.engine.world.agents[-1].state
        first.p_pos, last.p_pos = last.p_pos, first.p_pos
        first.p_vel, last.p_vel = last.p_vel, first.p_vel
        self.flipped = True

    def draw(self, seat: int) -> Image:
        covered = self.covered()
        canvas = self.draw_field(seat, f"covered: {sum(covered)} of 3", 1.0)
        self.draw_scale(canvas, PUSH * DT * DT / DAMPING, "how far one push takes you")
        marks = [
            (letter, *self.at(mark.state.p_pos), GREEN if done else INK)
            for letter, mark, done in zip("ABC", self.engine.world.landmarks, covered, strict=True)
        ]
        for _, x, y, tint in marks:
            canvas.disc(x, y, self.long(COVERS) + 4, None, tint, 3)
        for other in sorted(range(self.seats), key=lambda each: (each == seat, self.number_of(each))):
            tint = BLUE if other == seat else _TINTS[self.number_of(other) - 1]
            self.draw_body(canvas, self.body_of(other), tint, str(self.number_of(other)), "you" * (other == seat))
        for letter, x, y, tint in marks:
            canvas.line([(x - 5, y), (x + 5, y)], tint, 2)
            canvas.line([(x, y - 5), (x, y + 5)], tint, 2)
            canvas.box(x + self.long(COVERS) - 2, y + self.long(COVERS) - 8, 16, 16, tint, WHITE, 1, 4)
            canvas.text(letter, x + self.long(COVERS) + 6, y + self.long(COVERS), 13, WHITE, bold=0.3)
        return canvas.finish()


RUNNER = 2
"""The runner's seat; the chasers have seats 0 and 1."""

FIELD = 1.0
"""The field reaches from -FIELD to FIELD; who runs must stay in it."""

START = 0.8
"""Least distance of a chaser from the runner at the beginning."""

SCALE = 10.0
"""The engine pays this for a touch; here a touch is worth 1."""

_OTHER, _ROCK = (214, 92, 40), (92, 94, 104)


class MPETag(ParticleGame):
    """Tag: two chasers want to touch a runner, who is smaller and faster. Two rocks stand in the way.

    Goal: seats 0 and 1 are the chasers: touch the runner before the turns are over, or drive it out of the field. Seat
        2 is the runner: be neither touched nor leave the field.
    Observation: the field from above: chasers with numbers, the runner with an R, your own disc in blue, an arrow for
        the speed of each, the rocks, and the turns that are left (448 x 448 pixels by default). The text says which
        disc is yours, not where things are.
    Actions: `up`, `down`, `left`, `right` (push yourself that way), `stay` (no push). All push at once. Discs glide on
        after a push, and bump into rocks and each other.
    Reward: a tenth of the engine's: for each frame of a touch 1 to both chasers and -1 to the runner for each chaser
        that touches it; the runner also loses near the field's edge. A runner who leaves the field pays, and both
        chasers earn, as for a touch.
    Endings: terminated when a chaser touches the runner, or the runner leaves the field; truncated after 25 turns.
    Success: of a chaser, that the game ended by the rules; of the runner, that it lasted 25 turns. `score` is the
        number of turns that the runner has lasted.
    Splits: train, val and test differ by seed: all places, and the seat.
    Oracle: a planner: the runner looks two turns ahead for the way on which it keeps clear; the chasers head for where
        it can be met, from two sides. The opponent `search` runs from, or straight at, where the others are now.
        Default opponents: the oracle.
    References: Lowe et al., Multi-Agent Actor-Critic for Mixed Cooperative-Competitive Environments, 2017. The engine
        is MPE2's `simple_tag_v3` with two chasers. Ours: a turn lasts two frames (`frame_skip`); the game ends with a
        touch or beyond the edge; chasers begin at least 0.8 away, nobody on a rock, and rocks lie apart; drawing, texts
        and players.

    Args:
        frame_skip: frames of the engine that one decision holds for.
        **kwargs: of `MultiVLEnv`.
    """

    seats = 3
    frames: ClassVar[int] = 2

    def make_engine(self) -> Any:
        from mpe2 import simple_tag_v3

        return simple_tag_v3.raw_env(num_good=1, num_adversaries=2, num_obstacles=2, max_cycles=10**9)

    def fits(self) -> bool:
        """True if the rocks lie apart, no agent is on one, and the runner is in the field, away from the chasers."""
        self.caught = self.left = False
        world = self.engine.world
        runner = world.agents[RUNNER].state.p_pos
        apart = [math.dist(body.state.p_pos, runner) for body in world.agents[:RUNNER]]
        rocks = [
            math.dist(body.state.p_pos, rock.state.p_pos) - body.size - rock.size
            for body in world.agents
            for rock in world.landmarks
        ]
        chasers = math.dist(world.agents[0].state.p_pos, world.agents[1].state.p_pos)
        one, other = world.landmarks
        if math.dist(one.state.p_pos, other.state.p_pos) < one.size + other.size + 0.02:
            return False
        return min(apart) >= START and min(rocks) > 0.02 and chasers > 0.2 and float(np.max(np.abs(runner))) < 0.85

    def movers(self) -> tuple[int, ...]:
        return () if self.caught or self.left else super().movers()

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        """Run the frames of one turn; none after a touch."""
        paid = np.zeros(self.seats)
        for _ in range(self.frame_skip):
            paid += self.run_frame(moves)
            runner = self.body_of(RUNNER)
            self.caught = any(
                math.dist(body.state.p_pos, runner.state.p_pos) < body.size + runner.size
                for body in self.engine.world.agents[:RUNNER]
            )
            self.left = bool(np.max(np.abs(runner.state.p_pos)) > FIELD)
            if self.left and not self.caught:
                paid += (SCALE, SCALE, -SCALE)
            if self.caught or self.left:
                break
        self.rounds += 1
        return Round(tuple((paid / SCALE).tolist()), terminated=self.caught or self.left)

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
        lost = self.caught or self.left
        return not lost and self.rounds >= self.max_turns if seat == RUNNER else lost

    def points(self, seat: int) -> float | None:
        return float(self.rounds - (self.caught or self.left))

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
        """Return a chaser's target: the nearer one heads for the runner's predicted place, the other for its way to
        the middle.
        """
        runner, body = self.body_of(RUNNER).state, self.body_of(seat)
        away = [math.dist(self.body_of(each).state.p_pos, runner.p_pos) for each in range(RUNNER)]
        time = min(away[seat] / body.max_speed, 0.6)
        x, y = (runner.p_pos + runner.p_vel * time).tolist()
        if away[seat] > away[1 - seat] and away[seat] > 0.4:
            x, y = 0.7 * x, 0.7 * y
        return max(-FIELD, min(FIELD, x)), max(-FIELD, min(FIELD, y))

    def _push_to(self, seat: int, target: Point) -> str:
        """The push after which a chaser, two turns on, is nearest to a point, without running into rocks."""

        def cost(action: str) -> float:
            place, speed = self._glide(seat, action, self.frame_skip)
            after = (place[0] + speed[0] * 0.2, place[1] + speed[1] * 0.2)
            return math.dist(after, target) + self._rocks(seat, after) + self._rocks(seat, place)

        return min(PUSHES, key=cost)

    def _glide(self, seat: int, action: str, frames: int, start: tuple[Point, Point] | None = None) -> Any:
        body = self.body_of(seat)
        place, speed = start or (tuple(body.state.p_pos.tolist()), tuple(body.state.p_vel.tolist()))
        push = (PUSHES[action][0] * body.accel, PUSHES[action][1] * body.accel)
        return glide(place, speed, push, frames, body.max_speed)

    def _rocks(self, seat: int, place: Point) -> float:
        """Return the depth of a place inside a rock."""
        room = self.body_of(seat).size + 0.03
        return sum(
            max(0.0, rock.size + room - math.dist(place, rock.state.p_pos)) for rock in self.engine.world.landmarks
        )

    def _flee(self, turns: int) -> str:
        """Return the push that keeps the runner clearest for `turns` turns, while the chasers come straight on."""
        chasers = [(tuple(b.state.p_pos.tolist()), tuple(b.state.p_vel.tolist())) for b in self.engine.world.agents]
        body = self.body_of(RUNNER)
        start = (tuple(body.state.p_pos.tolist()), tuple(body.state.p_vel.tolist()))
        return max(PUSHES, key=lambda action: self._safety(action, start, chasers[:RUNNER], turns))

    def _safety(self, action: str, start: Any, chasers: list[Any], turns: int) -> float:
        place, speed = self._glide(RUNNER, action, self.frame_skip, start)
        moved = [self._chase(seat, chaser, place) for seat, chaser in enumerate(chasers)]
        gaps = sorted(math.dist(place, chaser[0]) for chaser in moved)
        edge = max(0.0, max(abs(place[0]), abs(place[1])) - 0.8)
        value = min(gaps[0], 0.6) * 2 + 0.3 * min(gaps[1], 1.0) - 4 * edge - 4 * self._rocks(RUNNER, place)
        value -= 10 * (gaps[0] < 0.15) + 20 * (edge > 0.18)
        if turns == 1:
            rest = (place[0] + speed[0] * 0.2, place[1] + speed[1] * 0.2)
            return value - 4 * max(0.0, max(abs(rest[0]), abs(rest[1])) - 0.85) - 0.1 * math.hypot(*rest)
        return value * 0.5 + max(self._safety(after, (place, speed), moved, turns - 1) for after in PUSHES)

    def _chase(self, seat: int, chaser: Any, place: Point) -> Any:
        """A chaser a turn on, that pushes straight towards a place (in any direction, more than it can)."""
        body, away = self.body_of(seat), math.dist(chaser[0], place) or 1.0
        push = ((place[0] - chaser[0][0]) / away * body.accel, (place[1] - chaser[0][1]) / away * body.accel)
        return glide(chaser[0], chaser[1], push, self.frame_skip, body.max_speed)

    reach: ClassVar[float] = 1.15

    def draw(self, seat: int) -> Image:
        headline = "caught!" if self.caught else "out of the field!" if self.left else "chasers 1, 2 hunt R"
        canvas = self.draw_field(seat, headline, FIELD)
        for rock in self.engine.world.landmarks:
            x, y = self.at(rock.state.p_pos)
            canvas.disc(x, y, self.long(rock.size), _ROCK, GREY, 2)
            canvas.text("rock", x, y, 15, WHITE)
        for other in sorted(range(self.seats), key=lambda each: (each == seat, each)):
            tint = BLUE if other == seat else GREEN if other == RUNNER else RED if other == 0 else _OTHER
            label = "R" if other == RUNNER else str(other + 1)
            name = "you" if other == seat else "runner" if other == RUNNER else ""
            self.draw_body(canvas, self.body_of(other), tint, label, name)
        return canvas.finish()
