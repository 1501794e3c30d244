"""Small pictures are stored as text, and compared exactly or allowing for fonts and renderers."""

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


@pytest.mark.parametrize(("live", "exact", "word"), [
    (draw(PLACES, noise=8), True, None), (draw(PLACES, noise=8), False, None),
    (draw(PLACES, stroke=17), True, "pictures differ"), (draw(PLACES, stroke=17), False, None),
    (draw([*PLACES[1:], PLACES[0]], stroke=15), False, "look like another one"),
    (draw(PLACES[1:]), False, "5 pictures instead of 6"),
    (shrink(np.full((160, 160, 3), 128, np.uint8))[None].repeat(6, 0), False, "differs by"),
], ids=["noise", "noise, similar", "thicker", "thicker, similar", "others", "fewer", "blank"])  # fmt: skip
def test_other_content_is_seen_and_another_font_only_where_pictures_are_exact(live, exact, word):
    difference = compare_sheets(draw(PLACES), live, exact=exact)
    assert difference is None if word is None else word in str(difference)


@pytest.mark.parametrize(
    ("turn", "word"), [(lambda s: s[:, ::-1], "upside down"), (lambda s: s[:, :, ::-1], "mirrored")]
)
def test_a_picture_that_is_turned_round_is_named(turn: object, word: str) -> None:
    stored = draw([20, 25, 30])
    live = stored.copy()
    live[:, :256] = turn(stored[:, :256].reshape(-1, 16, 16)).reshape(-1, 256)  # type: ignore[operator]
    assert word in str(compare_sheets(stored, live, exact=False))


def test_what_a_renderer_changes_alike_in_all_pictures_makes_none_look_like_another() -> None:
    stored = np.full((6, SHEET_SIZE), 60, np.uint8)
    stored[:, :128] += np.arange(0, 24, 4, np.uint8)[:, None]  # the upper half tells the pictures apart
    live = stored.copy()
    live[:, :128] += 8
    assert compare_sheets(stored, live, exact=False) is None


def test_other_colours_are_seen() -> None:
    image = np.zeros((64, 64, 3), np.uint8)
    image[..., 0] = 200
    red, blue = shrink(image)[None], shrink(image[..., ::-1].copy())[None]
    assert "differs by" in str(compare_sheets(red, blue, exact=False))
