"""How far stored pictures tell another content from another font, on the pictures of the card games.

    python tests/benchmarks/card_pictures.py --write

The pictures of the fingerprint's episodes are drawn again: with five other fonts, upside down, and with another number
on every card (in NumberLine another current number). Each set is compared with the usual one, allowing for fonts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import vlgym_cards.art as art
import vlgym_cards.number_line as number_line
from PIL import ImageFont
from report import finish, parse_write, table

from vlgym.making import build, load_class
from vlgym.pictures import SIDE, Sheet, compare_sheets, count_confused, unpack
from vlgym.registry import get_registry
from vlgym.testing import measure_behaviour

FOLDER = Path("/usr/share/fonts/truetype")
FONTS = {
    "Liberation Sans Bold": "liberation/LiberationSans-Bold.ttf",
    "Liberation Serif Bold": "liberation/LiberationSerif-Bold.ttf",
    "Liberation Mono Bold": "liberation/LiberationMono-Bold.ttf",
    "DejaVu Sans": "dejavu/DejaVuSans.ttf",
    "DejaVu Serif Bold": "dejavu/DejaVuSerif-Bold.ttf",
}
GAMES = ("NumberLine", "EZPoints", "Points24", "Blackjack")


def measure(game: str) -> Sheet:
    """Return the pictures of a game's fingerprint, drawn as things are patched now."""
    art.card_sprite.cache_clear()
    number_line._draw.cache_clear()
    spec = get_registry().get(f"vlgym/{game}-v0")
    return unpack(measure_behaviour(partial(build, spec), spec).pictures)


def grey(sheet: Sheet) -> np.ndarray:
    """`[N, SIDE, SIDE] float64`."""
    return sheet[:, : SIDE * SIDE].reshape(-1, SIDE, SIDE).astype(float)


def measure_font(game: str, file: str) -> Sheet:
    """The pictures in another font."""

    def other(size: int) -> ImageFont.FreeTypeFont:
        return ImageFont.truetype(str(FOLDER / file), int(size), layout_engine=ImageFont.Layout.BASIC)

    with patch.object(art, "font", other), patch.object(number_line, "font", other):
        return measure(game)


def measure_number(game: str) -> Sheet:
    """The pictures with another number: the next rank on each card, the next current number."""
    draw, face = number_line._draw_large, art._draw_face
    with (
        patch.object(number_line, "_draw_large", lambda target, current, size: draw(target, (current + 1) % 6, size)),
        patch.object(
            art, "_draw_face", lambda pen, card, *rest: face(pen, type(card)(card.rank % 13 + 1, card.suit), *rest)
        ),
    ):
        return measure(game)


def measure_turned(game: str) -> Sheet:
    """The pictures upside down."""
    cls = load_class(get_registry().get(f"vlgym/{game}-v0"))
    image: Callable[..., np.ndarray] = cls.image
    with patch.object(cls, "image", lambda env: image(env)[::-1].copy()):
        return measure(game)


def main() -> None:
    """Compare all and print or write the page."""
    write = parse_write(__doc__ or "").write
    rows = []
    for game in GAMES:
        usual = measure(game)
        changed = {name: measure_font(game, file) for name, file in FONTS.items()}
        changed |= {"another number": measure_number(game), "upside down": measure_turned(game)}
        for name, sheet in changed.items():
            own = np.abs(grey(usual) - grey(sheet)).mean((1, 2)).max()
            confused = f"{count_confused(grey(usual), grey(sheet))} of {len(usual)}"
            found = compare_sheets(usual, sheet, exact=False)
            rows.append([game, name, f"{own:.1f}", confused, found or "the same things"])
    text = [
        "Pictures of 16 x 16 grey levels are stored and compared. *Difference* is the largest mean difference of a "
        "picture from its stored one in grey levels; *confused* counts the pictures that are clearly nearer to the "
        "stored picture of another one, once what all have in common is taken out. A set shows another content where "
        "a quarter is confused, where a difference exceeds 18, or where it fits better turned round.",
        "The card games draw with a font of their own and are compared exactly, so that any of these rows would be "
        "a change there; this is what the comparison can do where fonts belong to the machine. Whether a single "
        "picture among many shows another number, it cannot say.",
        table(["game", "drawn", "difference", "confused", "verdict"], rows),
    ]
    finish("card_pictures", "Pictures told apart", "\n\n".join(text), ["vlgym", "vlgym-cards", "pillow"], write)


if __name__ == "__main__":
    main()
