"""Visibility of an element: photographs of target and page, compared where the element is.

    agreement = 2 |covariance| / (variance of the one + variance of the other)

over the colours in a grid of cells on the element's box and a margin. This is the contrast and
structure term of the structural similarity index (Wang et al., 2004): 1 for the same picture, 0 for
none or another, near 0 for a faint one. Colours and places change little.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image as PILImage

from .aes import Box
from .browser import Render

# Agreements up to which, and from which on, an element is not seen, and is seen.
NOTHING, ALL = 0.3, 0.6
MARGIN = 8.0  # pixels around an element, against which most boxes show
_CELL, _MOST_CELLS = 4.0, 48
_FLAT = 0.5  # variance of colours (levels of 0 to 255) below which a target shows nothing


class Photographs:
    """The photographs of two renders, moment by moment."""

    def __init__(self, target: Render, own: Render) -> None:
        self._renders = (target, own)
        self._tables: dict[tuple[int, int], np.ndarray | None] = {}
        self._whole: dict[int, float] = {}

    def agree(self, moment: int, target: Box, box: Box) -> float:
        """Return how far an element is to be seen as its target is, from 0 to 1.

        Boxes are in pixels of the document. Where the target itself shows nothing (outside the
        window, or the same colour as all around it), the whole photographs are compared.
        """
        first, second = self._table(0, moment), self._table(1, moment)
        if first is None or second is None:
            return 0.0
        area = self._visible(target, moment, first)
        if area is None:
            return self._agree_whole(moment, first, second)

        # The same part of the other element, in its own size and place.
        x, y, width, height = area
        wide, high = max(box[2], 1.0) / max(target[2], 1.0), max(box[3], 1.0) / max(target[3], 1.0)
        left, top = self._renders[0].views[moment]
        own_left, own_top = self._renders[1].views[moment]
        partner = (
            box[0] - own_left + (x - target[0] + left) * wide, box[1] - own_top + (y - target[1] + top) * high,
            width * wide, height * high,
        )  # fmt: skip

        # The share of the target's colours that the other element has, too.
        wanted = _read_cells(first, area, _count_cells(width, height))
        if wanted.var(axis=(0, 1)).sum() < _FLAT:
            return self._agree_whole(moment, first, second)
        return _share(wanted, _read_cells(second, partner, _count_cells(width, height)))

    def _agree_whole(self, moment: int, first: np.ndarray, second: np.ndarray) -> float:
        if moment not in self._whole:
            box = (0.0, 0.0, first.shape[1] - 1.0, first.shape[0] - 1.0)
            cells = _count_cells(box[2], box[3])
            self._whole[moment] = _share(_read_cells(first, box, cells), _read_cells(second, box, cells))
        return self._whole[moment]

    def _visible(self, box: Box, moment: int, table: np.ndarray) -> Box | None:
        """Return the part of a target's box, with its margin, that is in the photograph."""
        left, top = self._renders[0].views[moment]
        height, width = table.shape[0] - 1, table.shape[1] - 1
        x, y = box[0] - left, box[1] - top
        if x >= width or y >= height or x + box[2] <= 0 or y + box[3] <= 0:
            return None
        begin_x, begin_y = max(0.0, x - MARGIN), max(0.0, y - MARGIN)
        end_x, end_y = min(width, x + box[2] + MARGIN), min(height, y + box[3] + MARGIN)
        return begin_x, begin_y, end_x - begin_x, end_y - begin_y

    def _table(self, which: int, moment: int) -> np.ndarray | None:
        """Return a photograph's summed-area table, `[H + 1, W + 1, 3] float64`, if any."""
        key = (which, moment)
        if key not in self._tables:
            data = self._renders[which].pictures[moment]
            self._tables[key] = None if data is None else _sum_areas(data)
        return self._tables[key]


def _sum_areas(png: bytes) -> np.ndarray:
    with PILImage.open(io.BytesIO(png)) as picture:
        pixels = np.asarray(picture.convert("RGB"), dtype=np.float64)
    table = np.zeros((pixels.shape[0] + 1, pixels.shape[1] + 1, 3))
    table[1:, 1:] = pixels.cumsum(axis=0).cumsum(axis=1)
    return table


def _count_cells(width: float, height: float) -> tuple[int, int]:
    """Return rows and columns of the grid."""
    rows, columns = (max(2, min(_MOST_CELLS, round(side / _CELL))) for side in (height, width))
    return rows, columns


def _read_cells(table: np.ndarray, box: Box, cells: tuple[int, int]) -> np.ndarray:
    """Return the mean colour of each cell `[rows, columns, 3] float64`; outside, the edge's."""
    rows = np.linspace(box[1], box[1] + box[3], cells[0] + 1)
    columns = np.linspace(box[0], box[0] + box[2], cells[1] + 1)
    top, bottom = _bounds(rows, table.shape[0] - 1)
    left, right = _bounds(columns, table.shape[1] - 1)
    sums = table[np.ix_(bottom, right)] - table[np.ix_(top, right)] - table[np.ix_(bottom, left)]
    sums += table[np.ix_(top, left)]
    return sums / ((bottom - top)[:, None, None] * (right - left)[None, :, None])


def _bounds(edges: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return whole first and last pixels of cells, at least one pixel each."""
    begin = np.clip(np.floor(edges[:-1] + 0.5).astype(np.int64), 0, most - 1)
    end = np.clip(np.floor(edges[1:] + 0.5).astype(np.int64), 1, most)
    return begin, np.maximum(end, begin + 1)


def _share(wanted: np.ndarray, candidate: np.ndarray) -> float:
    first, second = wanted - wanted.mean(axis=(0, 1)), candidate - candidate.mean(axis=(0, 1))
    total = float((first**2).sum() + (second**2).sum())
    agreement = 2 * abs(float((first * second).sum())) / total if total > 0 else 1.0
    return min(1.0, max(0.0, (agreement - NOTHING) / (ALL - NOTHING)))
