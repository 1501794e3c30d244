"""MPE's tag: two chasers catch one runner, who is faster than they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.multi import Round
from vlgym.types import Image

from .art import BLUE, GREEN, GREY, RED, WHITE
from .mpe import PUSHES, ParticleGame, Point, glide

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
        touch or beyond the edge; chasers begin at least 0.8 away, nobody on a rock; drawing, texts and players.

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
        """Nobody on a rock, the runner in the field and away from the chasers."""
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
        return min(apart) >= START and min(rocks) > 0.02 and chasers > 0.2 and float(np.max(np.abs(runner))) < 0.85

    def movers(self) -> tuple[int, ...]:
        return () if self.caught or self.left else super().movers()

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        """The frames of one turn; no more after a touch."""
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
        return f"I {'flee from the chasers' if seat == RUNNER else 'cut off the runner'}, so {action}"

    def _meet(self, seat: int) -> Point:
        """Where a chaser heads: the nearer one for where the runner will be, the other for its way to the middle."""
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
        """How deep a place is in a rock."""
        room = self.body_of(seat).size + 0.03
        return sum(
            max(0.0, rock.size + room - math.dist(place, rock.state.p_pos)) for rock in self.engine.world.landmarks
        )

    def _flee(self, turns: int) -> str:
        """The push from which the runner can keep clearest for so many turns, while the chasers come straight on."""
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
        push = (
            (place[0] - chaser[0][0]) / away * body.accel,
            (place[1] - chaser[0][1]) / away * body.accel,
        )
        return glide(chaser[0], chaser[1], push, self.frame_skip, body.max_speed)

    reach: ClassVar[float] = 1.15

    def draw(self, seat: int) -> Image:
        headline = "caught!" if self.caught else "out of the field!" if self.left else "chasers 1, 2 hunt R"
        canvas = self.draw_field(headline, FIELD)
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
