"""Drawing tools of the probes: a canvas in shares of the picture's shorter side."""

import math

from PIL import Image, ImageDraw

from vlgym.env.canvas import Canvas as Layout
from vlgym.env.canvas import Colour, load_font

COLOURS: dict[str, Colour] = {
    "red": (215, 30, 35), "orange": (255, 140, 0), "yellow": (250, 225, 40), "green": (25, 145, 60),
    "blue": (35, 80, 215), "purple": (130, 45, 170), "black": (12, 12, 12), "white": (252, 252, 252),
}  # fmt: skip
"""Colours that are asked for. Grey is the ground, and a picture that was taken away."""

GROUND: Colour = (176, 176, 176)
SHAPES = ("disc", "square", "triangle", "star")
SUITS = ("clubs", "diamonds", "hearts", "spades")

_FINER = 4  # drawn that much larger, then scaled down, so that edges are smooth
_LARGEST = 2048  # pixels of a side beyond which that would cost too much memory


def fade(colour: Colour, ground: Colour, contrast: float) -> Colour:
    """Return a colour with this share (0 to 1) of its difference from the ground."""
    pairs = zip(colour, ground, strict=True)
    red, green, blue = (round(under + (over - under) * contrast) for over, under in pairs)
    return red, green, blue


class Canvas(Layout):
    """A canvas. The unit is its shorter side; (0, 0) to (1, 1) is the square in its middle."""

    def __init__(self, size: tuple[int, int], ground: Colour) -> None:
        height, width = self.size = size
        finer = max(1, min(_FINER, _LARGEST // max(size)))
        self.scale = min(size) * finer
        self.corner = (width * finer - self.scale) / 2, (height * finer - self.scale) / 2
        self.picture = Image.new("RGB", (width * finer, height * finer), ground)
        self.pen = ImageDraw.Draw(self.picture)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a place, which is not rounded: the picture is scaled down."""
        return self.corner[0] + x * self.scale, self.corner[1] + y * self.scale

    def area(self, x: float, y: float, right: float, bottom: float, colour: Colour, radius: float = 0.0) -> None:
        """Fill a rectangle from (x, y) to (right, bottom)."""
        corners = (*self.point(x, y), *self.point(right, bottom))
        self.pen.rounded_rectangle(corners, radius * self.scale, fill=colour)

    def shape(self, name: str, x: float, y: float, radius: float, colour: Colour) -> None:
        """Fill one of `SHAPES` round (x, y)."""
        if name == "disc":
            self.disc(x, y, radius, colour)
        elif name == "square":
            half = radius * 0.88
            self.area(x - half, y - half, x + half, y + half, colour)
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
            self.area(x - 0.3 * r, y - 0.3 * r, x + 0.3 * r, y + 0.15 * r, colour)

        # The stem.
        if name != "hearts":
            self.polygon([(x, y), (x + 0.35 * r, y + r), (x - 0.35 * r, y + r)], colour)

    def centre(self, text: str, x: float, y: float, size: float, colour: Colour) -> None:
        """Write one line with its ink centred at (x, y)."""
        letters = load_font(max(1, round(size * self.scale)))
        left, top, right, bottom = letters.getbbox(text)
        at_x, at_y = self.point(x, y)
        width = max(1, round(self.scale * size * 0.02))  # the font has no bold face
        self.pen.text(
            (at_x - (left + right) / 2, at_y - (top + bottom) / 2), text, font=letters, fill=colour,
            stroke_width=width, stroke_fill=colour,
        )  # fmt: skip

    def width_of(self, text: str, size: float) -> float:
        """Return the width of a line, in shares of the shorter side."""
        return load_font(max(1, round(size * self.scale))).getlength(text) / self.scale + 0.06 * size
