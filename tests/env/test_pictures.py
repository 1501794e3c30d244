"""Small pictures are stored as text, and compared exactly or allowing for fonts and renderers."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

from vlgym.env.pictures import MOST_PICTURES, SHEET_SIZE, compare_sheets, pack_pictures, shrink, unpack_pictures


def draw(places: list[int], stroke: int = 12, noise: int = 0) -> np.ndarray:
    """A sheet of pictures with a pale frame and one tall bar each."""
    rng = np.random.default_rng(0)
    pictures = []
    for place in places:
        image = np.full((160, 160, 3), 30, np.uint8)
        image[:10] = 120
        image[40:120, place : place + stroke] = 150
        shift = rng.integers(-noise, noise + 1, image.shape) if noise else 0
        pictures.append(shrink(np.clip(image.astype(int) + shift, 0, 255).astype(np.uint8)))
    return np.stack(pictures)


PLACES = [20, 40, 60, 80, 100, 120]


def test_pictures_come_back_from_their_text() -> None:
    sheet = draw(PLACES)
    assert np.array_equal(unpack_pictures(pack_pictures(list(sheet))), sheet)
    assert unpack_pictures(pack_pictures([])).shape == (0, SHEET_SIZE)


@pytest.mark.parametrize(
    "text",
    ["?", "AAAA", base64.b64encode(zlib.compress(b"x" * 5)).decode(),
     base64.b64encode(zlib.compress(bytes(SHEET_SIZE * (MOST_PICTURES + 5)))).decode()],
    ids=["no base64", "not compressed", "too short", "too many"],
)  # fmt: skip
def test_a_text_that_holds_no_pictures_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a sheet of stored pictures"):
        unpack_pictures(text)


def test_the_same_pictures_are_the_same_in_both_ways() -> None:
    for exact in (True, False):
        assert compare_sheets(draw(PLACES), draw(PLACES), exact=exact) is None
        assert compare_sheets(draw(PLACES), draw(PLACES, noise=8), exact=exact) is None


def test_a_thicker_stroke_is_another_picture_exactly_and_the_same_thing_else() -> None:
    assert "pictures differ" in str(compare_sheets(draw(PLACES), draw(PLACES, stroke=17), exact=True))
    assert compare_sheets(draw(PLACES), draw(PLACES, stroke=17), exact=False) is None


def test_another_content_is_seen_whatever_the_stroke() -> None:
    moved = draw([*PLACES[1:], PLACES[0]], stroke=15)
    assert "look like another one" in str(compare_sheets(draw(PLACES), moved, exact=False))


@pytest.mark.parametrize(
    ("turn", "word"), [(lambda s: s[:, ::-1], "upside down"), (lambda s: s[:, :, ::-1], "mirrored")]
)
def test_a_picture_that_is_turned_round_is_named(turn: object, word: str) -> None:
    stored = draw([20, 25, 30])
    live = stored.copy()
    live[:, :256] = turn(stored[:, :256].reshape(-1, 16, 16)).reshape(-1, 256)  # type: ignore[operator]
    assert word in str(compare_sheets(stored, live, exact=False))


def test_other_colours_and_blank_pictures_are_seen() -> None:
    image = np.zeros((64, 64, 3), np.uint8)
    image[..., 0] = 200
    red, blue = shrink(image)[None], shrink(image[..., ::-1].copy())[None]
    assert "differs by" in str(compare_sheets(red, blue, exact=False))
    blank = shrink(np.full((160, 160, 3), 128, np.uint8))[None].repeat(6, 0)
    assert compare_sheets(draw(PLACES), blank, exact=False) is not None


def test_another_number_of_pictures_is_a_difference() -> None:
    assert compare_sheets(draw(PLACES), draw(PLACES[1:]), exact=False) == "5 pictures instead of 6"
