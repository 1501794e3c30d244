"""The wanderer and the circler, which see no picture; no world is made."""

from __future__ import annotations

import random
from itertools import groupby

from vlgym_miniworld.blind import Circler, Wanderer

MOVES = ("turn left", "turn right", "move forward")


def wander(text: str, legal: tuple[str, ...], turns: int = 400, seed: int = 0) -> list[str]:
    player = Wanderer(random.Random(seed))
    return [player.choose(text, legal) for _ in range(turns)]


def test_it_goes_straight_on_between_turns_one_way() -> None:
    moves = wander("Each turn is 15 degrees.", MOVES)
    runs = [(move, len(list(run))) for move, run in groupby(moves)]
    assert {move for move, _ in runs} == set(MOVES)
    assert all(move != "move forward" for move, _ in runs[::2])
    assert all(move == "move forward" for move, _ in runs[1::2])
    assert sum(length for move, length in runs if move == "move forward") > len(moves) / 2


def test_the_circler_goes_four_metres_and_turns_to_one_side_only() -> None:
    text = "A turn rotates you by 45 degrees; a move takes you 0.7 m."
    sides = set()
    for seed in range(8):
        player = Circler(random.Random(seed))
        moves = [player.choose(text, MOVES) for _ in range(200)]
        runs = [(move, len(list(run))) for move, run in groupby(moves)]
        assert {length for move, length in runs[1:-1] if move == "move forward"} <= {5, 6, 7}
        assert {length for move, length in runs[:-1] if move != "move forward"} <= {1, 2}
        turned = set(moves) - {"move forward"}
        assert len(turned) == 1
        sides |= turned
    assert sides == {"turn left", "turn right"}
