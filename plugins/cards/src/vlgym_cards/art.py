"""Everything that is drawn: cards, felt, text. The one asset is a font (`fonts/`).

Layouts are written in a square of 300 x 300 units.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from vlgym.env.canvas import Canvas as Layout
from vlgym.env.canvas import Colour

from .cards import Card

UNITS = 300  # side of the layout square; also the default image side in pixels
FELT = (53, 101, 77)
WHITE = (255, 255, 255)
BLACK = (0, 0, 0)
_INK = {"C": (15, 15, 15), "S": (15, 15, 15), "D": (190, 15, 30), "H": (190, 15, 30)}
_PIPS = {"C": "\u2663", "D": "\u2666", "H": "\u2665", "S": "\u2660"}
_EDGE = (90, 90, 90)
_BACK = (38, 62, 128)
_LATTICE = (208, 214, 235)
_FONT_FILE = "DejaVuSans-Bold-subset.ttf"


class Canvas(Layout):
    """A canvas of 300 units with cards, which writes in the plugin's font."""

    def __init__(self, size: tuple[int, int], colour: Colour) -> None:
        super().__init__(size, UNITS, colour)

    def card(self, card: Card | None, x: float, y: float, width: float, height: float) -> None:
        """Lay a card (`None`: face down) with its top left corner at (x, y)."""
        sprite, mask = card_sprite(card, self.pixels(width), self.pixels(height))
        self.picture.paste(sprite, (self.pixels(x), self.pixels(y)), mask)

    def write(self, text: str, x: float, y: float, size: float, colour: Colour = WHITE) -> None:
        """Write one line whose font box begins at (x, y); `size` is the font size in units."""
        self.pen.text((self.pixels(x), self.pixels(y)), text, font=font(self.pixels(size)), fill=colour)

    def wrapped(
        self, words: Sequence[str], x: float, y: float, width: float, height: float, sizes: Sequence[float]
    ) -> None:
        """Write words over several lines, in the largest of `sizes` (descending) that fits."""
        for size in sizes:
            lines = wrap(words, width, size)
            if len(lines) * size * 1.25 <= height:
                break
        for number, line in enumerate(lines):
            self.write(line, x, y + number * size * 1.25, size)


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Return the plugin's font at `size` pixels; the basic layout engine draws alike everywhere."""
    data = files("vlgym_cards").joinpath("fonts", _FONT_FILE).read_bytes()
    return ImageFont.truetype(BytesIO(data), size, layout_engine=ImageFont.Layout.BASIC)


def wrap(words: Sequence[str], width: float, size: float) -> list[str]:
    """Break words into lines at most `width` units wide; a word is never broken."""
    measure = font(round(size))
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and measure.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


@lru_cache(maxsize=256)
def card_sprite(card: Card | None, width: int, height: int) -> tuple[Image.Image, Image.Image]:
    """Draw a card, or the back of one (`None`).

    The rank stands twice: large in the middle, and small in the upper left corner over the suit,
    where it stays visible in a fan. Picture (RGB) and mask (L) are shared: do not draw on them.
    """
    mask = Image.new("L", (width, height), 0)
    radius = max(2, width // 12)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, width - 1, height - 1), radius, fill=255)
    picture = Image.new("RGB", (width, height), WHITE)
    pen = ImageDraw.Draw(picture)
    if card is None:
        _draw_back(pen, width, height)
    else:
        _draw_face(pen, card, width, height)
    pen.rounded_rectangle((0, 0, width - 1, height - 1), radius, outline=_EDGE, width=max(1, width // 70))
    return picture, mask


def fan(count: int, x: float, width: float, card_width: float, gap: float) -> list[float]:
    """Left edges of `count` cards in a row: side by side, or else overlapping evenly."""
    if count < 2:
        return [x] * count
    step = min(card_width + gap, (width - card_width) / (count - 1))
    return [x + step * index for index in range(count)]


def centre_text(
    pen: ImageDraw.ImageDraw,
    text: str,
    x: float,
    y: float,
    width: float,
    size: int,
    ink: Colour,
    height: float = float("inf"),
) -> None:
    """Write `text` with its ink centred at (x, y).

    Its font size is `size`, or less where it is wider than `width` or higher than `height` pixels.
    """
    while True:
        left, top, right, bottom = font(size).getbbox(text)
        if (right - left <= width and bottom - top <= height) or size <= 6:
            break
        size -= 1
    pen.text((x - (left + right) / 2, y - (top + bottom) / 2), text, font=font(size), fill=ink)


def _draw_face(pen: ImageDraw.ImageDraw, card: Card, width: int, height: int) -> None:
    ink = _INK[card.suit]
    corner = max(8, round(width * 0.27))
    centre_text(pen, card.symbol, 0.20 * width, 0.14 * height, 0.33 * width, corner, ink)
    centre_text(pen, _PIPS[card.suit], 0.20 * width, 0.33 * height, 0.33 * width, round(corner * 1.1), ink)
    centre_text(pen, card.symbol, 0.60 * width, 0.62 * height, 0.66 * width, round(height * 0.52), ink)


def _draw_back(pen: ImageDraw.ImageDraw, width: int, height: int) -> None:
    margin = max(3, width // 12)
    pen.rectangle((margin, margin, width - 1 - margin, height - 1 - margin), fill=_BACK)

    # The lattice: lines in both diagonal directions.
    xs, ys = range(margin + 1, width - 1 - margin), range(margin + 1, height - 1 - margin)
    for offset in range(-height, width, max(6, width // 7)):
        for slope, shift in ((1, 0), (-1, height)):
            points = [(offset + shift + slope * y, y) for y in ys if offset + shift + slope * y in xs]
            if len(points) > 1:
                pen.line((points[0], points[-1]), fill=_LATTICE, width=1)
