"""The tactical view: the pitch from above, drawn from the positions."""

import functools
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from .engine import STICKY, Snapshot
from .scenario import LENGTH_X, LENGTH_Y

Colour = tuple[int, int, int]
GRASS, STRIPE, LINE, BORDER = (62, 128, 62), (56, 119, 57), (226, 236, 226), (38, 74, 40)
OURS, THEIRS, INK, WHITE, MINE = (255, 214, 10), (40, 88, 215), (12, 12, 12), (255, 255, 255), (230, 20, 20)
BAR = (24, 28, 32)
SMALLEST_BAR = 10  # height in pixels of bars that hold writing (images of 127 rows and more)
LINE_FRAMES = 5  # frames of running that the lines show
_OVERSAMPLE = 4
_LENGTH, _WIDTH = 2 * LENGTH_X, 0.84 * LENGTH_Y
_ROOM = 3.0  # metres around the pitch


@functools.lru_cache(maxsize=8)
class PitchPainter:
    """Draws snapshots at one image size; painters are shared, since they hold no state."""

    def __init__(self, height: int, width: int) -> None:
        self.size = (width, height)
        self.bar = round(height * 0.075)
        self.scale = min(width / (_LENGTH + 2 * _ROOM), (height - 2 * self.bar) / (_WIDTH + 2 * _ROOM))
        self.middle = (width / 2, height / 2)
        self.radius = max(3.0, 1.95 * self.scale)
        self.written = self.bar >= SMALLEST_BAR
        self._background = self._draw_background()
        self._font = ImageFont.load_default(max(6, round(self.bar * 0.58)))

    def draw(self, now: Snapshot, frame_limit: int, commands: Collection[str]) -> NDArray[np.uint8]:
        """Return a fresh `[H, W, 3] uint8` picture of a frame and its commands."""
        picture = self._background.copy()
        pen = ImageDraw.Draw(picture)
        teams = (
            (1, now.right, now.right_velocity, now.right_active),
            (0, now.left, now.left_velocity, now.left_active),
        )

        # Lines of running lie under the players.
        for team, places, paces, active in teams:
            fill, width = OURS if team == 0 else (150, 180, 255), max(1, round(self.radius / 4))
            for place, pace in zip(places[active], paces[active], strict=True):
                pen.line((*self.pixel(place), *self.pixel(place + LINE_FRAMES * pace)), fill=fill, width=width)

        # The player of the agent and the owner of the ball have rings, and stand above the others.
        last = []
        for team, places, _, active in teams:
            for index in np.flatnonzero(active).tolist():
                mine = team == 0 and index == now.controlled
                stamp = (picture, places[index], team, index + 1)
                if mine or (team, index) == (now.owner_team, now.owner):
                    last.append((*stamp, MINE if mine else WHITE))
                else:
                    self._stamp(*stamp, None)
        for ringed in last:
            self._stamp(*ringed)
        self._draw_ball(picture, now)
        if self.written:
            self._write(pen, now, frame_limit, commands)
        return np.array(picture)

    def pixel(self, place: NDArray[np.float64]) -> tuple[float, float]:
        """Return the pixel of a place in pitch coordinates."""
        x = self.middle[0] + float(place[0]) * LENGTH_X * self.scale
        return x, self.middle[1] + float(place[1]) * LENGTH_Y * self.scale

    def _stamp(
        self, picture: Image.Image, place: NDArray[np.float64], team: int, number: int, ring: Colour | None
    ) -> None:
        fill, ink = (OURS, INK) if team == 0 else (THEIRS, WHITE)
        _paste(picture, _disc(self.radius, fill, ink, str(number), ring), *self.pixel(place))

    def _draw_ball(self, picture: Image.Image, now: Snapshot) -> None:
        """Draw the ball; at a player's feet it moves to the rim of his disc, off his number."""
        x, y = self.pixel(now.ball)
        if now.owner_team != -1:
            place, pace = now.owner_motion()
            px, py = self.pixel(place)
            rim = self.radius * 1.25
            way = np.array([x - px, y - py])
            if np.hypot(*way) < rim:
                if np.hypot(*way) < 0.5:
                    way = pace * (LENGTH_X, LENGTH_Y)
                norm = float(np.hypot(*way))
                dx, dy = way / norm if norm > 1e-9 else (1.0, 0.0)
                x, y = px + dx * rim, py + dy * rim

        # A high ball is larger.
        radius = max(2.0, self.radius * (0.5 + 0.03 * min(float(now.ball[2]), 8.0)))
        _paste(picture, _disc(radius, WHITE, INK, "", None), x, y)

    def _write(self, pen: ImageDraw.ImageDraw, now: Snapshot, frame_limit: int, commands: Collection[str]) -> None:
        owner = (f"us {now.owner + 1}", f"them {now.owner + 1}", "free")[now.owner_team]
        you = now.controlled + 1 if now.controlled >= 0 else "-"
        sticky = "".join(f"  {name.upper()}" for name in STICKY if name in commands)
        margin, y = self.bar * 0.4, self.bar / 2
        write = functools.partial(pen.text, font=self._font, fill=WHITE)
        write((margin, y), f"you: {you}   ball: {owner}{sticky}", anchor="lm")
        score = f"{now.score[0]} : {now.score[1]}   {max(now.frame, 0)} / {frame_limit}"
        write((self.size[0] - margin, y), score, anchor="rm")

    def _draw_background(self) -> Image.Image:
        k = _OVERSAMPLE
        width, height = self.size
        big = Image.new("RGB", (width * k, height * k), BORDER)
        pen = ImageDraw.Draw(big)
        unit = self.scale * k

        # Grass in stripes.
        cx, cy = width * k / 2, height * k / 2
        left, top = cx - _LENGTH / 2 * unit, cy - _WIDTH / 2 * unit
        right, bottom = cx + _LENGTH / 2 * unit, cy + _WIDTH / 2 * unit
        for stripe in range(12):
            edge = left + stripe * (right - left) / 12
            pen.rectangle((edge, top, edge + (right - left) / 12, bottom), fill=(GRASS, STRIPE)[stripe % 2])

        # The lines of the pitch, in its real measures; the goal to attack is red.
        thick = max(k, round(0.25 * unit))
        pen.rectangle((left, top, right, bottom), outline=LINE, width=thick)
        pen.line((cx, top, cx, bottom), fill=LINE, width=thick)
        circle = 9.15 * unit
        pen.ellipse((cx - circle, cy - circle, cx + circle, cy + circle), outline=LINE, width=thick)
        for side in (-1, 1):
            goal = cx + side * _LENGTH / 2 * unit
            for deep, wide in ((16.5, 20.16), (5.5, 9.16)):
                x0, x1 = sorted((goal, goal - side * deep * unit))
                pen.rectangle((x0, cy - wide * unit, x1, cy + wide * unit), outline=LINE, width=thick)
            x0, x1 = sorted((goal, goal + side * 2.2 * unit))
            net, colour = (x0, cy - 3.66 * unit, x1, cy + 3.66 * unit), (255, 120, 120) if side == 1 else LINE
            pen.rectangle(net, fill=colour, outline=WHITE, width=thick)

        # The bars, with the legend where it is legible.
        pen.rectangle((0, 0, width * k, self.bar * k), fill=BAR)
        pen.rectangle((0, (height - self.bar) * k, width * k, height * k), fill=BAR)
        picture = big.resize(self.size, Image.Resampling.LANCZOS)
        if not self.written:
            return picture
        small = ImageFont.load_default(max(6, round(self.bar * 0.54)))
        write = functools.partial(ImageDraw.Draw(picture).text, font=small)
        margin, y = self.bar * 0.4, height - self.bar / 2
        write((margin, y), "yellow: us   blue: them   red ring: you", fill=WHITE, anchor="lm")
        write((width - margin, y), "we attack  >>>", fill=(255, 150, 150), anchor="rm")
        return picture


