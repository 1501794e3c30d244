"""The wanderer and the circler, which see no picture; no world is made."""

import random
from itertools import groupby

from vlgym_miniworld.blind import Circler

MOVES = ("turn left", "turn right", "move forward")


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
