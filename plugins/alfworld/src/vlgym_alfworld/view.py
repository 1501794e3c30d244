"""Draw a room as a plan: floor, receptacles with their names, open or closed, the agent, and what it holds and sees.

Only what the agent may see is drawn: the contents of the receptacles where it stands, if they are open or have no door.
In a real kitchen cabinets hang above drawers, so true positions coincide on a plan: each receptacle gets a tile as near
to its true place as fits, by a greedy search in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vlgym.env.rendering import fit_image

from .game import World, number_key
from .rooms import GRID, pose_of, position_of

STEP = 4
"""Distance between candidate positions, pixels at the basic size."""

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are outside."""


@dataclass(frozen=True)
class Plan:
    """The layout of a room's picture.

    Attributes:
        tiles: a box for each label.
        cells: boxes of the reachable floor.
        area: the box that all of it lies in.
        bounds: smallest and largest x, smallest and largest z that the area shows (metres).
    """

    tiles: Mapping[str, Box]
    cells: tuple[Box, ...]
    area: Box
    bounds: tuple[float, float, float, float]

    def pixel(self, x: float, z: float) -> tuple[float, float]:
        """Return the pixel of a point of the room; north (large z) is up."""
        return _project(x, z, self.area, self.bounds)

    def free_spot(self, x: float, z: float, size: int) -> tuple[int, int]:
        """Return the centre of the free square of `size` pixels nearest to a point of the room (its own pixel where all
        is taken).
        """
        spot = _nearest_free(self.pixel(x, z), (size, size), self.area, list(self.tiles.values()))
        return spot if spot is not None else (round(self.pixel(x, z)[0]), round(self.pixel(x, z)[1]))


