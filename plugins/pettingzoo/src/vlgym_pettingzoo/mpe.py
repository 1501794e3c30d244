"""What the games on MPE2's engine share: pushes, frames of a turn, and the drawing of a field from above."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_number
from vlgym.multi import MultiVLEnv

from .art import BLUE, GREY, INK, WHITE, Canvas, Colour
from .prompts import game_prompt

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "hide")  # mpe2 imports pygame, which would print a greeting

PUSHES = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0), "stay": (0, 0)}
"""Each action's direction; y grows upwards, as in the engine."""

_CODES = {"stay": 0, "left": 1, "right": 2, "down": 3, "up": 4}
"""The engine's numbers of the actions."""

DT, DAMPING = 0.1, 0.25
"""The engine's seconds of a frame, and the part of the speed that is lost in each."""

TRIES = 1000
_LEFT, _TOP, _SIDE = 20.0, 34.0, 344.0

Point = tuple[float, float]


class ParticleGame(MultiVLEnv):
    """Discs on a field that push themselves about, all at once. A subclass makes the engine, deals and scores.

    Attributes:
        reach: of the class: the picture shows x and y from -reach to reach, in units of the engine.
        engine: MPE2's environment.
        rounds: turns that were played.

    Args:
        frame_skip: frames of the engine that one decision holds for; at least 1.
        **kwargs: of `MultiVLEnv`.
    """

    reach: ClassVar[float] = 1.25
    frames: ClassVar[int] = 1
    prompt = game_prompt("You move on a field.")

    def __init__(self, *, frame_skip: int | None = None, **kwargs: Any) -> None:
        self.frame_skip = self.frames if frame_skip is None else frame_skip
        check_number("frame_skip", self.frame_skip, least=1, most=20)
        self.engine = self.make_engine()
        super().__init__(**kwargs)

    def make_engine(self) -> Any:
        """MPE2's environment, which ends by no limit of its own."""
        raise TypeError(f"{type(self).__name__} must define make_engine()")

    def fits(self) -> bool:
        """Whether what the engine dealt can be played."""
        return True

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.rounds = 0
        for _ in range(TRIES):
            self.engine.reset(seed=int(rng.integers(2**31)))
            if self.fits():
                return
        raise RuntimeError(f"{type(self).__name__}: {TRIES} deals, and none can be played")

    def movers(self) -> tuple[int, ...]:
        return tuple(range(self.seats))

    def moves(self, seat: int) -> list[str]:
        return list(PUSHES)

    def idle(self, seat: int) -> str:
        return "stay"

    def body_of(self, seat: int) -> Any:
        return self.engine.world.agents[seat]

    def run_frame(self, moves: Mapping[int, str]) -> list[float]:
        """One frame of the engine; return what it pays each seat."""
        for seat in range(self.seats):
            self.engine.step(_CODES[moves[seat]])
        return [float(self.engine.rewards[name]) for name in self.engine.possible_agents]

    def at(self, point: Any) -> Point:
        """Where a point of the field lies in the picture, in layout units."""
        scale = _SIDE / (2 * self.reach)
        return _LEFT + (float(point[0]) + self.reach) * scale, _TOP + (self.reach - float(point[1])) * scale

    def long(self, length: float) -> float:
        """A length of the field in layout units."""
        return length * _SIDE / (2 * self.reach)

    def draw_field(self, headline: str, side: float) -> Canvas:
        """An empty field with a square of this half side, the headline and a bar of the turns that are left."""
        canvas = Canvas(self.image_size, (226, 224, 216))
        canvas.box(_LEFT, _TOP, _SIDE, _SIDE, (238, 236, 228), GREY, 1)
        x, y = self.at((-side, side))
        canvas.box(x, y, self.long(2 * side), self.long(2 * side), WHITE, INK, 2)
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
        """An agent: a disc with its label, its name beside it, and an arrow to where it glides if it pushes no more.

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
            above = y - radius - 9 > _TOP + 8 and speed[1] <= 0.05
            canvas.text(name, x, y - radius - 9 if above else y + radius + 9, 14, tint, bold=0.4)


def glide(place: Point, speed: Point, push: Point, frames: int, top: float | None = None) -> tuple[Point, Point]:
    """Where an agent that touches nothing is after so many frames, and its speed."""
    (x, y), (across, up) = place, speed
    for _ in range(frames):
        x, y = x + across * DT, y + up * DT
        across, up = across * (1 - DAMPING) + push[0] * DT, up * (1 - DAMPING) + push[1] * DT
        fast = math.hypot(across, up)
        if top is not None and fast > top:
            across, up = across / fast * top, up / fast * top
    return (x, y), (across, up)
