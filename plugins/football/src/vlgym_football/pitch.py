"""The tactical view: the pitch from above, drawn from the positions. The engine's own camera is in `camera.py`."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from .engine import Snapshot
from .scenario import LENGTH_X, LENGTH_Y

GRASS, STRIPE, LINE, BORDER = (62, 128, 62), (56, 119, 57), (226, 236, 226), (38, 74, 40)
OURS, THEIRS, INK, WHITE, MINE = (255, 214, 10), (40, 88, 215), (12, 12, 12), (255, 255, 255), (230, 20, 20)
BAR = (24, 28, 32)
SMALLEST_BAR = 10
"""Height in pixels of the bars above and below from which on they hold writing (images of 127 rows and more)."""

LINE_FRAMES = 5
"""Frames of running that the lines show."""

_OVERSAMPLE = 4
_LENGTH, _WIDTH = 2 * LENGTH_X, 0.84 * LENGTH_Y
_ROOM = 3.0
"""Metres around the pitch."""


@functools.lru_cache(maxsize=8)
class PitchPainter:
    """Draws snapshots at one image size; painters are shared and hold nothing but pictures made once."""

    def __init__(self, height: int, width: int) -> None:
        self.size = (width, height)
        self.bar = round(height * 0.075)
        self.scale = min(width / (_LENGTH + 2 * _ROOM), (height - 2 * self.bar) / (_WIDTH + 2 * _ROOM))
        self.middle = (width / 2, height / 2)
        self.radius = max(3.0, 1.95 * self.scale)
        self.written = self.bar >= SMALLEST_BAR
        self._background = self._draw_background()
        self._font = ImageFont.load_default(max(6, round(self.bar * 0.58)))

    def draw(self, now: Snapshot, *, frame_limit: int, sprint: bool, dribble: bool) -> NDArray[np.uint8]:
        """Return a fresh `[H, W, 3] uint8` picture of a frame."""
        picture = self._background.copy()
        pen = ImageDraw.Draw(picture)
        teams = (
            (1, now.right, now.right_velocity, now.right_active),
            (0, now.left, now.left_velocity, now.left_active),
        )
        for team, places, paces, active in teams:
            for index in np.flatnonzero(active):
                start, end = self.pixel(places[index]), self.pixel(places[index] + LINE_FRAMES * paces[index])
                pen.line(
                    (*start, *end), fill=OURS if team == 0 else (150, 180, 255), width=max(1, round(self.radius / 4))
                )
        last: list[tuple[int, int]] = []
        for team, places, _, active in teams:
            for index in np.flatnonzero(active):
                special = (team == 0 and index == now.controlled) or (team == now.owner_team and index == now.owner)
                if special:
                    last.append((team, int(index)))
                else:
                    self._stamp(picture, places[index], team, int(index) + 1, None)
        for team, player in last:
            mine = team == 0 and player == now.controlled
            self._stamp(picture, (now.left, now.right)[team][player], team, player + 1, MINE if mine else WHITE)
        self._draw_ball(picture, now)
        if self.written:
            self._write(pen, now, frame_limit, sprint, dribble)
        return np.array(picture)

    def pixel(self, place: NDArray[np.float64]) -> tuple[float, float]:
        """Return the pixel of a place in pitch coordinates."""
        return (
            self.middle[0] + float(place[0]) * LENGTH_X * self.scale,
            self.middle[1] + float(place[1]) * LENGTH_Y * self.scale,
        )

    def _stamp(
        self,
        picture: Image.Image,
        place: NDArray[np.float64],
        team: int,
        number: int,
        ring: tuple[int, int, int] | None,
    ) -> None:
        stamp = _disc(self.radius, OURS if team == 0 else THEIRS, INK if team == 0 else WHITE, str(number), ring)
        x, y = self.pixel(place)
        picture.paste(stamp, (round(x - stamp.width / 2), round(y - stamp.height / 2)), stamp)

    def _draw_ball(self, picture: Image.Image, now: Snapshot) -> None:
        """Draw the ball where it is; at a player's feet it is moved to the rim of the disc, so that his number stays
        legible."""
        x, y = self.pixel(now.ball)
        stamp = _disc(max(2.0, self.radius * (0.5 + 0.03 * min(float(now.ball[2]), 8.0))), WHITE, INK, "", None)
        if now.owner_team != -1:
            team, paces = (now.left, now.left_velocity) if now.owner_team == 0 else (now.right, now.right_velocity)
            px, py = self.pixel(team[now.owner])
            rim = self.radius * 1.25
            if np.hypot(x - px, y - py) < rim:
                way = np.array([x - px, y - py])
                if np.hypot(*way) < 0.5:
                    way = paces[now.owner] * (LENGTH_X, LENGTH_Y)
                norm = float(np.hypot(*way))
                dx, dy = way / norm if norm > 1e-9 else (1.0, 0.0)
                x, y = px + dx * rim, py + dy * rim
        picture.paste(stamp, (round(x - stamp.width / 2), round(y - stamp.height / 2)), stamp)

    def _write(self, pen: ImageDraw.ImageDraw, now: Snapshot, frame_limit: int, sprint: bool, dribble: bool) -> None:
        width = self.size[0]
        owner = {0: f"ball: us {now.owner + 1}", 1: f"ball: them {now.owner + 1}", -1: "ball: free"}[now.owner_team]
        you = f"you: {now.controlled + 1}" if now.controlled >= 0 else "you: -"
        sticky = "".join(f"  {word}" for word, on in (("SPRINT", sprint), ("DRIBBLE", dribble)) if on)
        y = self.bar / 2
        pen.text((self.bar * 0.4, y), f"{you}   {owner}{sticky}", font=self._font, fill=WHITE, anchor="lm")
        score = f"{now.score[0]} : {now.score[1]}   {max(now.frame, 0)} / {frame_limit}"
        pen.text((width - self.bar * 0.4, y), score, font=self._font, fill=WHITE, anchor="rm")

    def _draw_background(self) -> Image.Image:
        k = _OVERSAMPLE
        width, height = self.size
        big = Image.new("RGB", (width * k, height * k), BORDER)
        pen = ImageDraw.Draw(big)
        unit = self.scale * k
        cx, cy = width * k / 2, height * k / 2
        left, top = cx - _LENGTH / 2 * unit, cy - _WIDTH / 2 * unit
        right, bottom = cx + _LENGTH / 2 * unit, cy + _WIDTH / 2 * unit
        for stripe in range(12):
            edge = left + stripe * (right - left) / 12
            pen.rectangle((edge, top, edge + (right - left) / 12, bottom), fill=(GRASS, STRIPE)[stripe % 2])
        thick = max(k, round(0.25 * unit))
        pen.rectangle((left, top, right, bottom), outline=LINE, width=thick)
        pen.line((cx, top, cx, bottom), fill=LINE, width=thick)
        pen.ellipse((cx - 9.15 * unit, cy - 9.15 * unit, cx + 9.15 * unit, cy + 9.15 * unit), outline=LINE, width=thick)
        for side in (-1, 1):
            goal = cx + side * _LENGTH / 2 * unit
            for deep, wide in ((16.5, 20.16), (5.5, 9.16)):
                inner = goal - side * deep * unit
                pen.rectangle(
                    (min(goal, inner), cy - wide * unit, max(goal, inner), cy + wide * unit), outline=LINE, width=thick
                )
            net = goal + side * 2.2 * unit
            colour = (255, 120, 120) if side == 1 else LINE
            pen.rectangle(
                (min(goal, net), cy - 3.66 * unit, max(goal, net), cy + 3.66 * unit),
                fill=colour,
                outline=WHITE,
                width=thick,
            )
        pen.rectangle((0, 0, width * k, self.bar * k), fill=BAR)
        pen.rectangle((0, (height - self.bar) * k, width * k, height * k), fill=BAR)
        picture = big.resize(self.size, Image.Resampling.LANCZOS)
        if not self.written:
            return picture
        small = ImageFont.load_default(max(6, round(self.bar * 0.54)))
        pen = ImageDraw.Draw(picture)
        pen.text(
            (self.bar * 0.4, height - self.bar / 2),
            "yellow: us   blue: them   red ring: you",
            font=small,
            fill=WHITE,
            anchor="lm",
        )
        pen.text(
            (width - self.bar * 0.4, height - self.bar / 2),
            "we attack  >>>",
            font=small,
            fill=(255, 150, 150),
            anchor="rm",
        )
        return picture


@functools.lru_cache(maxsize=512)
def _disc(
    radius: float, fill: tuple[int, int, int], ink: tuple[int, int, int], text: str, ring: tuple[int, int, int] | None
) -> Image.Image:
    """Return a smooth disc with a number; shared, so only pasted from."""
    k = _OVERSAMPLE
    outer = radius * (1.35 if ring else 1.0)
    side = 2 * int(np.ceil(outer)) + 2
    big = Image.new("RGBA", (side * k, side * k), (*(ring or fill), 0))
    pen = ImageDraw.Draw(big)
    middle = side * k / 2

    def circle(r: float, colour: tuple[int, int, int]) -> None:
        pen.ellipse((middle - r * k, middle - r * k, middle + r * k, middle + r * k), fill=(*colour, 255))

    if ring:
        circle(outer, ring)
    circle(radius, INK)
    circle(radius * 0.88, fill)
    small = big.resize((side, side), Image.Resampling.LANCZOS)
    if text:
        size = radius * (1.5 if len(text) == 1 else 1.25)
        big_text = Image.new("RGBA", big.size, (*ink, 0))
        ImageDraw.Draw(big_text).text(
            (middle, middle), text, font=ImageFont.load_default(size * k), fill=(*ink, 255), anchor="mm",
            stroke_width=max(1, round(k * radius / 18)), stroke_fill=(*ink, 255),
        )  # fmt: skip
        small.alpha_composite(big_text.resize((side, side), Image.Resampling.LANCZOS))
    return small
