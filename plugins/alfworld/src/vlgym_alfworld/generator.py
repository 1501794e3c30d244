"""Draw a game: a room, a goal that it affords, and things laid out so that the goal is not met yet and can be met.

Everything comes from the given generator. The games are ours, not the benchmark's: the rooms, the tables of what holds
what, the PDDL domain and the sentences are the installed package's, the choice of goals and the layout of the things
are drawn here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

from vlgym.errors import UserError

from . import package
from .game import CLEAN, COOL, HEAT, LOOK, PICK_TWO, TREATMENTS, Game, Goal
from .rooms import Place, Room, load_room, mangle, scene_numbers

_NAMED_OBJECT_TYPES = ("ButterKnife", "Knife")
_NAMED_RECEPTACLE_TYPES = ("Fridge", "Microwave", "SinkBasin")
_ABILITIES = ("cleanable", "heatable", "coolable", "sliceable", "toggleable")


@dataclass(frozen=True)
class Thing:
    """An object: the simulator's id, its type, and the receptacle that it starts in."""

    id: str
    kind: str
    place: Place


def write_problem(room: Room, goal: Goal, things: Sequence[Thing], start: tuple[int, int, int, int]) -> str:
    """Return the PDDL problem of a room with things in it; the agent stands at the pose `start`."""
    tables = package.constants()
    holdable: dict[str, set[str]] = tables.VAL_RECEPTACLE_OBJECTS
    locations = {place.id: _location(place.stand, index) for index, place in enumerate(room.places, start=1)}
    here = _location(start, 0)
    kinds = sorted({thing.kind for thing in things})

    objects = ["agent1 - agent"]
    objects += [f"{kind}Type - otype" for kind in sorted({*kinds, *_NAMED_OBJECT_TYPES})]
    objects += [f"{kind}Type - rtype" for kind in sorted({*room.kinds, *_NAMED_RECEPTACLE_TYPES})]
    objects += [f"{mangle(place.id)} - receptacle" for place in room.places]
    objects += [f"{mangle(thing.id)} - object" for thing in things]
    objects += [f"{name} - location" for name in (here, *locations.values())]

    facts = [f"(atLocation agent1 {here})", "(= (total-cost) 0)"]
    for place in room.places:
        name = mangle(place.id)
        facts += [f"(receptacleType {name} {place.kind}Type)", f"(receptacleAtLocation {name} {locations[place.id]})"]
        if place.kind in tables.OPENABLE_CLASS_SET:
            facts.append(f"(openable {name})")
    facts += [
        f"(canContain {receptacle}Type {kind}Type)"
        for receptacle in room.kinds
        for kind in kinds
        if kind in holdable[receptacle]
    ]
    for thing in things:
        name = mangle(thing.id)
        facts += [
            f"(objectType {name} {thing.kind}Type)",
            f"(inReceptacle {name} {mangle(thing.place.id)})",
            f"(objectAtLocation {name} {locations[thing.place.id]})",
        ]
        facts += [
            f"({ability} {name})"
            for ability in _ABILITIES
            if thing.kind in tables.VAL_ACTION_OBJECTS[ability.capitalize()]
        ]
        if thing.kind not in tables.VAL_ACTION_OBJECTS["Toggleable"]:
            facts.append(f"(pickupable {name})")
    return _assemble(objects, facts, goal)


def _assemble(objects: Iterable[str], facts: Iterable[str], goal: Goal) -> str:
    template = str(package.goal_library()[goal.task]["pddl"])
    wanted = template.format(obj=goal.thing, recep=goal.parent, toggle=goal.toggle, mrecep="").replace("#", "-").strip()
    body = wanted.removesuffix(")")  # the package's template closes the (define
    lines = [
        "(define (problem vlgym)",
        "(:domain alfred)",
        "(:objects",
        *objects,
        ")",
        "(:init",
        *facts,
        ")",
        body,
        "(:metric minimize (total-cost))",
        ")",
    ]
    return "\n".join(lines) + "\n"


def _location(pose: tuple[int, int, int, int], index: int) -> str:
    return mangle(f"loc|{pose[0]}|{pose[1]}|{pose[2]}|{pose[3]}|{index}")


FEWEST_THINGS, MOST_THINGS = 12, 22
"""Bounds on the number of objects in a room, lamps not counted (a room with few kinds of object may have fewer)."""

MOST_OF_A_KIND = 3
MOST_TOGETHER = 8
"""Most objects in one receptacle."""

LAMP = "DeskLamp"
LAMP_STANDS = ("CoffeeTable", "Desk", "DiningTable", "Dresser", "Shelf", "SideTable")
_ABILITY_OF = {CLEAN: "Cleanable", HEAT: "Heatable", COOL: "Coolable"}
_T = TypeVar("_T")


_Plan = tuple[Goal, tuple[str, ...]]
"""A goal that a room affords, and the receptacle types that may hold its object at the start."""


