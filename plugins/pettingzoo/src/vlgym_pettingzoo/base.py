"""What the games share: the layout of prompts, boards and cards drawn by Pillow, and base classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
from PIL import Image as Pictures
from PIL import ImageDraw, ImageFont

from vlgym.env.prompts import PromptTemplate
from vlgym.games.multi import MultiVLEnv
from vlgym.types import Image

UNITS = 384  # side of the layout square; also the default image side in pixels

Colour = tuple[int, int, int]
PAPER: Colour = (246, 243, 235)
INK: Colour = (28, 30, 38)
GREY: Colour = (128, 130, 138)
BLUE: Colour = (33, 92, 190)
RED: Colour = (200, 38, 44)
GOLD: Colour = (255, 200, 40)
GREEN: Colour = (30, 130, 76)
WHITE: Colour = (255, 255, 255)


class Canvas:
    """A picture in the making, addressed in layout units."""

    def __init__(self, size: tuple[int, int], colour: Colour = PAPER) -> None:
        self.size = size
        self.scale = max(1.0, max(size) / UNITS)
        side = round(UNITS * self.scale)
        self.picture = Pictures.new("RGB", (side, side), colour)
        self.pen = ImageDraw.Draw(self.picture)

    def box(
        self, x: float, y: float, width: float, height: float,
        fill: Colour | None, edge: Colour | None = None, line: float = 2, radius: float = 0,
    ) -> None:  # fmt: skip
        corners = (*self._point(x, y), *self._point(x + width, y + height))
        self.pen.rounded_rectangle(corners, radius * self.scale, fill, edge, self._width(line))

    def disc(
        self, x: float, y: float, radius: float, fill: Colour | None, edge: Colour | None = None,
        line: float = 2,
    ) -> None:  # fmt: skip
        corners = (*self._point(x - radius, y - radius), *self._point(x + radius, y + radius))
        self.pen.ellipse(corners, fill, edge, self._width(line))

    def line(self, points: Sequence[tuple[float, float]], colour: Colour, width: float = 2) -> None:
        self.pen.line([self._point(*point) for point in points], colour, self._width(width))

    def cross(self, x: float, y: float, reach: float, colour: Colour, width: float) -> None:
        for turn in (1, -1):
            ends = [(x - reach, y - turn * reach), (x + reach, y + turn * reach)]
            self.line(ends, colour, width)

    def arrow(
        self, start: tuple[float, float], along: tuple[float, float], length: float, colour: Colour,
        wing: tuple[float, float],
    ) -> None:  # fmt: skip
        """Draw an arrow along a unit vector; `wing` is how far its wings reach back and aside."""
        (x, y), (back, side) = (start[0] + along[0] * length, start[1] + along[1] * length), wing
        self.line([start, (x, y)], colour, 3)
        for turn in (side, -side):
            end = (x - along[0] * back - along[1] * turn, y - along[1] * back + along[0] * turn)
            self.line([(x, y), end], colour, 3)

    def shape(self, points: Sequence[tuple[float, float]], fill: Colour, edge: Colour | None = None) -> None:
        self.pen.polygon([self._point(*point) for point in points], fill, edge)

    def text(
        self, text: str, x: float, y: float, size: float, colour: Colour = INK, anchor: str = "mm",
        bold: float = 0,
    ) -> None:  # fmt: skip
        """Write a line; `anchor` is Pillow's: `mm` is the middle, `lm` that of the left edge."""
        if not text:
            return
        mask, (left, top) = _write(text, max(6, round(size * self.scale)), anchor, round(bold * self.scale))
        across, down = self._point(x, y)
        self.picture.paste(colour, (across + left, down + top), mask)

    def finish(self) -> Image:
        """Return the image: a fresh `[H, W, 3] uint8` array of `size`."""
        picture, size = self.picture, self.size[::-1]
        if picture.size != size:
            picture = picture.resize(size, Pictures.Resampling.BOX)
        return np.array(picture)

    def _point(self, x: float, y: float) -> tuple[int, int]:
        return round(x * self.scale), round(y * self.scale)

    def _width(self, line: float) -> int:
        return max(1, round(line * self.scale))


class Grid:
    """Places of a board's cells, from the top; `box`: left, top, and a cell's side, in units."""

    def __init__(self, canvas: Canvas, rows: int, box: tuple[float, float, float]) -> None:
        self.canvas, self.rows = canvas, rows
        self.left, self.top, self.side = box

    def middle(self, row: int, column: int) -> tuple[float, float]:
        """Return the middle of a cell, in units."""
        return self.left + (column + 0.5) * self.side, self.top + (row + 0.5) * self.side

    def fill(
        self, row: int, column: int, colour: Colour | None, edge: Colour | None = None, line: float = 2,
        inset: float = 0, radius: float = 0,
    ) -> None:  # fmt: skip
        x, y = self.left + column * self.side + inset, self.top + row * self.side + inset
        self.canvas.box(x, y, self.side - 2 * inset, self.side - 2 * inset, colour, edge, line, radius)

    def name(self, columns: Sequence[str], rows: Sequence[str], size: float) -> None:
        """Write the names of the columns below and of the rows at the left."""
        below = self.top + self.rows * self.side + size * 0.75
        for column, word in enumerate(columns):
            self.canvas.text(word, self.middle(0, column)[0], below, size)
        for row, word in enumerate(rows):
            self.canvas.text(word, self.left - size * 0.8, self.middle(row, 0)[1], size)


