"""Draw a game: a room, a goal that it affords, and things laid out so that it can be met and is not yet.

Rooms, tables of containment, PDDL domain and sentences are the installed package's; the goals and
the layout of the things are drawn here, from the generator that is passed.
"""

from collections.abc import Sequence
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

    # Types of furniture and objects that the domain names must exist in every game.
    objects = ["agent1 - agent"]
    objects += [f"{kind}Type - otype" for kind in sorted({*kinds, *_NAMED_OBJECT_TYPES})]
    objects += [f"{kind}Type - rtype" for kind in sorted({*room.kinds, *_NAMED_RECEPTACLE_TYPES})]
    objects += [f"{mangle(place.id)} - receptacle" for place in room.places]
    objects += [f"{mangle(thing.id)} - object" for thing in things]
    objects += [f"{name} - location" for name in (here, *locations.values())]

    # The furniture: where it stands, whether it has a door, what it can hold.
    facts = [f"(atLocation agent1 {here})", "(= (total-cost) 0)"]
    for place in room.places:
        name = mangle(place.id)
        facts.append(f"(receptacleType {name} {place.kind}Type)")
        facts.append(f"(receptacleAtLocation {name} {locations[place.id]})")
        if place.kind in tables.OPENABLE_CLASS_SET:
            facts.append(f"(openable {name})")
    facts += [
        f"(canContain {receptacle}Type {kind}Type)"
        for receptacle in room.kinds
        for kind in kinds
        if kind in holdable[receptacle]
    ]
    # The objects: where they lie, and what can be done with them.
    for thing in things:
        name, abilities = mangle(thing.id), tables.VAL_ACTION_OBJECTS
        facts += [
            f"(objectType {name} {thing.kind}Type)",
            f"(inReceptacle {name} {mangle(thing.place.id)})",
            f"(objectAtLocation {name} {locations[thing.place.id]})",
        ]
        facts += [f"({word} {name})" for word in _ABILITIES if thing.kind in abilities[word.capitalize()]]
        if thing.kind not in abilities["Toggleable"]:
            facts.append(f"(pickupable {name})")

    # The package's goal closes the (define, where a metric still has to follow.
    template = str(package.goal_library()[goal.task]["pddl"])
    wanted = template.format(obj=goal.thing, recep=goal.parent, toggle=goal.toggle, mrecep="")
    body = wanted.replace("#", "-").strip().removesuffix(")")
    header = ["(define (problem vlgym)", "(:domain alfred)"]
    lists = ["(:objects", *objects, ")", "(:init", *facts, ")"]
    return "\n".join([*header, *lists, body, "(:metric minimize (total-cost))", ")"]) + "\n"


def _location(pose: tuple[int, int, int, int], index: int) -> str:
    return mangle(f"loc|{pose[0]}|{pose[1]}|{pose[2]}|{pose[3]}|{index}")


FEWEST_THINGS, MOST_THINGS = 12, 22  # objects in a room, lamps aside; with few kinds fewer

MOST_OF_A_KIND = 3
MOST_TOGETHER = 8  # most objects in one receptacle
LAMP = "DeskLamp"
LAMP_STANDS = ("CoffeeTable", "Desk", "DiningTable", "Dresser", "Shelf", "SideTable")
_ABILITY_OF = {CLEAN: "Cleanable", HEAT: "Heatable", COOL: "Coolable"}
_T = TypeVar("_T")
_Plan = tuple[Goal, tuple[str, ...]]  # a goal, and the receptacle types where its object may start


def draw_game(
    rng: np.random.Generator,
    task: str,
    *,
    seen: bool = True,
    scene: int | None = None,
    things: tuple[int, int] = (FEWEST_THINGS, MOST_THINGS),
    places: tuple[int, int] = (0, 999),
) -> Game:
    """Draw a game in a room: `scene`, else (`seen`) an official training scene or an unseen one.

    `things` bounds the number of objects, `places` that of a drawn room's receptacles where a room
    fits. A `UserError` says that the chosen room does not afford the task.
    """
    scenes: tuple[int, ...] = (scene,) if scene is not None else ()
    if scene is None:
        fitting = fitting_scenes(task, seen)
        low, high = places
        scenes = tuple(each for each in fitting if low <= len(load_room(each).places) <= high)
        scenes = scenes or fitting
    room = load_room(_pick(rng, scenes))
    plans = _plans(task, room.scene)
    if not plans:
        fitting = tuple(sorted(fitting_scenes(task, True) + fitting_scenes(task, False)))
        others = ", ".join(map(str, fitting))
        raise UserError(f"Scene {room.scene} ({room.kind}) affords no {task} task; scenes that do: {others}.")

    # The object is drawn before its destination, so that each type of object is as frequent.
    thing_type = _pick(rng, sorted({goal.thing for goal, _ in plans}))
    goal, sources = _pick(rng, [plan for plan in plans if plan[0].thing == thing_type])
    laid = _lay_out(rng, room, goal, sources, things)
    column, row = (int(number) for number in _pick(rng, list(room.floor)))
    start = (column, row, int(rng.integers(4)), 30)

    # ALFRED has several sentences for a task.
    words = {"obj": goal.thing, "recep": goal.parent, "toggle": goal.toggle}
    words = {name: word.lower() for name, word in words.items()}
    sentence = str(_pick(rng, package.goal_library()[task]["templates"])).format(**words)
    return Game(
        name=f"{task}-{goal.thing}-None-{goal.parent or goal.toggle}-{room.scene}",
        goal=goal,
        scene=room.scene,
        sentence=sentence,
        domain=package.read_data("alfred.pddl"),
        grammar=package.read_data("alfred.twl2").replace("UNKNOWN GOAL", sentence),
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

    # The object must be one that can be treated, and must start in furniture of another type.
    able = set(room.objects)
    if task in _ABILITY_OF:
        able = tables.VAL_ACTION_OBJECTS[_ABILITY_OF[task]]
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
    counts = {goal.thing: int(rng.integers(2 if goal.task == PICK_TWO else 1, MOST_OF_A_KIND + 1))}
    wanted = int(rng.integers(bounds[0], bounds[1] + 1))
    others = [thing for thing in room.objects if thing != goal.thing]
    for index in rng.permutation(len(others)):
        room_left = wanted - sum(counts.values())
        if room_left <= 0:
            break
        counts[others[int(index)]] = min(room_left, int(rng.integers(1, MOST_OF_A_KIND + 1)))

    # The goal's objects lie where they do not meet it; the others anywhere that can hold them.
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
    """Draw a type, then a receptacle of it that is not full: many cabinets do not get all."""
    fitting = [place for place in room.places if place.kind in kinds]
    free = [place for place in fitting if load.get(place.id, 0) < MOST_TOGETHER]
    if not free:
        return _pick(rng, fitting)
    kind = _pick(rng, [kind for kind in kinds if any(place.kind == kind for place in free)])
    return _pick(rng, [place for place in free if place.kind == kind])


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
