"""Pictures in little, to be stored and compared: is the same thing shown, whatever the font and the renderer?

A picture becomes 16 x 16 grey levels and 6 x 6 of each colour difference. `compare_sheets` is strict where the renderer
is evidently the same (what never changes is drawn alike), and lenient where it is another one. It does not read: see
docs/check.md for what was measured.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from .types import Image

SIDE, COLOUR_SIDE = 16, 6
SIZE = SIDE * SIDE + 2 * COLOUR_SIDE * COLOUR_SIDE
MOST = 160
"""Most pictures of a sheet; more is refused when one is read."""

STRICT = 5
"""Grey levels (of 256) by which a cell may differ where the same renderer drew."""

LENIENT = 13.0
"""Grey levels by which cells may differ on average where another renderer or font drew."""

EDGE = 6
"""Grey levels between neighbouring cells from which something stands there."""

Sheet = NDArray[np.uint8]
"""`[N, SIZE] uint8`."""


def shrink(image: Image) -> NDArray[np.uint8]:
    """Return `[SIZE] uint8`: grey levels row by row, then both colour differences."""
    luma, *chroma = Pillow.fromarray(image).convert("YCbCr").split()
    parts = [np.asarray(luma.resize((SIDE, SIDE), Pillow.Resampling.BOX))]
    parts += [np.asarray(part.resize((COLOUR_SIDE, COLOUR_SIDE), Pillow.Resampling.BOX)) for part in chroma]
    return np.concatenate([part.ravel() for part in parts])


def pack(pictures: Sequence[NDArray[np.uint8]]) -> str:
    """Return shrunk pictures as text: base64 of compressed bytes."""
    return base64.b64encode(zlib.compress(np.stack(pictures).tobytes(), 9)).decode() if pictures else ""


def unpack(text: str) -> Sheet:
    """Return what `pack` wrote.

    Raises:
        ValueError: it is something else, or too much.
    """
    if not text:
        return np.zeros((0, SIZE), np.uint8)
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), MOST * SIZE + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"no stored pictures: {error}") from None
    if len(data) > MOST * SIZE or len(data) % SIZE or not reader.eof:
        raise ValueError("no stored pictures: wrong length")
    return np.frombuffer(data, np.uint8).reshape(-1, SIZE)


def compare_sheets(stored: Sheet, live: Sheet) -> str | None:
    """Return what differs, in words; `None` where both show the same things."""
    if len(stored) != len(live):
        return f"{len(live)} pictures instead of {len(stored)}"
    if not len(stored):
        return None
    difference = np.abs(stored.astype(int) - live.astype(int))
    if difference.max() <= STRICT:
        return None
    fixed = _list_fixed(stored)
    if fixed.sum() >= 4 and difference[:, fixed].max() <= STRICT:
        number = int(difference.max(axis=1).argmax())
        changed = int((difference.max(axis=1) > STRICT).sum())
        return (
            f"{changed} of {len(stored)} pictures show another thing (number {number} differs most, by "
            f"{difference[number].max()} of 256 grey levels in a cell), while what is always there is drawn as before"
        )
    return _compare_drawings(stored, live)


def _compare_drawings(stored: Sheet, live: Sheet) -> str | None:
    """Compare where another renderer or font drew."""
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
    if own.max() > LENIENT or colour.max() > LENIENT:
        worst = int(own.argmax() if own.max() > LENIENT else colour.argmax())
        amount = max(own.max(), colour.max())
        return f"picture {worst} differs by {amount:.1f} of 256 levels on average, more than fonts and renderers do"
    centred, centred_live = one - one.mean(0), other - other.mean(0)
    between = np.abs(centred_live[:, None] - centred[None]).mean((2, 3))
    distinct = np.abs(centred[:, None] - centred[None]).mean((2, 3)) > 0.2
    others = np.where(distinct, between, np.inf).min(1)
    wrong = np.diag(between) > 1.25 * others
    if wrong.sum() >= max(2, 0.25 * len(stored)):
        return f"{int(wrong.sum())} of {len(stored)} pictures look more like another one's stored picture"
    return None


def _grey(sheet: Sheet) -> NDArray[np.float64]:
    return sheet[:, : SIDE * SIDE].reshape(-1, SIDE, SIDE).astype(float)


def _list_fixed(sheet: Sheet) -> NDArray[np.bool_]:
    """Return `[SIZE] bool`: cells that are the same in all pictures and stand at an edge, so that something is drawn
    there."""
    grey = _grey(sheet)
    same = np.ptp(grey, axis=0) == 0
    steps = np.zeros((SIDE, SIDE), bool)
    for axis in (0, 1):
        jump = np.abs(np.diff(grey[0], axis=axis)) >= EDGE
        pad = [(0, 0), (0, 0)]
        for side in ((0, 1), (1, 0)):
            pad[axis] = side
            steps |= np.pad(jump, pad)
    return np.concatenate([(same & steps).ravel(), np.zeros(SIZE - SIDE * SIDE, bool)])
