"""Write a PDDL problem of ALFWorld's domain.

Two rules that the domain file does not state: `:metric` comes last, and the types that actions mention by name (knives,
basin, microwave, fridge) must be declared even where the room has none. Every receptacle gets a location of its own;
with a shared one the agent could use a lamp that stands elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import package
from .names import mangle
from .rooms import Place, Room
from .tasks import Goal

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
