"""Thumbnails of pictures, to test that two pictures show the same thing, whatever the font and the renderer.

A picture becomes 16 x 16 grey levels and 6 x 6 of each colour difference. `compare_sheets` is strict where a spec says
that the same pixels are drawn everywhere, and else allows for other renderers and fonts. It does not read.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from ..types import Image

SIDE, COLOUR_SIDE = 16, 6
SHEET_SIZE = SIDE * SIDE + 2 * COLOUR_SIDE * COLOUR_SIDE
MOST_PICTURES = 160
"""Most pictures of a sheet; more is refused when one is read."""

EXACT = 3
"""Grey levels (of 256) by which a cell may differ where an environment draws the same pixels everywhere."""

SIMILAR = 18.0
"""Grey levels by which the cells of a picture may differ on average where renderers and fonts differ by machine."""

NEARER = 1.25
"""Factor by which another picture must be nearer than its own before a picture counts as another one's."""

Sheet = NDArray[np.uint8]
"""`[N, SIZE] uint8`."""


def shrink(image: Image) -> NDArray[np.uint8]:
    """Return `[SIZE] uint8`: grey levels row by row, then both colour differences."""
    luma, *chroma = Pillow.fromarray(image).convert("YCbCr").split()
    parts = [np.asarray(luma.resize((SIDE, SIDE), Pillow.Resampling.BOX))]
    parts += [np.asarray(part.resize((COLOUR_SIDE, COLOUR_SIDE), Pillow.Resampling.BOX)) for part in chroma]
    return np.concatenate([part.ravel() for part in parts])


def pack_pictures(pictures: Sequence[NDArray[np.uint8]]) -> str:
    """Return shrunk pictures as text: base64 of compressed bytes."""
    return base64.b64encode(zlib.compress(np.stack(pictures).tobytes(), 9)).decode() if pictures else ""


def unpack_pictures(text: str) -> Sheet:
    """Return what `pack_pictures` wrote.

    Raises:
        ValueError: it is something else, or too much.
    """
    if not text:
        return np.zeros((0, SHEET_SIZE), np.uint8)
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), MOST_PICTURES * SHEET_SIZE + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"not a sheet of stored pictures: {error}") from None
    if len(data) > MOST_PICTURES * SHEET_SIZE or len(data) % SHEET_SIZE or not reader.eof:
        raise ValueError("not a sheet of stored pictures: wrong length")
    return np.frombuffer(data, np.uint8).reshape(-1, SHEET_SIZE)


def compare_sheets(stored: Sheet, live: Sheet, *, exact: bool) -> str | None:
    """Return what differs, in words; `None` where both show the same things.

    Args:
        stored: as recorded.
        live: as measured now, in the same order.
        exact: whether the same pixels are drawn everywhere; else other renderers and fonts are allowed for.
    """
    if len(stored) != len(live):
        return f"{len(live)} pictures instead of {len(stored)}"
    if not len(stored):
        return None
    difference = np.abs(stored.astype(int) - live.astype(int))
    if difference.max() <= EXACT:
        return None
    if exact:
        number = int(difference.max(axis=1).argmax())
        changed = int((difference.max(axis=1) > EXACT).sum())
        return (
            f"{changed} of {len(stored)} pictures differ, most of all number {number}, by {difference[number].max()} "
            "of 256 levels in a cell"
        )
    return _compare_drawings(stored, live)


def _compare_drawings(stored: Sheet, live: Sheet) -> str | None:
    """Compare where another renderer or font may have drawn."""
    one, other = _grey(stored), _grey(live)
    own = np.abs(one - other).mean((1, 2))
    for name, turned in (
        ("upside down", other[:, ::-1]),
        ("mirrored", other[:, :, ::-1]),
        ("turned by 180 degrees", other[:, ::-1, ::-1]),
        ("turned by 90 degrees", other.transpose(0, 2, 1)[:, ::-1]),
        ("turned by 90 degrees", other.transpose(0, 2, 1)[:, :, ::-1]),
    ):
        if np.abs(one - turned).mean() < 0.6 * own.mean():
            return f"the pictures are {name}"
    colour = np.abs(stored[:, SIDE * SIDE :].astype(float) - live[:, SIDE * SIDE :]).mean(1)
    if max(own.max(), colour.max()) > SIMILAR:
        worst = int((own if own.max() > SIMILAR else colour).argmax())
        amount = max(own.max(), colour.max())
        return f"picture {worst} differs by {amount:.1f} of 256 levels on average, more than fonts and renderers do"
    wrong = count_confused(one, other)
    if wrong >= max(2, 0.25 * len(stored)):
        return f"{wrong} of {len(stored)} pictures look like another one's stored picture"
    return None


def count_confused(stored: NDArray[np.float64], live: NDArray[np.float64]) -> int:
    """Return how many live pictures are clearly nearer to the stored picture of another one than to their own.

    What all pictures have in common is taken out first: a font or a renderer changes that in all alike.

    Args:
        stored: `[N, H, W]` grey levels.
        live: the same.
    """
    one, other = stored - stored.mean(0), live - live.mean(0)
    between = np.abs(other[:, None] - one[None]).mean((2, 3))
    distinct = np.abs(one[:, None] - one[None]).mean((2, 3)) > 0.2
    others = np.where(distinct, between, np.inf).min(1)
    return int((np.diag(between) > NEARER * others).sum())


def _grey(sheet: Sheet) -> NDArray[np.float64]:
    return sheet[:, : SIDE * SIDE].reshape(-1, SIDE, SIDE).astype(float)
