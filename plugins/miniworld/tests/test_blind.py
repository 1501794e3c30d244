"""The wanderer and the circler, which see no picture; no world is made."""

import random
from itertools import groupby

from vlgym_miniworld.blind import Circler, Wanderer

MOVES = ("turn left", "turn right", "move forward")


def test_the_wanderer_turns_150_degrees_at_most_and_picks_up_where_that_is_an_action() -> None:
    for legal in (MOVES, (*MOVES, "pick up")):
        player = Wanderer(random.Random(0))
        moves = [player.choose("A turn rotates you by 45 degrees.", legal) for _ in range(300)]
        assert set(moves) == {*legal}
        turns = [len(list(run)) for move, run in groupby(moves) if move.startswith("turn")]
        assert set(turns) <= {1, 2, 3}


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
