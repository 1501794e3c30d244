"""Access to the installed gym-sokoban 0.0.6 by file: its room generator and its sprites.

Importing `gym_sokoban` would import the old `gym`, `pkg_resources` and `imageio`. Its generator
module needs none of them, so it is loaded from its path as a private module, with seeded generators
in place of the two global ones it draws from.
"""

import importlib.metadata
import importlib.util
import random
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vlgym.errors import UserError

from .level import Board

VERSION = "0.0.6"

# File names of the sprites in the order of the package's cell codes 0 to 6.
SPRITES = ("wall", "floor", "box_target", "box_on_target", "box", "player", "player_on_target")
SPRITE_PIXELS = 16
CELL_PIXELS = 32  # side of a cell in the default picture: the sprites, doubled
SMALLEST_CELL = 8  # below this many pixels a side the sprites cannot be told apart

_INSTALL = f'python -m pip install --no-deps "gym-sokoban=={VERSION}"'


def find_file(path: str) -> Path:
    """Return the path of a file of the installed gym-sokoban, for example `envs/room_utils.py`."""
    try:
        distribution = importlib.metadata.distribution("gym-sokoban")
    except importlib.metadata.PackageNotFoundError:
        need = "Sokoban needs the rooms and sprites of gym-sokoban, which is not installed."
        raise UserError(f"{need} Install it: {_INSTALL}") from None
    if distribution.version != VERSION:
        need = f"Sokoban needs gym-sokoban {VERSION}, found {distribution.version}."
        raise UserError(f"{need} Install it: {_INSTALL}")

    # The source archive of that version has no sprites.
    file = Path(str(distribution.locate_file(f"gym_sokoban/{path}")))
    if not file.is_file():
        need = f"gym-sokoban is installed without {path} (its source archive lacks files)."
        raise UserError(f"{need} Install the wheel: {_INSTALL}")
    return file


def load_generator() -> ModuleType:
    """Return a fresh private copy of the package's `room_utils` module, for `seed_generator`."""
    spec = importlib.util.spec_from_file_location("_vlgym_sokoban_room_utils", find_file("envs/room_utils.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seed_generator(module: ModuleType, seed: int) -> None:
    """Give the private module its own `random` and `np.random` of a seed, 0 to 2**32 - 1.

    The rooms are those of the package after `random.seed(seed); numpy.random.seed(seed)`.
    """
    module.random = random.Random(seed)  # type: ignore[attr-defined]
    own = {**vars(np), "random": np.random.RandomState(seed)}
    module.np = SimpleNamespace(**own)  # type: ignore[attr-defined]


@cache
def load_tiles(pixels: int) -> NDArray[np.uint8]:
    """Return the sprites by cell code, `pixels` a side: `[7, pixels, pixels, 3] uint8`, read-only.

    Whole multiples of 16 pixels repeat pixels exactly; other sizes are resampled (Lanczos).
    """
    method = Image.Resampling.NEAREST if pixels % SPRITE_PIXELS == 0 else Image.Resampling.LANCZOS
    tiles = []
    for name in SPRITES:
        with Image.open(find_file(f"envs/surface/{name}.png")) as sprite:
            tiles.append(np.asarray(sprite.convert("RGB").resize((pixels, pixels), method)))
    stacked = np.stack(tiles)
    stacked.setflags(write=False)
    return stacked


def draw_board(board: Board, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Return `[H, W, 3] uint8`: square cells as large as fit into `size`, centred on black."""
    (height, width), level = size, board.level
    pixels = min(height // level.rows, width // level.columns)
    if pixels < SMALLEST_CELL:
        raise UserError(
            f"image_size={size} leaves {pixels} pixels a cell for a room of {level.rows} x "
            f"{level.columns} cells; it takes at least {SMALLEST_CELL}. "
            f"Choose image_size=({CELL_PIXELS * level.rows}, {CELL_PIXELS * level.columns})."
        )

    # Cell by cell, round the middle.
    tiles, picture = load_tiles(pixels), np.zeros((*size, 3), np.uint8)
    above, before = (height - pixels * level.rows) // 2, (width - pixels * level.columns) // 2
    for cell in range(level.rows * level.columns):
        row, column = divmod(cell, level.columns)
        top, left = above + row * pixels, before + column * pixels
        picture[top : top + pixels, left : left + pixels] = tiles[board.code(cell)]
    return picture
