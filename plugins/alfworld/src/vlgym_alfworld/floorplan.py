"""Where the labels go: every receptacle gets a tile of its own, as near to its true place as fits, and no two tiles
overlap.

In a real kitchen cabinets hang above drawers, so true positions coincide on a plan. Placement is greedy over a grid of
candidates, in a fixed order; it is a function of the room, and remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .rooms import GRID

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
