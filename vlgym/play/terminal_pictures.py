"""Pictures in a terminal: in full by kitty's protocol or as sixels, else as half blocks of coloured characters."""

from __future__ import annotations

import logging
import os
import sys
from types import ModuleType
from typing import Any

from PIL import Image as PILImage

from ..terminal import measure_width
from ..types import Image

PROTOCOLS = ("auto", "kitty", "sixel", "blocks", "none")  # `auto`: the best one that the terminal answers to
MOST_COLUMNS, MOST_ROWS = 64, 32  # character cells of a picture


def choose_protocol(protocol: str, stream: Any) -> str:
    """Return how to draw on a stream; for `auto`, the best that its terminal says it can do."""
    if protocol != "auto":
        return protocol
    if os.environ.get("TERM", "dumb") == "dumb" or os.environ.get("NO_COLOR"):
        return "none"
    keyboard = sys.__stdin__
    if not (stream.isatty() and keyboard and keyboard.isatty()):
        return "none"

    # The terminal answers as if somebody typed.
    renderable = _import_renderable()
    if renderable.sixel.query_terminal_support():
        return "sixel"
    if renderable.tgp.query_terminal_support():
        return "kitty"
    return "blocks" if "utf" in (stream.encoding or "utf-8").lower() else "none"


def show_picture(image: Image, protocol: str, stream: Any) -> None:
    """Write a picture to a stream, `[H, W, 3] uint8`; nothing where the protocol is `none`."""
    if protocol == "none":
        return
    from rich.console import Console

    renderable = _import_renderable()
    kind = {"kitty": renderable.TGPImage, "sixel": renderable.SixelImage, "blocks": renderable.HalfcellImage}[protocol]
    width = min(measure_width(stream), MOST_COLUMNS)
    console = Console(file=stream, force_terminal=True, width=width, height=MOST_ROWS, legacy_windows=False)
    console.print(kind(PILImage.fromarray(image), width="auto", height="auto"), end="")
    stream.flush()


def _import_renderable() -> ModuleType:
    """Import `textual_image.renderable`, which asks the terminal at its import, without these questions."""
    logging.getLogger("textual_image").setLevel(logging.ERROR)  # many terminals do not tell their size
    stream, sys.__stdout__ = sys.__stdout__, None  # type: ignore[misc]
    try:
        from textual_image import _terminal, renderable
    finally:
        sys.__stdout__ = stream  # type: ignore[misc]
    try:
        _terminal.get_cell_size()
    except Exception:  # the terminal has no size, or there is no keyboard to answer from
        _terminal.get_cell_size._result = _terminal.CellSize(8, 16)  # type: ignore[attr-defined]
    return renderable
