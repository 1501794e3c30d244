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


def test_it_turns_by_as_many_steps_as_the_text_makes_of_a_right_angle() -> None:
    fine, coarse = (
        [len(list(run)) for move, run in groupby(wander(text, MOVES)) if move != "move forward"]
        for text in ("a turn of 15 degrees", "a turn of 45 degrees")
    )
    assert 2 <= min(fine[:-1]) <= max(fine) <= 10
    assert 1 <= min(coarse[:-1]) <= max(coarse) <= 3


def test_it_picks_up_where_that_is_legal_only() -> None:
    assert "pick up" in wander("15 degrees", (*MOVES, "pick up"))
    assert "pick up" not in wander("15 degrees", MOVES)


def test_two_episodes_differ_and_one_is_the_same_again() -> None:
    assert wander("15 degrees", MOVES) == wander("15 degrees", MOVES)
    assert wander("15 degrees", MOVES) != wander("15 degrees", MOVES, seed=1)


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


def test_the_circler_reads_the_size_of_its_steps_in_the_text() -> None:
    player = Circler(random.Random(0))
    fine = [
        player.choose("A turn rotates you by about 15 degrees; a move takes you about 0.15 m.", MOVES)
        for _ in range(300)
    ]
    lengths = [len(list(run)) for move, run in groupby(fine) if move == "move forward"]
    assert 21 <= min(lengths[:-1]) <= max(lengths) <= 32
