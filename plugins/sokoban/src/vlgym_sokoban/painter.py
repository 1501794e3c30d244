"""The picture of a board from the package's sprites."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import UserError

from .board import Board
from .package import load_tiles

CELL_PIXELS = 32
"""Side of a cell in the default picture: the 16-pixel sprites, doubled."""

SMALLEST_CELL = 8
"""Below this many pixels a side the sprites cannot be told apart."""


def draw_board(board: Board, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return a picture `[H, W, 3] uint8` of a board: square cells as large as fit, centred on black."""
    (height, width), level = size, board.level
    pixels = min(height // level.rows, width // level.columns)
    if pixels < SMALLEST_CELL:
        raise UserError(
            f"image_size={size} leaves {pixels} pixels a cell for a room of {level.rows} x "
            f"{level.columns} cells; it takes at least {SMALLEST_CELL}. "
            f"Choose image_size=({CELL_PIXELS * level.rows}, {CELL_PIXELS * level.columns})."
        )
    picture, tiles = np.zeros((*size, 3), np.uint8), load_tiles(pixels)
    for cell in range(level.rows * level.columns):
        row, column = divmod(cell, level.columns)
        top = (height - pixels * level.rows) // 2 + row * pixels
        left = (width - pixels * level.columns) // 2 + column * pixels
        picture[top : top + pixels, left : left + pixels] = tiles[board.code(cell)]
    return picture
