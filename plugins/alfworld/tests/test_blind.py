"""The player that sees no picture: it works from the task's sentence and the list of commands."""

from __future__ import annotations

import random

from vlgym_alfworld.blind import Searcher

LOOK = ["look", "inventory", "help"]


def text_of(task: str) -> str:
    return f"You are an expert in a household.\nYour task is to: {task}.\nYou have 50 turns.\n\nTurn 1 of 50."


def go_to(*places: str) -> list[str]:
    return [f"go to {place}" for place in places]


def test_it_fetches_treats_and_brings_what_the_commands_name() -> None:
    player = Searcher(random.Random(0))
    task = text_of("heat some egg and put it in diningtable")
    rooms = ("cabinet 1", "diningtable 1", "microwave 1")
    turns = [
        ([*go_to(*rooms), *LOOK], "go to cabinet 1"),
        ([*go_to(*rooms[1:]), "open cabinet 1", "examine cabinet 1", *LOOK], "open cabinet 1"),
        ([*go_to(*rooms[1:]), "close cabinet 1", "take cup 1 from cabinet 1", *LOOK], "go to diningtable 1"),
        ([*go_to("cabinet 1", "microwave 1"), "take egg 2 from diningtable 1", *LOOK], "take egg 2 from diningtable 1"),
        ([*go_to("cabinet 1", "microwave 1"), "move egg 2 to diningtable 1", *LOOK], "go to microwave 1"),
        ([*go_to(*rooms[:2]), "open microwave 1", "heat egg 2 with microwave 1", *LOOK], "heat egg 2 with microwave 1"),
        ([*go_to(*rooms[:2]), "heat egg 2 with microwave 1", *LOOK], "go to diningtable 1"),
        (["go to cabinet 1", "move egg 2 to diningtable 1", *LOOK], "move egg 2 to diningtable 1"),
    ]
    for legal, command in turns:
        assert player.choose(task, tuple(legal)) == command
