"""Drawing tools of the probes: a canvas in shares of the picture's shorter side."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]

COLOURS: dict[str, Colour] = {
    "red": (215, 30, 35), "orange": (255, 140, 0), "yellow": (250, 225, 40), "green": (25, 145, 60),
    "blue": (35, 80, 215), "purple": (130, 45, 170), "black": (12, 12, 12), "white": (252, 252, 252),
}  # fmt: skip
"""Colours that are asked for. Grey is the ground, and a picture that was taken away."""

GROUND: Colour = (176, 176, 176)
SHAPES = ("disc", "square", "triangle", "star")
SUITS = ("clubs", "diamonds", "hearts", "spades")

_load_font = lru_cache(maxsize=32)(ImageFont.load_default)
_FINER = 4  # drawn that much larger, then scaled down, so that edges are smooth
_LARGEST = 2048  # pixels of a side beyond which that would cost too much memory


def fade(colour: Colour, ground: Colour, contrast: float) -> Colour:
    """Return a colour with this share (0 to 1) of its difference from the ground."""
    pairs = zip(colour, ground, strict=True)
    red, green, blue = (round(under + (over - under) * contrast) for over, under in pairs)
    return red, green, blue


class Canvas:
    """A picture. The unit is its shorter side; (0, 0) to (1, 1) is the square in its middle."""

    def __init__(self, size: tuple[int, int], ground: Colour) -> None:
        self.size = size
        height, width = size
        self._finer = max(1, min(_FINER, _LARGEST // max(size)))
        self._side = min(size) * self._finer
        self._left = (width * self._finer - self._side) / 2
        self._top = (height * self._finer - self._side) / 2
        self._picture = Image.new("RGB", (width * self._finer, height * self._finer), ground)
        self._pen = ImageDraw.Draw(self._picture)

    def polygon(self, points: list[tuple[float, float]], colour: Colour) -> None:
        self._pen.polygon([self._at(x, y) for x, y in points], fill=colour)

    def box(self, x: float, y: float, right: float, bottom: float, colour: Colour, radius: float = 0.0) -> None:
        corners = (*self._at(x, y), *self._at(right, bottom))
        self._pen.rounded_rectangle(corners, radius * self._side, fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        corners = (*self._at(x - radius, y - radius), *self._at(x + radius, y + radius))
        self._pen.ellipse(corners, fill=colour)

    def shape(self, name: str, x: float, y: float, radius: float, colour: Colour) -> None:
        """Fill one of `SHAPES` round (x, y)."""
        if name == "disc":
            self.disc(x, y, radius, colour)
        elif name == "square":
            half = radius * 0.88
            self.box(x - half, y - half, x + half, y + half, colour)
        else:
            corners = 3 if name == "triangle" else 10
            radii = [radius, radius * 0.42] if name == "star" else [radius]
            points = []
            for corner in range(corners):
                r, angle = radii[corner % len(radii)], -math.pi / 2 + 2 * math.pi * corner / corners
                points.append((x + r * math.cos(angle), y + r * math.sin(angle)))
            self.polygon(points, colour)

    def suit(self, name: str, x: float, y: float, radius: float, colour: Colour) -> None:
        """Fill the sign of one of `SUITS` round (x, y)."""
        r = radius
        if name == "diamonds":
            self.polygon([(x, y - r), (x + 0.75 * r, y), (x, y + r), (x - 0.75 * r, y)], colour)
            return
        if name == "clubs":
            for dx, dy in ((0, -0.45), (-0.5, 0.2), (0.5, 0.2)):
                self.disc(x + dx * r, y + dy * r, 0.45 * r, colour)
            self.disc(x, y + 0.05 * r, 0.25 * r, colour)
        else:
            up = 1 if name == "hearts" else -1
            for dx in (-0.43, 0.43):
                self.disc(x + dx * r, y - 0.35 * up * r, 0.48 * r, colour)
            shoulder = y - 0.12 * up * r
            self.polygon([(x - 0.86 * r, shoulder), (x + 0.86 * r, shoulder), (x, y + up * r)], colour)
            self.box(x - 0.3 * r, y - 0.3 * r, x + 0.3 * r, y + 0.15 * r, colour)

        # The stem.
        if name != "hearts":
            self.polygon([(x, y), (x + 0.35 * r, y + r), (x - 0.35 * r, y + r)], colour)

    def text(self, text: str, x: float, y: float, size: float, colour: Colour) -> None:
        """Write one line with its ink centred at (x, y)."""
        letters = self._font(size)
        left, top, right, bottom = letters.getbbox(text)
        at_x, at_y = self._at(x, y)
        width = max(1, round(self._side * size * 0.02))  # the font has no bold face
        self._pen.text(
            (at_x - (left + right) / 2, at_y - (top + bottom) / 2), text, font=letters, fill=colour,
            stroke_width=width, stroke_fill=colour,
        )  # fmt: skip

    def width_of(self, text: str, size: float) -> float:
        """Return the width of a line, in shares of the shorter side."""
        return self._font(size).getlength(text) / self._side + 0.06 * size

    def finish(self) -> NDArray[np.uint8]:
        """Return the image: a fresh `[H, W, 3] uint8` array of `size`."""
        return np.array(self._picture.resize(self.size[::-1], Image.Resampling.BOX))

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return self._left + x * self._side, self._top + y * self._side

    def _font(self, size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        return _load_font(max(1, round(size * self._side)))
