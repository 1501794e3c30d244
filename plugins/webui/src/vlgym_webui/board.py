"""The picture of a turn: the target's screenshots, and under them those of the page so far."""

import io
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFont

from vlgym.types import Image

GROUND = (38, 42, 51)
INK = (255, 255, 255)
TARGET = (126, 200, 255)
YOURS = (255, 196, 92)
CAPTION = 20
GAP = 6
_font = lru_cache(maxsize=4)(ImageFont.load_default)


def draw_board(
    targets: Sequence[bytes], yours: Sequence[bytes | None] | None, names: Sequence[str], size: tuple[int, int]
) -> Image:
    """Return `[H, W, 3] uint8`: the target's moments, and in the lower half those of the own page.

    Pictures are PNG files; `yours` is `None` before any code, and `names` are of the moments.
    """
    height, width = size
    canvas = PILImage.new("RGB", (width, height), GROUND)
    with PILImage.open(io.BytesIO(targets[0])) as picture:
        aspect = picture.width / picture.height
    captions = [f"TARGET {number}: {name}" for number, name in enumerate(names)]
    share = height if yours is None else height // 2
    _draw_cells(canvas, list(targets), captions, TARGET, 0, share, aspect)

    # The pages stand in the target's arrangement, so that equal moments have equal places.
    if yours is not None:
        pages = [yours[number] if number < len(yours) else None for number in range(len(targets))]
        captions = [f"YOURS {number}" for number in range(len(pages))]
        _draw_cells(canvas, pages, captions, YOURS, share, height - share, aspect)
    return np.asarray(canvas).copy()


def arrange(count: int, aspect: float, size: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """Return the number of columns that makes `count` cells largest, and a cell's width and height.

    `aspect` is a picture's width over its height, `size` the area's `(H, W)` in pixels.
    """
    height, width = size
    best = (1, (1, 1))
    for columns in range(1, count + 1):
        rows = -(-count // columns)
        cell_w = min((width - GAP) / columns - GAP, ((height - GAP) / rows - GAP - CAPTION) * aspect)
        cell = (max(1, int(cell_w)), max(1, int(cell_w / aspect)))
        if cell[0] > best[1][0]:
            best = (columns, cell)
    return best


def _draw_cells(
    canvas: PILImage.Image,
    pictures: Sequence[bytes | None],
    captions: Sequence[str],
    color: tuple[int, int, int],
    top: int,
    height: int,
    aspect: float,
) -> None:
    draw, font = ImageDraw.Draw(canvas), _font(13)
    columns, (cell_w, cell_h) = arrange(len(pictures), aspect, (height, canvas.width))
    for position, (data, caption) in enumerate(zip(pictures, captions, strict=False)):
        left = GAP + (position % columns) * (cell_w + GAP)
        above = top + GAP + (position // columns) * (cell_h + CAPTION + GAP)
        draw.text((left, above + 2), _fit(caption, cell_w), fill=color, font=font)
        below = above + CAPTION
        if data is None:
            draw.rectangle((left, below, left + cell_w - 1, below + cell_h - 1), outline=color)
            draw.text((left + 8, below + 8), "no picture", fill=INK, font=font)
        else:
            canvas.paste(_scale(data, (cell_w, cell_h)), (left, below))


@lru_cache(maxsize=64)
def _scale(data: bytes, size: tuple[int, int]) -> PILImage.Image:
    with PILImage.open(io.BytesIO(data)) as picture:
        return picture.convert("RGB").resize(size, PILImage.Resampling.LANCZOS)


def _fit(text: str, width: int) -> str:
    while len(text) > 4 and _font(13).getlength(text) > width:
        text = text[:-4].rstrip() + "..."
    return text
