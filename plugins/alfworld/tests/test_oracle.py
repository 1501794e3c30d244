"""Goal conditions, the knowing and the seeking oracle, in small worlds and in generated games."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import HEAT, LOOK, PICK, PICK_TWO, TASKS, Goal, World, met_conditions
from vlgym_alfworld.generator import draw_game
from vlgym_alfworld.oracle import Memory, advise, seek

from vlgym.registry.making import make

SWEPT = pytest.mark.exhaustive
PLACES = ("cabinet 1", "diningtable 1", "microwave 1", "desk 1")
MUG = Goal(HEAT, "Mug", "DiningTable")
LAMP_ON = {"held": "pen 1", "toggled": frozenset({"desklamp 1"})}


def make_world(**changes: Any) -> World:
    """Furniture with two mugs, a pen and a lamp; the agent is at the table."""
    kinds = {place: place.removesuffix(" 1") for place in PLACES}
    holds = {"cabinet": {"mug"}, "diningtable": {"mug", "pen"}, "desk": {"pen"}}
    values: dict[str, Any] = {
        "agent_at": "at diningtable",
        "receptacle_at": {place: f"at {kind}" for place, kind in kinds.items()},
        "receptacle_kinds": kinds,
        "object_kinds": {"mug 1": "mug", "mug 2": "mug", "pen 1": "pen", "desklamp 1": "desklamp"},
        "holder": {
            "mug 1": "cabinet 1", "mug 2": "diningtable 1", "pen 1": "diningtable 1", "desklamp 1": "desk 1"
        },
        "held": None,
        "openable": frozenset({"cabinet 1", "microwave 1"}),
        "opened": frozenset(),
        "states": {state: frozenset() for state in ("clean", "hot", "cool", "sliced")},
        "toggled": frozenset(),
        "takeable": frozenset({"mug 1", "mug 2", "pen 1"}),
        "holds_kinds": {kind: frozenset(things) for kind, things in holds.items()},
    }  # fmt: skip
    return World(**{**values, **changes})


def hot(name: str) -> dict[str, Any]:
    states = {state: frozenset() for state in ("clean", "cool", "sliced")}
    return {"states": {**states, "hot": frozenset({name})}}


BOTH = {"holder": {"mug 1": "diningtable 1", "mug 2": "diningtable 1"}}
APART = {
    "holder": {"mug 1": "diningtable 1", "mug 2": "diningtable 2"},
    "receptacle_kinds": {"diningtable 1": "diningtable", "diningtable 2": "diningtable"},
}


@pytest.mark.parametrize(
    ("goal", "changes", "met"),
    [
        (Goal(PICK, "Mug", "DiningTable"), {}, (True,)),
        (Goal(PICK, "Pen", "Cabinet"), {}, (False,)),
        (MUG, {}, (True, False, False)),
        (MUG, hot("mug 1"), (True, True, False)),  # treated is not the one in place
        (MUG, hot("mug 2"), (True, True, True)),
        (Goal(PICK_TWO, "Mug", "DiningTable"), {}, (True, False)),
        (Goal(PICK_TWO, "Mug", "DiningTable"), BOTH, (True, True)),
        (Goal(PICK_TWO, "Mug", "DiningTable"), APART, (True, False)),
        (Goal(LOOK, "Pen", toggle="DeskLamp"), {}, (False, False)),
        (Goal(LOOK, "Pen", toggle="DeskLamp"), LAMP_ON, (True, False)),
        (Goal(LOOK, "Pen", toggle="DeskLamp"), {**LAMP_ON, "agent_at": "at desk"}, (True, True)),
    ],
)
def test_conditions_are_alfreds(goal: Goal, changes: dict[str, Any], met: tuple[bool, ...]):
    assert met_conditions(goal, make_world(**changes)) == met


@pytest.mark.parametrize(
    ("goal", "changes", "command"),
    [
        (Goal(PICK, "Mug", "Desk"), {"holder": {"mug 1": "cabinet 1"}, "agent_at": "at cabinet"}, "open cabinet 1"),
        (Goal(PICK, "Mug", "Cabinet"), {"held": "pen 1"}, "move pen 1 to diningtable 1"),
        (Goal(PICK, "Mug", "Cabinet"), {"held": "pen 1"}, "put pen 1 in/on diningtable 1"),  # older games
    ],
)
def test_it_opens_doors_and_frees_its_hand(goal: Goal, changes: dict[str, Any], command: str):
    advice = advise(goal, make_world(**changes), ["look", command])
    assert advice.command == command


def test_it_remembers_only_what_was_in_sight():
    world, memory = make_world(), Memory()
    memory.look(world)
    known = memory.recall(world)
    assert known.holder == {"mug 2": "diningtable 1", "pen 1": "diningtable 1"}
    assert set(known.object_kinds) == {"mug 2", "pen 1"}
    away = replace(world, agent_at="at cabinet")
    memory.look(away)
    assert memory.recall(away).holder == known.holder
    assert memory.looked == {"diningtable 1"}
    memory.look(replace(away, opened=frozenset({"cabinet 1"})))
    assert memory.recall(away).holder["mug 1"] == "cabinet 1"
    memory.look(replace(away, held="pen 1"))
    assert "pen 1" not in memory.recall(away).holder


def test_where_hidden_things_are_makes_no_difference_to_what_it_says():
    answers = []
    for place in ("cabinet 1", "microwave 1", "desk 1"):
        holder = {"mug 1": place, "pen 1": "desk 1", "desklamp 1": "desk 1"}
        world, memory = make_world(agent_at="nowhere", holder=holder), Memory()
        memory.look(world)
        commands = [f"go to {each}" for each in PLACES]
        answers.append(seek(MUG, world, memory, ["open cabinet 1", *commands]))
    assert answers[0] == answers[1] == answers[2]
    assert "I have not seen a mug yet" in answers[0].reason


@pytest.mark.parametrize(
    ("seeking", "games", "disturbance"),
    [
        (False, 6, 15),
        (True, 6, 10),
        *(pytest.param(*case, 100, n, marks=SWEPT) for case in ((False,), (True,)) for n in (0, 15)),
    ],
)
def test_an_oracle_wins_also_after_random_commands(seeking: bool, games: int, disturbance: int):
    running, lengths = TextGame(), []
    for seed in range(games):
        rng, turn = np.random.default_rng(10_000 + seed), 0
        game = draw_game(rng, TASKS[seed % 6], seen=seed % 3 > 0)
        running.open(game, tag_seed=seed if seeking else None)
        while not running.won and turn < 50:
            assert not all(running.conditions()), game.name
            advice, commands = running.advise(seeking=seeking).command, running.commands
            assert advice in commands, game.name
            random = commands[int(rng.integers(len(commands)))]
            running.command(random if turn < disturbance else advice)
            turn += 1
        assert running.won == all(running.conditions())
        lengths += [turn] * running.won
    running.close()
    assert len(lengths) == games
    mean = np.mean(lengths)  # the one that knows needs 6; who must look needs more
    assert mean > 6 + disturbance / 2 if seeking else mean < disturbance + 8


def test_the_memory_comes_back_with_a_saved_state():
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
