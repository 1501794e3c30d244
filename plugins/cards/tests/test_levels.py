"""Levels of the card games: what they change, and that the pictures can be read."""

import numpy as np
import pytest

from vlgym.registry.making import make

SMALLEST_NUMBER = 73
"""Height in pixels of NumberLine's smallest number on any level, at 300 x 300."""


def ink_height(picture: np.ndarray, ground: tuple[int, int, int]) -> int:
    """Return the height of what is drawn on a plain ground."""
    rows = (np.abs(picture.astype(int) - ground).max(axis=2) > 96).any(axis=1)
    return int(np.ptp(rows.nonzero()[0])) + 1


@pytest.mark.parametrize("level", range(6))
def test_number_line_draws_every_number_of_a_level_large(level: int) -> None:
    env = make("vlgym/NumberLine-v1", level=level)
    env.reset(seed=0)
    largest = env.level_arguments[level]["max_position"]
    for number in range(largest + 1):
        other = (number + 1) % (largest + 1)
        image = env.reset(seed=0, options={"current": number, "target": other})[0]["image"]
        assert ink_height(image[150:, 150:], (255, 255, 255)) >= SMALLEST_NUMBER