@lru_cache(maxsize=64)
def make_plan(
    labels: tuple[tuple[str, float, float, float, int, int], ...], floor: tuple[tuple[int, int], ...], area: Box
) -> Plan:
    """Lay out a room.

    Args:
        labels: for each receptacle its name, x, height and z in metres, and the width and height of its tile in pixels.
        floor: reachable grid points (units of 0.25 m).
        area: the box of the picture that may be used.
    """
    xs = [x for _, x, _, _, _, _ in labels] + [column * GRID for column, _ in floor] or [0.0]
    zs = [z for _, _, _, z, _, _ in labels] + [row * GRID for _, row in floor] or [0.0]
    bounds = (min(xs) - GRID, max(xs) + GRID, min(zs) - GRID, max(zs) + GRID)
    tiles: dict[str, Box] = {}
    for name, x, height, z, wide, tall in sorted(labels, key=lambda label: (-label[3], label[1], -label[2], label[0])):
        across, down = _project(x, z, area, bounds)
        wanted = (across, down - (height - 1) * 6)
        centre = _nearest_free(wanted, (wide, tall), area, list(tiles.values()))
        if centre is None:  # more labels than the picture has room for: stacked at the left edge, never dropped
            centre = (area[0] + wide // 2, area[1] + tall // 2 + len(tiles) * tall % max(1, area[3] - area[1] - tall))
        tiles[name] = _box(centre, wide, tall)
    cells = tuple(_cell(column, row, area, bounds) for column, row in floor)
    return Plan(tiles, cells, area, bounds)


def _project(x: float, z: float, area: Box, bounds: tuple[float, float, float, float]) -> tuple[float, float]:
    left, top, right, bottom = area
    low_x, high_x, low_z, high_z = bounds
    return left + (x - low_x) / (high_x - low_x) * (right - left), bottom - (z - low_z) / (high_z - low_z) * (
        bottom - top
    )


def _cell(column: int, row: int, area: Box, bounds: tuple[float, float, float, float]) -> Box:
    half = GRID / 2
    left, bottom = _project(column * GRID - half, row * GRID - half, area, bounds)
    right, top = _project(column * GRID + half, row * GRID + half, area, bounds)
    return round(left), round(top), round(right), round(bottom)


def _box(centre: tuple[int, int], wide: int, tall: int) -> Box:
    left, top = centre[0] - wide // 2, centre[1] - tall // 2
    return left, top, left + wide, top + tall


def _nearest_free(
    wanted: tuple[float, float], size: tuple[int, int], area: Box, taken: Sequence[Box]
) -> tuple[int, int] | None:
    """Return the centre nearest to `wanted` where a box of `size` lies in the area and meets none of `taken`."""
    wide, tall = size
    lefts: NDArray[np.int64] = np.arange(area[0], area[2] - wide + 1, STEP)
    tops: NDArray[np.int64] = np.arange(area[1], area[3] - tall + 1, STEP)
    if not len(lefts) or not len(tops):
        return None
    free = np.ones((len(tops), len(lefts)), bool)
    for left, top, right, bottom in taken:
        columns = (lefts < right) & (lefts + wide > left)
        rows = (tops < bottom) & (tops + tall > top)
        free[np.ix_(rows, columns)] = False
    if not free.any():
        return None
    distance = (lefts[None, :] + wide / 2 - wanted[0]) ** 2 + (tops[:, None] + tall / 2 - wanted[1]) ** 2
    row, column = np.unravel_index(int(np.argmin(np.where(free, distance, np.inf))), free.shape)
    return int(lefts[column]) + wide // 2, int(tops[row]) + tall // 2


BASE = 448
"""Side of the smallest picture that is drawn, pixels; smaller ones are scaled down from it and their labels suffer."""

BAND = 96
"""Height of the text band at the bottom, pixels at the basic size."""

MARGIN, BAR = 3, 5
"""Margin and door bar of a tile, pixels at the basic size."""

LABEL_SIZES = ((14, 16), (12, 30), (11, 1000))
"""Font size of labels (pixels at the basic size) for up to this number of receptacles."""

LARGEST_TEXT, SMALLEST_TEXT = 16, 9
"""Font sizes of the band, pixels at the basic size."""

Colour = tuple[int, int, int]
WALL: Colour = (96, 98, 104)
FLOOR: Colour = (214, 204, 186)
INK: Colour = (10, 10, 10)
BAND_GROUND: Colour = (255, 255, 255)
CLOSED: Colour = (150, 66, 20)
OPEN: Colour = (20, 160, 50)
HERE: Colour = (225, 20, 30)
AGENT: Colour = (30, 80, 235)
_GROUPS: tuple[tuple[Colour, tuple[str, ...]], ...] = (
    ((190, 222, 252), ("fridge", "microwave", "coffeemachine", "toaster", "stoveburner", "tvstand")),
    ((176, 238, 236), ("sinkbasin", "bathtubbasin", "toilet", "towelholder", "handtowelholder", "toiletpaperhanger")),
    ((250, 214, 226), ("sofa", "armchair", "bed", "ottoman")),
    ((255, 244, 178), ("countertop", "diningtable", "coffeetable", "sidetable", "desk", "cart")),
    ((240, 222, 196), ("cabinet", "drawer", "shelf", "dresser", "safe")),
)
_OTHER: Colour = (226, 226, 226)


class RoomView:
    """The picture of one game's room.

    Args:
        ids: the simulator's id of each named thing, for its position.
        world: the state at the start.
        floor: `[n, 2] int`, reachable grid points.
        size: height and width of the pictures, pixels.
    """

    def __init__(self, ids: Mapping[str, str], world: World, floor: NDArray[np.int64], size: tuple[int, int]) -> None:
        self.size = size
        self.scale = max(1.0, min(size) / BASE)
        side = round(BASE * self.scale)
        edge = self._px(4)
        area = (edge, edge, side - edge, side - self._px(BAND) - edge)
        self._label = self._px(next(size for size, most in LABEL_SIZES if len(world.receptacle_kinds) <= most))
        labels = []
        for name in sorted(world.receptacle_kinds, key=number_key):
            x, height, z = position_of(ids[name])
            wide = round(_font(self._label).getlength(name)) + 2 * self._px(MARGIN) + self._px(BAR)
            labels.append((name, x, height, z, wide, self._label + self._px(MARGIN) + 1))
        self.plan: Plan = make_plan(tuple(labels), tuple((int(column), int(row)) for column, row in floor), area)
        self._kinds = dict(world.receptacle_kinds)
        self._spots: dict[tuple[int, int], tuple[int, int]] = {}
        self._base = self._draw_base(side, world)

    def draw(self, world: World) -> NDArray[np.uint8]:
        """Draw a state: a fresh `[H, W, 3] uint8` array."""
        picture = self._base.copy()
        pen = ImageDraw.Draw(picture)
        here = world.receptacles_here()
        for name in sorted(world.opened | set(here), key=number_key):
            self._draw_tile(pen, name, world, here=name in here)
        self._draw_agent(pen, world)
        self._draw_band(pen, world, picture.width, picture.height)
        return fit_image(np.asarray(picture), self.size)

    def _draw_base(self, side: int, world: World) -> Image.Image:
        picture = Image.new("RGB", (side, side), WALL)
        pen = ImageDraw.Draw(picture)
        for cell in self.plan.cells:
            pen.rectangle(_inner(cell), fill=FLOOR)
        for name in self.plan.tiles:
            self._draw_tile(pen, name, world, here=False, start=True)
        return picture

    def _draw_tile(self, pen: ImageDraw.ImageDraw, name: str, world: World, *, here: bool, start: bool = False) -> None:
        box = self.plan.tiles[name]
        kind = self._kinds[name]
        ground = next((colour for colour, kinds in _GROUPS if kind in kinds), _OTHER)
        pen.rectangle(_inner(box), fill=ground, outline=HERE if here else INK, width=self._px(2) if here else 1)
        if name in world.openable:
            inset = self._px(2)
            bar = (box[0] + inset, box[1] + inset, box[0] + inset + self._px(BAR), box[3] - inset)
            pen.rectangle(_inner(bar), fill=OPEN if name in world.opened and not start else CLOSED)
        centre = ((box[0] + box[2] + self._px(BAR)) / 2, (box[1] + box[3]) / 2)
        pen.text(centre, name, INK, font=_font(self._label), anchor="mm")

    def _draw_agent(self, pen: ImageDraw.ImageDraw, world: World) -> None:
        column, row, turns = pose_of(world.agent_at)
        size = self._px(13)
        if (column, row) not in self._spots:
            self._spots[(column, row)] = self.plan.free_spot(column * GRID, row * GRID, size)
        x, y = self._spots[(column, row)]
        half = size // 2
        pen.ellipse((x - half, y - half, x + half, y + half), fill=AGENT, outline=BAND_GROUND)
        dx, dy = ((0, -1), (1, 0), (0, 1), (-1, 0))[turns]
        pen.line((x, y, x + dx * half, y + dy * half), fill=BAND_GROUND, width=self._px(3))

    def _draw_band(self, pen: ImageDraw.ImageDraw, world: World, width: int, height: int) -> None:
        top = height - self._px(BAND)
        pen.rectangle((0, top, width, height), fill=BAND_GROUND)
        pen.line((0, top, width, top), fill=INK, width=self._px(1))
        lines, size = self._fit(describe(world), width - 2 * self._px(6), self._px(BAND) - self._px(6))
        for index, line in enumerate(lines):
            pen.text((self._px(6), top + self._px(4) + index * round(size * 1.18)), line, INK, font=_font(size))

    def _fit(self, sentences: list[str], width: int, height: int) -> tuple[list[str], int]:
        """Wrap sentences at the largest font size that fits."""
        for size in range(self._px(LARGEST_TEXT), self._px(SMALLEST_TEXT) - 1, -1):
            lines = [line for sentence in sentences for line in _wrap(sentence, size, width)]
            if len(lines) * round(size * 1.18) <= height:
                return lines, size
        return lines, size

    def _px(self, length: float) -> int:
        return round(length * self.scale)


def describe(world: World) -> list[str]:
    """Return the sentences of the picture's text band."""
    sentences = [f"Holding: {_with_state(world.held, world) if world.held else 'nothing'}"]
    here = world.receptacles_here()
    things = world.visible()
    for name in here:
        if name not in things:
            sentences.append(f"At {name} (closed)")
            continue
        state = " (open)" if name in world.openable else ""
        sentences.append(
            f"At {name}{state}: {', '.join(_with_state(thing, world) for thing in things[name]) or 'empty'}"
        )
    return sentences if here else [*sentences, "In the middle of the room"]


def _with_state(thing: str, world: World) -> str:
    words = [word for word in ("clean", "hot", "cool", "sliced") if thing in world.states[word]]
    if thing in world.toggled:
        words.append("on")
    return f"{thing} ({', '.join(words)})" if words else thing


def _wrap(sentence: str, size: int, width: int) -> list[str]:
    lines, line = [], ""
    for word in sentence.replace(", ", ",\x00").replace(" ", "\x01").split("\x00"):
        part = word.replace("\x01", " ")
        longer = f"{line} {part}" if line else part
        if line and _font(size).getlength(longer) > width:
            lines.append(line)
            longer = part
        line = longer
    return [*lines, line]


def _inner(box: Box) -> Box:
    """Return a box for Pillow, which counts the last row and column in."""
    return box[0], box[1], max(box[0], box[2] - 1), max(box[1], box[3] - 1)


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)