def _paste(picture: Image.Image, stamp: Image.Image, x: float, y: float) -> None:
    picture.paste(stamp, (round(x - stamp.width / 2), round(y - stamp.height / 2)), stamp)


@functools.lru_cache(maxsize=512)
def _disc(radius: float, fill: Colour, ink: Colour, text: str, ring: Colour | None) -> Image.Image:
    """Return a smooth disc with a number; shared, so only pasted from."""
    k = _OVERSAMPLE
    outer = radius * (1.35 if ring else 1.0)
    side = 2 * int(np.ceil(outer)) + 2
    big = Image.new("RGBA", (side * k, side * k), (*(ring or fill), 0))
    pen = ImageDraw.Draw(big)
    middle = side * k / 2

    def circle(r: float, colour: Colour) -> None:
        pen.ellipse((middle - r * k, middle - r * k, middle + r * k, middle + r * k), fill=(*colour, 255))

    # A ring, a dark rim, the disc.
    if ring:
        circle(outer, ring)
    circle(radius, INK)
    circle(radius * 0.88, fill)
    small = big.resize((side, side), Image.Resampling.LANCZOS)

    # The number is smoothed by itself, so that its edge does not mix with the disc's.
    if text:
        size = radius * (1.5 if len(text) == 1 else 1.25)
        big_text = Image.new("RGBA", big.size, (*ink, 0))
        ImageDraw.Draw(big_text).text(
            (middle, middle), text, font=ImageFont.load_default(size * k), fill=(*ink, 255), anchor="mm",
            stroke_width=max(1, round(k * radius / 18)), stroke_fill=(*ink, 255),
        )  # fmt: skip
        small.alpha_composite(big_text.resize((side, side), Image.Resampling.LANCZOS))
    return small
