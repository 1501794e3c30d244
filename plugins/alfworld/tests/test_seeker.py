"""The oracle that seeks: it uses only what was seen, forgets nothing, and wins every game in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import HEAT, TASKS, Goal
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.oracle import Memory, seek
from worlds import make_world

from vlgym.registry.making import make

COMMANDS = ["go to cabinet 1", "go to microwave 1", "go to desk 1", "open cabinet 1", "go to diningtable 1"]
MUG = Goal(HEAT, "Mug", parent="DiningTable")
GAMES = 6


def test_it_remembers_only_what_was_in_sight() -> None:
    world, memory = make_world(), Memory()
    memory.look(world)
    known = memory.recall(world)
    assert known.holder == {"mug 2": "diningtable 1", "pen 1": "diningtable 1"}
    assert set(known.object_kinds) == {"mug 2", "pen 1"}
    assert "diningtable 1" in memory.looked
    assert "cabinet 1" not in memory.looked
    away = replace(world, agent_at="at cabinet")
    memory.look(away)
    assert memory.recall(away).holder == known.holder
    assert "cabinet 1" not in memory.looked
    memory.look(replace(away, opened=frozenset({"cabinet 1"})))
    assert memory.recall(away).holder["mug 1"] == "cabinet 1"


def test_where_hidden_things_are_makes_no_difference_to_what_it_says() -> None:
    """Two worlds that look alike from where the player stands, with the mug in other places."""
    answers = []
    for place in ("cabinet 1", "microwave 1", "desk 1"):
        world = make_world(agent_at="nowhere", holder={"mug 1": place, "pen 1": "desk 1", "desklamp 1": "desk 1"})
        memory = Memory()
        memory.look(world)
        answers.append(seek(MUG, world, memory, COMMANDS))
    assert answers[0] is not None
    assert answers[0] == answers[1] == answers[2]
    assert "I have not seen a mug yet" in answers[0].reason


@pytest.mark.parametrize("disturbance", [0, 10])
def test_it_wins_every_game_within_the_turns_of_the_card(disturbance: int) -> None:
    running = TextGame()
    lengths = []
    for seed in range(GAMES):
        rng = np.random.default_rng(30_000 + seed)
        game = draw_game(rng, TASKS[seed % 6], seen=seed % 3 > 0)
        running.open(game, tag_seed=seed)
        memory = Memory()
        memory.look(running.world)
        for turn in range(50):
            if running.won:
                lengths.append(turn)
                break
            random = running.commands[int(rng.integers(len(running.commands)))] if turn < disturbance else None
            advice = seek(game.goal, running.world, memory, running.commands)
            assert advice is not None, game.name
            assert advice.command in running.commands
            running.command(random or advice.command)
            memory.look(running.world)
    running.close()
    assert len(lengths) == GAMES
    assert np.mean(lengths) > 6 + disturbance / 2  # the one that knows needs 6; who must look needs more


def test_the_memory_comes_back_with_a_saved_state() -> None:
    env, other = make("vlgym/ALFWorld-v1"), make("vlgym/ALFWorld-v1")
    env.reset(seed=2)
    for _ in range(4):
        env.step(env.solve() or "")
    other.reset(seed=9)
    other.set_state(env.get_state())
    while not env.success():
        assert env.solve() == other.solve()
        env.step(env.solve() or "")
        other.step(other.solve() or "")
    assert other.success()
