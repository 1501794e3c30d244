"""The picture of a board from the package's sprites, kept up to date cell by cell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import UserError

from .board import Board
from .package import load_tiles

CELL_PIXELS = 32  # side of a cell in the default picture: the 16-pixel sprites, doubled
SMALLEST_CELL = 8  # below this many pixels a side the sprites cannot be told apart


class Painter:
    """Draws boards into pictures of one size: square cells as large as fit, centred on black."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self._canvas = np.zeros((*size, 3), np.uint8)
        self._pixels = self._top = self._left = 0

    def draw(self, board: Board) -> None:
        height, width = self.size
        level = board.level
        self._pixels = min(height // level.rows, width // level.columns)
        if self._pixels < SMALLEST_CELL:
            raise UserError(
                f"image_size={self.size} leaves {self._pixels} pixels a cell for a room of {level.rows} x "
                f"{level.columns} cells; it takes at least {SMALLEST_CELL}. "
                f"Choose image_size=({CELL_PIXELS * level.rows}, {CELL_PIXELS * level.columns})."
            )

        # Centred on black.
        self._top = (height - self._pixels * level.rows) // 2
        self._left = (width - self._pixels * level.columns) // 2
        self._canvas[:] = 0
        self.redraw(board, range(level.rows * level.columns))

    def redraw(self, board: Board, cells: Iterable[int]) -> None:
        """Draw some cells of the board that `draw` saw last."""
        tiles, pixels = load_tiles(self._pixels), self._pixels
        for cell in cells:
            row, column = divmod(cell, board.level.columns)
            top, left = self._top + row * pixels, self._left + column * pixels
            self._canvas[top : top + pixels, left : left + pixels] = tiles[board.code(cell)]

    def picture(self) -> NDArray[np.uint8]:
        return self._canvas.copy()