def draw_game(
    rng: np.random.Generator,
    task: str,
    *,
    seen: bool = True,
    scene: int | None = None,
    things: tuple[int, int] = (FEWEST_THINGS, MOST_THINGS),
    places: tuple[int, int] = (0, 999),
) -> Game:
    """Draw a game.

    Args:
        rng: the only source of chance.
        task: ALFRED task type.
        seen: whether the room is drawn from the official training scenes or from the unseen ones.
        scene: a room, in place of a drawn one.
        things: bounds on the number of objects.
        places: bounds on the number of receptacles of a drawn room; without effect where no room fits.

    Raises:
        UserError: the chosen room does not afford the task.
    """
    scenes = fitting_scenes(task, seen) if scene is None else (scene,)
    if scene is None:
        scenes = tuple(each for each in scenes if places[0] <= len(load_room(each).places) <= places[1]) or scenes
    room = load_room(_pick(rng, scenes))
    plans = _plans(task, room.scene)
    if not plans:
        fitting = sorted(fitting_scenes(task, True) + fitting_scenes(task, False))
        raise UserError(
            f"Scene {room.scene} ({room.kind}) affords no {task} task; scenes that do: {', '.join(map(str, fitting))}."
        )
    thing_type = _pick(rng, sorted({goal.thing for goal, _ in plans}))
    goal, sources = _pick(rng, [plan for plan in plans if plan[0].thing == thing_type])
    laid = _lay_out(rng, room, goal, sources, things)
    stand = tuple(int(number) for number in _pick(rng, list(room.floor)))
    start = (stand[0], stand[1], int(rng.integers(4)), 30)
    sentences: list[str] = package.goal_library()[task]["templates"]
    sentence = str(_pick(rng, sentences)).format(
        obj=goal.thing.lower(), recep=goal.parent.lower(), toggle=goal.toggle.lower()
    )
    return Game(
        name=f"{task}-{goal.thing}-None-{goal.parent or goal.toggle}-{room.scene}",
        goal=goal,
        scene=room.scene,
        sentence=sentence,
        domain=package.domain_text(),
        grammar=package.grammar_text().replace("UNKNOWN GOAL", sentence),
        problem=write_problem(room, goal, laid, start),
    )


@lru_cache(maxsize=16)
def fitting_scenes(task: str, seen: bool) -> tuple[int, ...]:
    """Return the official scenes (training or unseen) that afford a task, sorted."""
    return tuple(scene for scene in scene_numbers(seen) if _plans(task, scene))


@lru_cache(maxsize=1024)
def _plans(task: str, scene: int) -> tuple[_Plan, ...]:
    """All goals of a task type that a room affords, in a fixed order."""
    room, tables = load_room(scene), package.constants()
    if room.kind not in tables.GOALS_VALID[task]:
        return ()
    if task == LOOK:
        if not room.has_desk_lamp or not _stands(room):
            return ()
        return tuple((Goal(LOOK, thing, toggle=LAMP), _holders(room, thing)) for thing in room.objects)
    needed = TREATMENTS[task][1] if task in TREATMENTS else None
    if needed is not None and needed not in room.kinds:
        return ()
    able = tables.VAL_ACTION_OBJECTS[_ABILITY_OF[task]] if task in _ABILITY_OF else set(room.objects)
    plans = []
    for thing in room.objects:
        holders = _holders(room, thing)
        for parent in holders:
            sources = tuple(kind for kind in holders if kind != parent)
            if thing in able and sources and parent != needed:
                plans.append((Goal(task, thing, parent=parent), sources))
    return tuple(plans)


def _lay_out(
    rng: np.random.Generator, room: Room, goal: Goal, sources: tuple[str, ...], bounds: tuple[int, int]
) -> list[Thing]:
    """Draw the objects and the receptacles that they lie in."""
    counts = {goal.thing: int(rng.integers(2 if goal.task == PICK_TWO else 1, MOST_OF_A_KIND + 1))}
    wanted = int(rng.integers(bounds[0], bounds[1] + 1))
    others = [thing for thing in room.objects if thing != goal.thing]
    for index in rng.permutation(len(others)):
        room_left = wanted - sum(counts.values())
        if room_left <= 0:
            break
        counts[others[int(index)]] = min(room_left, int(rng.integers(1, MOST_OF_A_KIND + 1)))
    load: dict[str, int] = {}
    things: list[Thing] = []
    for thing, count in counts.items():
        kinds = sources if thing == goal.thing else _holders(room, thing)
        for _ in range(count):
            place = _draw_place(rng, room, kinds, load)
            load[place.id] = load.get(place.id, 0) + 1
            things.append(_put(rng, thing, place, len(things)))
    if goal.task == LOOK:
        place = _draw_place(rng, room, _stands(room), {})
        things.append(_put(rng, LAMP, place, len(things)))
    return things


def _draw_place(rng: np.random.Generator, room: Room, kinds: Sequence[str], load: dict[str, int]) -> Place:
    """Draw a receptacle: first its type, then one of that type, so that many cabinets do not swallow everything; full
    ones are left out.
    """
    free = {
        kind: [place for place in room.places if place.kind == kind and load.get(place.id, 0) < MOST_TOGETHER]
        for kind in kinds
    }
    open_kinds = [kind for kind in kinds if free[kind]]
    if not open_kinds:
        return _pick(rng, [place for place in room.places if place.kind in kinds])
    return _pick(rng, free[_pick(rng, open_kinds)])


def _put(rng: np.random.Generator, kind: str, place: Place, number: int) -> Thing:
    """Give an object a position near its receptacle's; the number keeps ids apart."""
    x, y, z = (float(part) for part in place.id.split("|")[1:4])
    dx, dz = (float(shift) for shift in rng.uniform(-0.2, 0.2, size=2))
    return Thing(f"{kind}|{x + dx:+06.2f}|{y + number / 100:+06.2f}|{z + dz:+06.2f}", kind, place)


def _holders(room: Room, thing: str) -> tuple[str, ...]:
    table = package.constants().VAL_RECEPTACLE_OBJECTS
    return tuple(kind for kind in room.kinds if thing in table[kind])


def _stands(room: Room) -> tuple[str, ...]:
    return tuple(kind for kind in room.kinds if kind in LAMP_STANDS)


def _pick(rng: np.random.Generator, choices: Sequence[_T]) -> _T:
    return choices[int(rng.integers(len(choices)))]
