"""Draw a room as a plan: floor, named receptacles, open or closed, the agent, its load and its view.

Contents show only where the agent stands, of receptacles that are open or have no door. In a real
kitchen cabinets hang above drawers, so true positions coincide on a plan: each receptacle gets a tile
as near to its true place as fits, by a greedy search in a fixed order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vlgym.env.rendering import fit_image

from .game import World, number_key
from .rooms import GRID, pose_of, position_of

STEP = 4  # distance between candidate positions, pixels at the basic size
_font = lru_cache(maxsize=64)(ImageFont.load_default)
Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; right and bottom are outside


@dataclass(frozen=True)
class Plan:
    """The layout of a room's picture: a tile for each label, the reachable floor, the area of both.

    `bounds` are smallest and largest x, smallest and largest z of the area, in metres.
    """

    tiles: Mapping[str, Box]
    cells: tuple[Box, ...]
    area: Box
    bounds: tuple[float, float, float, float]


@lru_cache(maxsize=64)
def make_plan(
    labels: tuple[tuple[str, float, float, float, int, int], ...], floor: tuple[tuple[int, int], ...], area: Box
) -> Plan:
    """Lay out a room; a label is a name, x, height and z (metres), width and height of its tile (pixels)."""
    xs = [x for _, x, _, _, _, _ in labels] + [column * GRID for column, _ in floor]
    zs = [z for _, _, _, z, _, _ in labels] + [row * GRID for _, row in floor]
    bounds = (min(xs) - GRID, max(xs) + GRID, min(zs) - GRID, max(zs) + GRID)

    # Tiles from the far wall on; what hangs higher is drawn a little further up.
    tiles: dict[str, Box] = {}
    order = sorted(labels, key=lambda label: (-label[3], label[1], -label[2], label[0]))
    for name, x, height, z, wide, tall in order:
        across, down = _project(x, z, area, bounds)
        wanted = (across, down - (height - 1) * 6)
        centre = _nearest_free(wanted, (wide, tall), area, list(tiles.values()))
        if centre is None:  # the picture is full: stacked at the left edge, never dropped
            down = len(tiles) * tall % max(1, area[3] - area[1] - tall)
            centre = (area[0] + wide // 2, area[1] + tall // 2 + down)
        left, top = centre[0] - wide // 2, centre[1] - tall // 2
        tiles[name] = (left, top, left + wide, top + tall)

    # Floor cells, each round its grid point.
    cells = []
    for column, row in floor:
        west, south = _project((column - 0.5) * GRID, (row - 0.5) * GRID, area, bounds)
        east, north = _project((column + 0.5) * GRID, (row + 0.5) * GRID, area, bounds)
        cells.append((round(west), round(north), round(east), round(south)))
    return Plan(tiles, tuple(cells), area, bounds)


def _project(x: float, z: float, area: Box, bounds: tuple[float, float, float, float]) -> tuple[float, float]:
    """Return the pixel of a point of the room; north (large z) is up."""
    left, top, right, bottom = area
    low_x, high_x, low_z, high_z = bounds
    across = left + (x - low_x) / (high_x - low_x) * (right - left)
    return across, bottom - (z - low_z) / (high_z - low_z) * (bottom - top)


def _nearest_free(
    wanted: tuple[float, float], size: tuple[int, int], area: Box, taken: Sequence[Box]
) -> tuple[int, int] | None:
    """Return the centre nearest to `wanted` of a box in the area that meets none of `taken`."""
    wide, tall = size
    lefts: NDArray[np.int64] = np.arange(area[0], area[2] - wide + 1, STEP)
    tops: NDArray[np.int64] = np.arange(area[1], area[3] - tall + 1, STEP)
    free = np.ones((len(tops), len(lefts)), bool)
    for left, top, right, bottom in taken:
        columns = (lefts < right) & (lefts + wide > left)
        rows = (tops < bottom) & (tops + tall > top)
        free[np.ix_(rows, columns)] = False
    if not free.any():
        return None

    # Of equals the first is taken, so that the plan is the same everywhere.
    x, y = lefts[None, :] + wide / 2 - wanted[0], tops[:, None] + tall / 2 - wanted[1]
    distance = x**2 + y**2
    row, column = np.unravel_index(int(np.argmin(np.where(free, distance, np.inf))), free.shape)
    return int(lefts[column]) + wide // 2, int(tops[row]) + tall // 2


BASE = 448  # side of the smallest drawn picture, pixels; smaller ones are scaled down from it

BAND = 96  # height of the text band at the bottom, pixels at the basic size
MARGIN, BAR = 3, 5  # margin and door bar of a tile, pixels at the basic size
LABEL_SIZES = ((14, 16), (12, 30), (11, 1000))  # font size for up to this number of receptacles
LARGEST_TEXT, SMALLEST_TEXT = 16, 9  # font sizes of the band, pixels at the basic size
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
    ((176, 238, 236), (
        "sinkbasin", "bathtubbasin", "toilet", "towelholder", "handtowelholder", "toiletpaperhanger",
    )),
    ((250, 214, 226), ("sofa", "armchair", "bed", "ottoman")),
    ((255, 244, 178), ("countertop", "diningtable", "coffeetable", "sidetable", "desk", "cart")),
    ((240, 222, 196), ("cabinet", "drawer", "shelf", "dresser", "safe")),
)  # fmt: skip
_OTHER: Colour = (226, 226, 226)


class RoomView:
    """The picture of one game's room, of `size` (height and width in pixels).

    `ids` are the simulator's, for positions; `floor` are the reachable grid points, `[n, 2] int`.
    """

    def __init__(self, ids: Mapping[str, str], world: World, floor: NDArray[np.int64], size: tuple[int, int]) -> None:
        self.size = size
        self.scale = max(1.0, min(size) / BASE)
        side, edge = round(BASE * self.scale), self._px(4)
        area = (edge, edge, side - edge, side - self._px(BAND) - edge)

        # The more receptacles there are, the smaller are their labels.
        names = sorted(world.receptacle_kinds, key=number_key)
        self._label = self._px(next(size for size, most in LABEL_SIZES if len(names) <= most))
        labels = []
        for name in names:
            x, height, z = position_of(ids[name])
            wide = round(_font(self._label).getlength(name)) + 2 * self._px(MARGIN) + self._px(BAR)
            labels.append((name, x, height, z, wide, self._label + self._px(MARGIN) + 1))
        points = tuple((int(column), int(row)) for column, row in floor)
        self.plan: Plan = make_plan(tuple(labels), points, area)

        # The part that no command changes is drawn once: the floor and all closed furniture.
        self._base = Image.new("RGB", (side, side), WALL)
        pen = ImageDraw.Draw(self._base)
        for cell in self.plan.cells:
            pen.rectangle(_inner(cell), fill=FLOOR)
        closed = replace(world, opened=frozenset())
        for name in self.plan.tiles:
            self._draw_tile(pen, name, closed, here=False)

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

    def _draw_tile(self, pen: ImageDraw.ImageDraw, name: str, world: World, *, here: bool) -> None:
        box = left, top, right, bottom = self.plan.tiles[name]
        kind = world.receptacle_kinds[name]
        ground = next((colour for colour, kinds in _GROUPS if kind in kinds), _OTHER)
        frame, width = (HERE, self._px(2)) if here else (INK, 1)
        pen.rectangle(_inner(box), fill=ground, outline=frame, width=width)

        # The door's bar stands at the left, so the label is centred in the rest.
        if name in world.openable:
            inset = self._px(2)
            bar = (left + inset, top + inset, left + inset + self._px(BAR), bottom - inset)
            pen.rectangle(_inner(bar), fill=OPEN if name in world.opened else CLOSED)
        centre = ((left + right + self._px(BAR)) / 2, (top + bottom) / 2)
        pen.text(centre, name, INK, font=_font(self._label), anchor="mm")

    def _draw_agent(self, pen: ImageDraw.ImageDraw, world: World) -> None:
        column, row, turns = pose_of(world.agent_at)
        size = self._px(13)
        across, down = _project(column * GRID, row * GRID, self.plan.area, self.plan.bounds)
        tiles = list(self.plan.tiles.values())
        spot = _nearest_free((across, down), (size, size), self.plan.area, tiles)
        (x, y), half = spot or (round(across), round(down)), size // 2
        pen.ellipse((x - half, y - half, x + half, y + half), fill=AGENT, outline=BAND_GROUND)
        dx, dy = ((0, -1), (1, 0), (0, 1), (-1, 0))[turns]
        pen.line((x, y, x + dx * half, y + dy * half), fill=BAND_GROUND, width=self._px(3))

    def _draw_band(self, pen: ImageDraw.ImageDraw, world: World, width: int, height: int) -> None:
        top = height - self._px(BAND)
        pen.rectangle((0, top, width, height), fill=BAND_GROUND)
        pen.line((0, top, width, top), fill=INK, width=self._px(1))

        # The largest font that fits; the smallest runs over the edge.
        room = self._px(BAND) - self._px(6)
        for size in range(self._px(LARGEST_TEXT), self._px(SMALLEST_TEXT) - 1, -1):
            lines = [line for sentence in describe(world) for line in _wrap(sentence, size, width - 2 * self._px(6))]
            if len(lines) * round(size * 1.18) <= room:
                break
        for index, line in enumerate(lines):
            down = top + self._px(4) + index * round(size * 1.18)
            pen.text((self._px(6), down), line, INK, font=_font(size))

    def _px(self, length: float) -> int:
        return round(length * self.scale)


def describe(world: World) -> list[str]:
    """Return the sentences of the picture's text band."""
    sentences = [f"Holding: {_with_state(world.held, world) if world.held else 'nothing'}"]
    things = world.visible()
    for name in world.receptacles_here():
        if name not in things:
            sentences.append(f"At {name} (closed)")
            continue
        state = " (open)" if name in world.openable else ""
        contents = ", ".join(_with_state(thing, world) for thing in things[name])
        sentences.append(f"At {name}{state}: {contents or 'empty'}")
    return sentences if len(sentences) > 1 else [*sentences, "In the middle of the room"]


def _with_state(thing: str, world: World) -> str:
    words = [word for word in ("clean", "hot", "cool", "sliced") if thing in world.states[word]]
    if thing in world.toggled:
        words.append("on")
    return f"{thing} ({', '.join(words)})" if words else thing


def _wrap(sentence: str, size: int, width: int) -> list[str]:
    lines, line = [], ""
    for part in sentence.replace(", ", ",\x00").split("\x00"):
        longer = f"{line} {part}" if line else part
        if line and _font(size).getlength(longer) > width:
            lines.append(line)
            longer = part
        line = longer
    return [*lines, line]


def _inner(box: Box) -> Box:
    """Return a box for Pillow, which counts the last row and column in."""
    return box[0], box[1], max(box[0], box[2] - 1), max(box[1], box[3] - 1)
