"""Levels of the probes: what they ask for, and that the smallest symbol can be read."""

from collections.abc import Iterator

import numpy as np
import pytest

from vlgym.registry.making import make

SMALLEST = {"SeeDigit": 15, "SeeText": 8, "SeeCount": 22, "SeeCell": 10}
"""Height in pixels, at 224 x 224, of the smallest digit, word, disc and label on any level."""
FAINTEST = 70
"""Least difference (of 255) between a symbol and its ground, in the channel where they differ most."""


def find_symbols(picture: np.ndarray, title: str) -> Iterator[tuple[int, int]]:
    """Yield height and contrast of the symbols: of all that is drawn, or of each row of labels in a grid."""
    if title == "SeeCell":
        picture = picture[36:, :30]
    ground = picture[0, 0].astype(int)
    differs = np.abs(picture.astype(int) - ground).max(axis=2)
    inked = np.flatnonzero((differs > 0.5 * differs.max()).any(axis=1))
    for run in np.split(inked, np.flatnonzero(np.diff(inked) > 1) + 1):
        yield len(run), int(differs.max())


@pytest.mark.parametrize("title", SMALLEST)
def test_the_smallest_symbol_of_every_level_is_as_large_and_as_dark_as_stated(title: str) -> None:
    env = make(f"vlgym/{title}-v0")
    symbols = [
        symbol
        for level in range(5)
        for seed in range(40)
        for symbol in find_symbols(env.reset(seed=seed, options={"level": level})[0]["image"], title)
    ]
    assert min(height for height, _ in symbols) >= SMALLEST[title]
    assert min(contrast for _, contrast in symbols) >= FAINTEST


@pytest.mark.parametrize(
    ("title", "counts"),
    [
        ("SeeDigit", (4, 10, 10, 90, 90)),
        ("SeeText", (4, 8, 12, 12, 16)),
        ("SeeCount", (3, 6, 9, 12, 16)),
        ("SeeCell", (4, 9, 25, 36, 49)),
    ],
)
def test_every_answer_of_a_level_is_legal_and_comes_up(title: str, counts: tuple[int, ...]) -> None:
    env = make(f"vlgym/{title}-v0", image_size=(16, 16))
    for level, count in enumerate(counts):
        answers = {env.reset(seed=seed, options={"level": level})[1]["answer"] for seed in range(12 * count)}
        assert answers == {*env.legal_actions()}
        assert len(answers) == count
    env.reset(seed=0)
    assert env.legal_actions() == list(type(env).answers)


def test_discs_of_every_level_do_not_touch() -> None:
    env = make("vlgym/SeeCount-v0")
    for level in range(5):
        env.reset(seed=0, options={"level": level})
        assert 1 / env.places - 2 * env.shift > 2 * env.radius + 2 / 224
