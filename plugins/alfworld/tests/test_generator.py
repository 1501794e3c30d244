"""Generated games, their pictures, and the fast engine, which changes no byte of its answers."""

import collections
import dataclasses
import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vlgym_alfworld import package, view
from vlgym_alfworld.drawn import TextGame
from vlgym_alfworld.game import HEAT, LOOK, PICK, PICK_TWO, TASKS, met_conditions
from vlgym_alfworld.generator import MOST_TOGETHER, draw_game, fitting_scenes
from vlgym_alfworld.rooms import load_floor, load_room, scene_numbers

from vlgym.errors import MissingSystemPartError, UserError


def test_games_lie_in_the_rooms_of_their_split_and_of_the_kinds_that_alfred_allows():
    assert (len(scene_numbers(True)), len(scene_numbers(False))) == (96, 24)
    for task in TASKS:
        kinds = {load_room(scene).kind for scene in fitting_scenes(task, True)}
        assert kinds == package.constants().GOALS_VALID[task], task
        for seen in (True, False):
            scenes = {draw_game(np.random.default_rng(i), task, seen=seen).scene for i in range(10)}
            assert scenes <= set(scene_numbers(seen))


def test_a_game_begins_unsolved_with_things_where_the_packages_table_allows():
    running = TextGame()
    table = package.constants().VAL_RECEPTACLE_OBJECTS
    table = {kind.lower(): {thing.lower() for thing in things} for kind, things in table.items()}
    for seed, task in enumerate(TASKS):
        game = draw_game(np.random.default_rng(seed), task)
        running.open(game)
        world = running.world
        assert not any(met_conditions(game.goal, world))
        assert not running.won
        assert game.goal.thing.lower() in game.sentence
        assert (game.goal.parent or game.goal.toggle).lower() in game.sentence
        things = list(world.object_kinds.values())
        assert task != PICK_TWO or things.count(game.goal.thing.lower()) >= 2
        assert task != LOOK or "desklamp" in things
        for thing, place in world.holder.items():
            kind = world.object_kinds[thing]
            assert kind == "desklamp" or kind in table[world.receptacle_kinds[place]]
        together = collections.Counter(world.holder.values())
        assert max(together.values()) <= MOST_TOGETHER + 1  # one lamp on top
    running.close()


def test_a_room_that_does_not_afford_the_task_is_refused_with_those_that_do():
    with pytest.raises(UserError, match=r"Scene 401 \(Bathroom\) affords no pick_heat.* 7, "):
        draw_game(np.random.default_rng(0), HEAT, scene=401)
    with pytest.raises(UserError, match="no floor plan 99"):
        draw_game(np.random.default_rng(0), HEAT, scene=99)


MOST_CROWDED = 9  # 47 receptacles, as many as scene 30


@pytest.fixture
def kitchen() -> Iterator[TextGame]:
    running = TextGame()
    running.open(draw_game(np.random.default_rng(3), HEAT, scene=MOST_CROWDED))
    yield running
    running.close()


def show(running: TextGame) -> view.RoomView:
    return view.RoomView(running.ids, running.world, load_floor(MOST_CROWDED), (448, 448))


def test_what_lies_in_a_closed_receptacle_does_not_show(kitchen: TextGame):
    made, world = show(kitchen), kitchen.world
    hidden = next(thing for thing, place in world.holder.items() if place in world.openable)
    others = {thing: place for thing, place in world.holder.items() if thing != hidden}
    before = made.draw(world)
    assert np.array_equal(made.draw(dataclasses.replace(world, holder=others)), before)
    for verb, seen in (("go to", False), ("open", True)):
        kitchen.command(f"{verb} {world.holder[hidden]}")
        assert (hidden in " ".join(view.describe(kitchen.world))) == seen


def test_doors_and_the_agents_place_have_colours(kitchen: TextGame):
    made = show(kitchen)
    left, top, _, _ = made.plan.tiles["fridge 1"]
    for command, door, frame in (
        ("go to fridge 1", view.CLOSED, view.HERE),
        ("open fridge 1", view.OPEN, view.HERE),
        ("go to microwave 1", view.OPEN, view.INK),
    ):
        kitchen.command(command)
        picture = made.draw(kitchen.world)
        assert (picture[top + 4 : top + 8, left + 3 : left + 6] == door).all()
        assert (picture[top, left] == frame).all()


SWEPT = pytest.mark.exhaustive


def functions_now() -> list[Any]:
    return [vars(owner)[name] for owner, name, _ in package.replacements()]


def transcript(running: TextGame, seed: int, task: str) -> list[Any]:
    rng = np.random.default_rng(seed)
    running.open(draw_game(rng, task))
    lines: list[Any] = []
    for _ in range(8):
        lines += [running.feedback, running.commands, running.won]
        lines.append(sorted(str(fact) for fact in running.facts))
        running.command(running.commands[int(rng.integers(len(running.commands)))])
    running.close()
    return [*lines, running.feedback, running.commands, running.won]


@pytest.mark.parametrize(
    ("seed", "task"),
    [(0, TASKS[0]), *(pytest.param(*case, marks=SWEPT) for case in enumerate(TASKS, 1))],
)
def test_transcripts_equal_those_of_the_untouched_engine(seed: int, task: str):
    assert transcript(TextGame(), seed, task) == transcript(TextGame(fast=False), seed, task)


def test_an_import_leaves_generators_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    unquiet = "import numpy, random\nrandom.random(), numpy.random.random()"
    (tmp_path / "unquiet.py").write_text(unquiet)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ALFWORLD_DATA", "/mine")
    before = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    package.import_quietly("unquiet")
    assert (random.getstate(), str(np.random.get_state())) == before  # noqa: NPY002
    assert os.environ["ALFWORLD_DATA"] == "/mine"
    assert str(package.package_folder()) != sys.modules["alfworld.info"].ALFWORLD_DATA


def test_everything_is_restored_after_play_and_after_an_error(capsys: pytest.CaptureFixture[str]):
    before, argv, stdout = functions_now(), list(sys.argv), sys.stdout
    running = TextGame()
    running.open(draw_game(np.random.default_rng(1), PICK))
    running.command("look")
    with package.fast_engine():
        assert functions_now() != before
    with pytest.raises(ZeroDivisionError), package.fast_engine():
        print(1 / 0)
    running.close()
    assert functions_now() == before
    assert (sys.argv, sys.stdout) == (argv, stdout)
    assert capsys.readouterr().out == ""


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingSystemPartError, match=r"not installed.*cmake.*pip install -e .*plugins/alfworld"):
        package.package_folder.__wrapped__()
    monkeypatch.undo()
    with pytest.raises(MissingSystemPartError, match=r"no_such_module cannot be imported"):
        package.import_quietly("alfworld.no_such_module")
