"""Drawing with Pillow: a canvas in layout units, which has Pillow's own font at any size."""

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
INK: Colour = (28, 30, 38)
load_font = lru_cache(maxsize=64)(ImageFont.load_default)  # Pillow's own font at a size in pixels


class Canvas:
    """A picture in the making, addressed in units of a square layout.

    The square is drawn crisply at any size from `units` pixels up. A smaller or oblong picture is
    scaled down from it, so that nothing leaves the picture.

    Args:
        size: height and width of the picture, pixels.
        units: side of the layout.
        colour: the ground.
    """

    def __init__(self, size: tuple[int, int], units: float, colour: Colour) -> None:
        self.size, self.scale = size, max(1.0, max(size) / units)
        side = round(units * self.scale)
        self.picture = Image.new("RGB", (side, side), colour)
        self.pen = ImageDraw.Draw(self.picture)

    def copy(self) -> Self:
        """Return a canvas with the same picture; drawing on it leaves this one alone."""
        other = copy(self)
        other.picture = self.picture.copy()
        other.pen = ImageDraw.Draw(other.picture)
        return other

    def box(
        self, x: float, y: float, width: float, height: float,
        fill: Colour | None, edge: Colour | None = None, line: float = 2, radius: float = 0,
    ) -> None:  # fmt: skip
        """Draw a rectangle with its top left corner at (x, y)."""
        corners = (*self.point(x, y), *self.point(x + width, y + height))
        self.pen.rounded_rectangle(corners, radius * self.scale, fill, edge, self.pixels(line))

    def disc(
        self, x: float, y: float, radius: float, fill: Colour | None, edge: Colour | None = None,
        line: float = 2,
    ) -> None:  # fmt: skip
        """Draw a disc round (x, y)."""
        corners = (*self.point(x - radius, y - radius), *self.point(x + radius, y + radius))
        self.pen.ellipse(corners, fill, edge, self.pixels(line))

    def line(self, points: Sequence[tuple[float, float]], colour: Colour, width: float = 2) -> None:
        """Draw a line from point to point."""
        self.pen.line([self.point(*point) for point in points], colour, self.pixels(width))

    def polygon(self, points: Sequence[tuple[float, float]], fill: Colour, edge: Colour | None = None) -> None:
        """Draw a filled shape with these corners."""
        self.pen.polygon([self.point(*point) for point in points], fill, edge)

    def text(
        self, text: str, x: float, y: float, size: float, colour: Colour = INK, anchor: str = "mm",
        bold: float = 0,
    ) -> None:  # fmt: skip
        """Write a line; `anchor` is Pillow's: "mm" is the middle, "lm" that of the left edge."""
        if not text:
            return
        mask, (left, top) = _write(text, max(6, round(size * self.scale)), anchor, round(bold * self.scale))
        across, down = self.point(x, y)
        self.picture.paste(colour, (round(across) + left, round(down) + top), mask)

    def finish(self) -> NDArray[np.uint8]:
        """Return the image: a fresh `[H, W, 3] uint8` array of `size`."""
        return np.array(self.picture.resize(self.size[::-1], Image.Resampling.BOX))

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a place."""
        return round(x * self.scale), round(y * self.scale)

    def pixels(self, units: float) -> int:
        """Return a length in pixels, at least one."""
        return max(1, round(units * self.scale))


@lru_cache(maxsize=4096)
def _write(text: str, size: int, anchor: str, stroke: int) -> tuple[Image.Image, tuple[int, int]]:
    """Return a text as a mask, and its top left corner relative to its anchor; writing is slow."""
    font = load_font(size)
    box = ImageDraw.Draw(Image.new("L", (1, 1))).textbbox((0, 0), text, font, anchor, stroke_width=stroke)
    left, top, right, bottom = (int(edge) for edge in (*np.floor(box[:2]), *np.ceil(box[2:])))
    mask = Image.new("L", (max(1, right - left), max(1, bottom - top)), 0)
    pen = ImageDraw.Draw(mask)
    pen.text((-left, -top), text, 255, font, anchor, stroke_width=stroke, stroke_fill=255)
    return mask, (left, top)
