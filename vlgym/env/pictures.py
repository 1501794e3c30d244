"""Thumbnails of pictures, to test that two show the same, whatever the font and the renderer.

A picture becomes 16 x 16 grey levels and 6 x 6 of each colour difference.
"""

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
MOST_PICTURES = 160  # of a sheet; more is refused when one is read

# Grey levels (of 256) by which a cell may differ where the same pixels are drawn everywhere, and by
# which a picture's cells may differ on average elsewhere.
EXACT, SIMILAR = 3, 18.0
NEARER = 1.25  # factor by which another picture must be nearer before a picture counts as that one

Sheet = NDArray[np.uint8]  # `[N, SIZE] uint8`


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
    """Return the pictures of `pack_pictures`' text.

    Raises:
        ValueError: it is another text, or too long.
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
    """Return the difference in words; `None` where both show the same things, in the same order.

    Args:
        exact: the same pixels are drawn everywhere; else other renderers and fonts are allowed for.
    """
    if len(stored) != len(live):
        return f"{len(live)} pictures instead of {len(stored)}"
    most = np.abs(stored.astype(int) - live.astype(int)).max(axis=1)
    changed = int((most > EXACT).sum())
    if not changed:
        return None
    if not exact:
        return _compare_drawings(stored, live)
    worst = f"most of all number {most.argmax()}, by {most.max()} of 256 levels in a cell"
    return f"{changed} of {len(stored)} pictures differ, {worst}"


def _compare_drawings(stored: Sheet, live: Sheet) -> str | None:
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

    # A font or a renderer changes a picture a little.
    colour = np.abs(stored[:, SIDE * SIDE :].astype(float) - live[:, SIDE * SIDE :]).mean(1)
    amount = max(own.max(), colour.max())
    if amount > SIMILAR:
        worst = int((own if own.max() > SIMILAR else colour).argmax())
        differs = f"picture {worst} differs by {amount:.1f} of 256 levels on average"
        return f"{differs}, more than fonts and renderers do"

    # It changes what all pictures have in common alike: without that, each is nearest to its own.
    one, other = one - one.mean(0), other - other.mean(0)
    between = np.abs(other[:, None] - one[None]).mean((2, 3))
    distinct = np.abs(one[:, None] - one[None]).mean((2, 3)) > 0.2
    others = np.where(distinct, between, np.inf).min(1)
    wrong = int((np.diag(between) > NEARER * others).sum())
    if wrong >= max(2, 0.25 * len(stored)):
        return f"{wrong} of {len(stored)} pictures look like another one's stored picture"
    return None


def _grey(sheet: Sheet) -> NDArray[np.float64]:
    return sheet[:, : SIDE * SIDE].reshape(-1, SIDE, SIDE).astype(float)
