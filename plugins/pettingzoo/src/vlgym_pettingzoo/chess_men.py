"""Chess men, drawn from shapes of our own: a mask of the body, one of its edge, and lines in it."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw, ImageFilter

from .art import INK, WHITE, Canvas, Colour

FINE = 6
"""Each man is drawn so many times larger and made smaller, which smooths its edges."""

Points = tuple[tuple[float, float], ...]
Ball = tuple[float, float, float, float]

FOOT: Points = ((24, 82), (76, 82), (76, 93), (24, 93))
SHAPES: dict[str, tuple[Points, ...]] = {
    "p": (((43, 44), (57, 44), (67, 84), (33, 84)), ((35, 46), (65, 46), (62, 53), (38, 53)), FOOT),
    "r": (
        ((24, 14), (37, 14), (37, 24), (44, 24), (44, 14), (56, 14), (56, 24), (63, 24), (63, 14), (76, 14), (76, 36),
         (67, 42), (67, 70), (73, 84), (27, 84), (33, 70), (33, 42), (24, 36)),
        FOOT,
    ),
    "n": (
        ((32, 84), (36, 68), (47, 54), (45, 50), (35, 55), (28, 63), (19, 60), (16, 50), (28, 33), (34, 24), (33, 9),
         (43, 18), (54, 18), (68, 30), (75, 50), (75, 84)),
        FOOT,
    ),
    "b": (((38, 60), (62, 60), (70, 84), (30, 84)), ((50, 14), (66, 34), (34, 34)), FOOT),
    "q": (((29, 84), (15, 30), (33, 56), (35, 20), (50, 52), (65, 20), (67, 56), (85, 30), (71, 84)), FOOT),
    "k": (
        ((46, 4), (54, 4), (54, 34), (46, 34)), ((37, 11), (63, 11), (63, 19), (37, 19)),
        ((30, 84), (17, 54), (20, 40), (32, 32), (43, 36), (50, 46), (57, 36), (68, 32), (80, 40), (83, 54), (70, 84)),
        FOOT,
    ),
}  # fmt: skip
"""Polygons of each man on a square of 100 x 100, from its top left corner."""

BALLS: dict[str, tuple[Ball, ...]] = {
    "p": ((34, 16, 66, 48),),
    "b": ((44, 5, 56, 17), (32, 20, 68, 66)),
    "q": ((8, 20, 22, 34), (28, 8, 42, 22), (58, 8, 72, 22), (78, 20, 92, 34)),
}
LINES: dict[str, tuple[Points, ...]] = {
    "r": (((33, 42), (67, 42)), ((33, 70), (67, 70))),
    "n": (((38, 30), (40, 34)), ((22, 53), (25, 52))),
    "b": (((50, 30), (50, 52)), ((40, 41), (60, 41)), ((38, 66), (62, 66))),
    "q": (((27, 70), (73, 70)),),
    "k": (((27, 70), (73, 70)), ((50, 46), (50, 70))),
}


def draw_man(canvas: Canvas, kind: str, white: bool, x: float, y: float, side: float) -> None:
    """Draw a man.

    Args:
        canvas: to draw on.
        kind: `p`, `r`, `n`, `b`, `q` or `k`.
        white: whose it is.
        x, y: top left corner of its square, units.
        side: of the square, units.
    """
    pixels = max(4, round(side * canvas.scale))
    corner = (round(x * canvas.scale), round(y * canvas.scale))
    body, edge, lines = _make_masks(kind, pixels)
    fill: Colour = WHITE if white else INK
    line: Colour = INK if white else WHITE
    for colour, mask in ((line, edge), (fill, body), (line, lines)):
        canvas.picture.paste(colour, corner, mask)


@lru_cache(maxsize=64)
def _make_masks(kind: str, pixels: int) -> tuple[Image.Image, Image.Image, Image.Image]:
    """Return body, body with its edge, and lines, as masks of `pixels` squared."""
    size = pixels * FINE
    body, lines = Image.new("L", (size, size)), Image.new("L", (size, size))
    pen, scale = ImageDraw.Draw(body), size / 100
    for points in SHAPES[kind]:
        pen.polygon([(x * scale, y * scale) for x, y in points], 255)
    for ball in BALLS.get(kind, ()):
        pen.ellipse([place * scale for place in ball], 255)
    for points in LINES.get(kind, ()):
        ImageDraw.Draw(lines).line([(x * scale, y * scale) for x, y in points], 255, round(3 * scale))
    edge = body.filter(ImageFilter.MaxFilter(2 * max(1, round(2.2 * scale)) + 1))
    small = [mask.resize((pixels, pixels), Image.Resampling.BOX) for mask in (body, edge, lines)]
    return small[0], small[1], small[2]
