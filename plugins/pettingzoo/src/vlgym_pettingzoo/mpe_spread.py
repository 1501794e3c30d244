"""MPE's spread: three agents share out three landmarks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations
from typing import Any, ClassVar

import numpy as np

from vlgym.multi import Round
from vlgym.types import Image

from .art import BLUE, GREEN, INK, WHITE
from .mpe import DAMPING, DT, PUSHES, ParticleGame, glide

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
        """Which landmarks are covered."""
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
        return f"landmark {'ABC'[self.share()[seat]]} is mine, so {action}"

    def mirror(self) -> None:
        first, last = self.engine.world.agents[0].state, self.engine.world.agents[-1].state
        first.p_pos, last.p_pos = last.p_pos, first.p_pos
        first.p_vel, last.p_vel = last.p_vel, first.p_vel
        self.flipped = True

    def draw(self, seat: int) -> Image:
        covered = self.covered()
        canvas = self.draw_field(f"covered: {sum(covered)} of 3", 1.0)
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
