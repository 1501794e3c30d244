"""How many patches an image gets: as Qwen's published processors size it, or as the tiny default does."""

from __future__ import annotations

import math


def fit_grid(height: int, width: int, unit: int, budget: int) -> tuple[int, int]:
    """Rows and columns of `unit`-pixel cells for an image of the tiny default.

    At most `budget` cells, never enlarged, aspect kept as far as whole cells allow.
    """
    rows, columns = max(1.0, height / unit), max(1.0, width / unit)
    scale = min(1.0, (budget / (rows * columns)) ** 0.5)
    best = (max(1, int(rows * scale + 1e-6)), max(1, int(columns * scale + 1e-6)))
    while best[0] * best[1] > budget:  # a very long image: the short side is already one cell
        best = (best[0] - 1, best[1]) if best[0] > best[1] else (best[0], best[1] - 1)
    return best


def fit_pixels(height: int, width: int, unit: int, least: int, most: int) -> tuple[int, int]:
    """Rows and columns of `unit`-pixel cells for an image, as Qwen's published processors size it.

    The nearest whole cells; where these have more than `most` pixels, or less than `least`, scaled into that range. A
    small image that is enlarged may have a few more than `most` where `least` is close to it, in the library too.
    """
    rows, columns = round(height / unit), round(width / unit)
    if rows * columns * unit**2 > most:
        scale = math.sqrt(height * width / most)
        return max(1, math.floor(height / scale / unit)), max(1, math.floor(width / scale / unit))
    if rows * columns * unit**2 < least:
        scale = math.sqrt(least / (height * width))
        return math.ceil(height * scale / unit), math.ceil(width * scale / unit)
    return rows, columns


def bound_pixels(pixels: tuple[int, int], unit: int, tokens: int | None) -> tuple[int, int]:
    """Least and most pixels of an image, once the user has said how many tokens it may take at most.

    Args:
        pixels: least and most of the model's own processor.
        unit: side of the square that becomes one token, in pixels.
        tokens: the user's bound; None: none. One that the processor's own comes to leaves that alone.
    """
    least, most = pixels
    if tokens is not None and tokens != most // unit**2:
        most = tokens * unit**2
    return min(least, most), most