def draw_card(canvas: Canvas, label: str | None, x: float, y: float, width: float) -> None:
    """Draw a playing card with its top left corner at (x, y), units; `None` lies face down."""
    height = width * 1.4
    if label is not None:
        canvas.box(x, y, width, height, WHITE, INK, 2, 6)
        canvas.text(label, x + width / 2, y + height / 2, width * 0.66, bold=1)
        return
    canvas.box(x, y, width, height, (52, 76, 140), INK, 2, 6)
    canvas.box(x + 6, y + 6, width - 12, height - 12, None, (190, 200, 230), 2, 4)
    right, bottom = x + width - 12, y + height - 12
    canvas.line([(x + 12, y + 12), (right, bottom)], (190, 200, 230), 2)
    canvas.line([(right, y + 12), (x + 12, bottom)], (190, 200, 230), 2)


@lru_cache(maxsize=4096)
def _write(text: str, size: int, anchor: str, stroke: int) -> tuple[Pictures.Image, tuple[int, int]]:
    """Return a text as a mask, and its top left corner relative to its anchor; writing is slow."""
    font = _font(size)
    box = ImageDraw.Draw(Pictures.new("L", (1, 1))).textbbox((0, 0), text, font, anchor, stroke_width=stroke)
    left, top, right, bottom = (int(edge) for edge in (*np.floor(box[:2]), *np.ceil(box[2:])))
    mask = Pictures.new("L", (max(1, right - left), max(1, bottom - top)), 0)
    pen = ImageDraw.Draw(mask)
    pen.text((-left, -top), text, 255, font, anchor, stroke_width=stroke, stroke_fill=255)
    return mask, (left, top)


_font = lru_cache(maxsize=64)(ImageFont.load_default)


def game_prompt(opening: str, version: int = 1) -> PromptTemplate:
    """Return the template that begins with a sentence."""
    instructions, turn = opening + " {task}\n{format}", "{state}Legal actions: {actions}"
    return PromptTemplate(version, instructions=instructions, turn=turn)


class PaintedGame(MultiVLEnv):
    """A game that paints on a canvas of the colour `ground`, with a bar of whose turn it is."""

    ground: ClassVar[Colour] = PAPER

    def draw(self, seat: int) -> Image:
        canvas, movers = Canvas(self.image_size, self.ground), self.movers()
        words = "your turn" if seat in movers else "not your turn" if movers else "the game is over"
        words = "all move at once" if len(movers) > 1 else words
        top, prefix = self.bar(seat)
        canvas.box(0, top, UNITS, 15, GREEN if seat in movers else GREY)
        canvas.text(prefix + words, UNITS / 2, top + 7.5, 12.5, WHITE, bold=0.3)
        self.paint(canvas, seat)
        return canvas.finish()

    def bar(self, seat: int) -> tuple[float, str]:
        """Return the bar's upper edge, in units, and the words before its own."""
        return 369, ""

    def paint(self, canvas: Canvas, seat: int) -> None:
        """Paint this seat's view."""
        raise NotImplementedError


class GameAtOnce(PaintedGame):
    """A game in which every seat chooses among `actions` at once; `stay` does nothing."""

    at_once: ClassVar[bool] = True
    actions: ClassVar[tuple[str, ...]]
    rounds: int  # turns that were played

    def ended(self) -> bool:
        """True if the game is over by its rules."""
        return False

    def movers(self) -> tuple[int, ...]:
        return () if self.ended() else tuple(range(self.seats))

    def moves(self, seat: int) -> list[str]:
        return list(self.actions)

    def idle(self, seat: int) -> str:
        return "stay"

    def draw_headline(self, canvas: Canvas, words: str, left: float, width: float) -> None:
        """Write a line at the top left, and the turns that are left with a bar of this width."""
        turns = max(0, self.max_turns - self.rounds)
        canvas.text(words, left, 17, 16, anchor="lm", bold=0.3)
        canvas.text(f"turns left: {turns}", 264, 17, 14, anchor="rm")
        canvas.box(270, 10, width, 14, WHITE, INK, 1)
        canvas.box(270, 10, width * turns / self.max_turns, 14, BLUE, INK, 1)
