"""Levels of the probes: their answers, and that the smallest symbol can be read."""

import numpy as np
import pytest

from vlgym.registry.making import make

SMALLEST = {"SeeDigit": 15, "SeeText": 8, "SeeCount": 22, "SeeCell": 10}
"""Height in pixels, at 224 x 224, of the smallest digit, word, disc and label on any level."""
FAINTEST = 70
"""Least difference (of 255) of a symbol from its ground, in the channel where it is greatest."""


def measure_symbols(picture: np.ndarray, title: str) -> tuple[int, int]:
    """Return height of the smallest symbol, or label of a grid, and contrast."""
    if title == "SeeCell":
        picture = picture[36:, :30]
    differs = np.abs(picture.astype(int) - picture[0, 0].astype(int)).max(axis=2)
    inked = np.flatnonzero((differs > 0.5 * differs.max()).any(axis=1))
    runs = np.split(inked, np.flatnonzero(np.diff(inked) > 1) + 1)
    return min(map(len, runs)), int(differs.max())


@pytest.mark.parametrize("title", SMALLEST)
def test_the_smallest_symbol_of_every_level_is_as_large_and_as_dark_as_stated(title: str) -> None:
    env = make(f"vlgym/{title}-v0")
    for level in range(5):
        for seed in range(12):
            picture = env.reset(seed=seed, options={"level": level})[0]["image"]
            height, contrast = measure_symbols(picture, title)
            assert height >= SMALLEST[title]
            assert contrast >= FAINTEST


@pytest.mark.parametrize(
    ("title", "counts"),
    [
        ("SeeDigit", (4, 10, 10, 90, 90)), ("SeeText", (4, 8, 12, 12, 16)),
        ("SeeCount", (3, 6, 9, 12, 16)), ("SeeCell", (4, 9, 25, 36, 49)),
    ],
)  # fmt: skip
def test_every_answer_of_a_level_is_legal_and_comes_up(title: str, counts: tuple[int, ...]) -> None:
    env = make(f"vlgym/{title}-v0", image_size=(16, 16))
    for level, count in enumerate(counts):
        seeds = range(12 * count if count < 10 else 20)
        answers = {env.reset(seed=seed, options={"level": level})[1]["answer"] for seed in seeds}
        legal = env.legal_actions()
        assert len(legal) == len({*legal}) == count
        assert answers == {*legal} if count < 10 else answers <= {*legal}
    env.reset(seed=0)
    assert env.legal_actions() == list(type(env).answers)
