"""Pictures in a terminal: by the protocol that it speaks, else as half blocks of coloured characters.

What a terminal can do is read from its environment variables; where these name no protocol it is asked whether it shows
sixels (`terminal_query`). One that says nothing of itself gets half blocks; `--picture` decides otherwise.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np
from PIL import Image as PILImage

from .rendering import encode_png
from .terminal import measure_width
from .terminal_query import shows_sixels
from .types import Image

PICTURES = ("auto", "kitty", "iterm", "sixel", "blocks", "none")
"""What `--picture` takes: a protocol, or `auto` for the best one that the terminal names."""

MOST_COLUMNS, MOST_ROWS = 64, 32
"""Character cells of a picture at most."""

CELL = (8, 16)
"""Pixels of a character cell, width and height, where a protocol counts in pixels; a usual size, not a measured one."""

COLOURS = 255
CHUNK = 4096
"""Letters of base64 that kitty takes in one piece."""


def choose_protocol(
    asked: str, stream: Any, environ: Mapping[str, str] = os.environ, query: Callable[[], bool] = shows_sixels
) -> str:
    """Return how to draw on a stream: what was asked for, and for `auto` what its terminal says it can do.

    Args:
        asked: one of `PICTURES`.
        stream: where the picture goes.
        environ: environment variables.
        query: asks the terminal whether it shows sixels; called only where its variables name no protocol.
    """
    if asked != "auto":
        return asked
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if not stream.isatty() or term in ("", "dumb") or environ.get("NO_COLOR"):
        return "none"
    blocks = "blocks" if _has_letter("▀", stream) else "none"
    if "TMUX" in environ or term.startswith(("screen", "tmux")):
        return blocks  # they do not pass pictures on unless told to
    if "kitty" in term or "ghostty" in term or "KITTY_WINDOW_ID" in environ:
        return "kitty"
    if program in ("iTerm.app", "WezTerm") or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    if "sixel" in term or term.startswith(("foot", "mlterm", "contour")):
        return "sixel"
    return "sixel" if query() else blocks


def show_picture(image: Image, protocol: str, stream: Any) -> None:
    """Write a picture to a stream, `[H, W, 3] uint8`; nothing where the protocol is `none`."""
    stream.write(draw_picture(image, protocol, measure_width(stream)))
    stream.flush()


def draw_picture(image: Image, protocol: str, width: int) -> str:
    """Return what draws a picture in a terminal of so many columns, a line's end included.

    Args:
        image: `[H, W, 3] uint8`.
        protocol: one of `PICTURES` but `auto`.
        width: columns of the terminal.
    """
    if protocol == "none":
        return ""
    columns, rows = fit_cells(image.shape[1], image.shape[0], width)
    if protocol == "kitty":
        return _write_kitty(encode_png(image), columns, rows)
    if protocol == "iterm":
        data = encode_png(image)
        text = base64.b64encode(data).decode("ascii")
        size = f"size={len(data)};width={columns};height={rows};preserveAspectRatio=1"
        return f"\x1b]1337;File=inline=1;{size}:{text}\a\n"
    if protocol == "sixel":
        return _write_sixel(_resize(image, columns * CELL[0], rows * CELL[1])) + "\n"
    return _write_blocks(_resize(image, columns, 2 * rows))


def fit_cells(width: int, height: int, columns: int) -> tuple[int, int]:
    """Return the columns and rows of a picture of so many pixels: as large as the bounds allow, its shape kept.

    A cell is twice as high as wide.
    """
    most = max(1, min(columns, MOST_COLUMNS))
    scale = min(most / width, 2 * MOST_ROWS / height)
    return max(1, round(width * scale)), max(1, round(height * scale / 2))


def _resize(image: Image, width: int, height: int) -> Image:
    """The picture in another size; enlarged without blurring, because small pictures have sharp pixels."""
    larger = width >= image.shape[1] and height >= image.shape[0]
    how = PILImage.Resampling.NEAREST if larger else PILImage.Resampling.BOX
    return np.asarray(PILImage.fromarray(np.ascontiguousarray(image)).resize((width, height), how))


def _write_kitty(data: bytes, columns: int, rows: int) -> str:
    """kitty's graphics protocol: the PNG file in pieces, shown in so many cells."""
    text = base64.b64encode(data).decode("ascii")
    pieces = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
    written = ""
    for number, piece in enumerate(pieces):
        first = f"a=T,f=100,q=2,c={columns},r={rows}," if number == 0 else ""
        written += f"\x1b_G{first}m={int(number < len(pieces) - 1)};{piece}\x1b\\"
    return written + "\n"


def _write_sixel(image: Image) -> str:
    """DEC's sixels: bands of six rows, in each band one line per colour, bit `k` of a letter for row `k`."""
    height, width = image.shape[:2]
    picture = PILImage.fromarray(image).quantize(COLOURS, dither=PILImage.Dither.NONE)
    palette = np.asarray(picture.getpalette()).reshape(-1, 3)
    indices = np.asarray(picture)
    lines = [f'\x1bP0;1q"1;1;{width};{height}']
    for colour in np.unique(indices):
        red, green, blue = (round(100 * int(value) / 255) for value in palette[colour])
        lines.append(f"#{colour};2;{red};{green};{blue}")
    for top in range(0, height, 6):
        band = indices[top : top + 6]
        bits = 1 << np.arange(len(band))[:, None]
        for colour in np.unique(band):
            lines.append(f"#{colour}{''.join(_run_lengths((bits * (band == colour)).sum(axis=0)))}$")
        lines.append("-")
    return "".join(lines) + "\x1b\\"


def _run_lengths(values: np.ndarray) -> Iterator[str]:
    """The letters of a band's line, equal ones counted."""
    for value, run in groupby(values.tolist()):
        count, letter = sum(1 for _ in run), chr(63 + value)
        yield f"!{count}{letter}" if count > 3 else letter * count


def _write_blocks(image: Image) -> str:
    """Upper half blocks: the letter's colour is the upper pixel, its background the lower one."""
    from rich.color import Color
    from rich.console import Console
    from rich.style import Style
    from rich.text import Text

    console = Console(force_terminal=True, color_system=_colours(), width=image.shape[1] + 1, legacy_windows=False)
    picture = Text(no_wrap=True)
    for upper, lower in zip(image[::2].tolist(), image[1::2].tolist(), strict=True):
        for above, below in zip(upper, lower, strict=True):
            picture.append("▀", Style(color=Color.from_rgb(*above), bgcolor=Color.from_rgb(*below)))
        picture.append("\n")
    with console.capture() as captured:
        console.print(picture, end="")
    return captured.get()


def _has_letter(letter: str, stream: Any) -> bool:
    """Whether a stream's encoding has a letter; that of `LC_ALL=C` has only ASCII's."""
    try:
        letter.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _colours() -> Any:
    """How many colours the terminal has, by the variables that say so."""
    if os.environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256" in os.environ.get("TERM", "") else "truecolor" if "TERM" not in os.environ else "standard"
