"""The six ALFRED task types, their goals, and which of a goal's conditions a state meets.

ALFRED's simulator counts the same conditions as `goal_condition_success_rate`; here they are read from the facts.
"""

from __future__ import annotations

from dataclasses import dataclass

from .world import World

PICK = "pick_and_place_simple"
LOOK = "look_at_obj_in_light"
CLEAN = "pick_clean_then_place_in_recep"
HEAT = "pick_heat_then_place_in_recep"
COOL = "pick_cool_then_place_in_recep"
PICK_TWO = "pick_two_obj_and_place"

TASKS = (PICK, LOOK, CLEAN, HEAT, COOL, PICK_TWO)
"""The task types, in the order of ALFWorld's numbers 1 to 6."""

TREATMENTS = {CLEAN: ("clean", "SinkBasin"), HEAT: ("hot", "Microwave"), COOL: ("cool", "Fridge")}
"""What an object must become, and the receptacle type that makes it so."""


@dataclass(frozen=True)
class Goal:
    """What an episode asks for.

    Attributes:
        task: one of `TASKS`.
        thing: object type, for example `Mug`.
        parent: receptacle type that it must be brought to; empty for `LOOK`.
        toggle: type of the lamp for `LOOK`; else empty.
    """

    task: str
    thing: str
    parent: str = ""
    toggle: str = ""


def met_conditions(goal: Goal, world: World) -> tuple[bool, ...]:
    """Return for each of the goal's conditions whether the state meets it; all of them together are the goal.

    Pick: an object of the type is in or on a receptacle of the type. Pick two: one is; two are, in the same receptacle.
        Look: the object is
    held; a lamp that is on stands where the agent is. Clean, heat, cool: an object is in place; an object was treated;
    a treated one is in place.
    """
    things = [name for name, kind in world.object_kinds.items() if kind == goal.thing.lower()]
    if goal.task == LOOK:
        lamps = [name for name, kind in world.object_kinds.items() if kind == goal.toggle.lower()]
        here = set(world.receptacles_here())
        lit = any(lamp in world.toggled and world.holder.get(lamp) in here for lamp in lamps)
        return world.held in things, lit
    parents = {name for name, kind in world.receptacle_kinds.items() if kind == goal.parent.lower()}
    placed = [name for name in things if world.holder.get(name) in parents]
    if goal.task == PICK:
        return (bool(placed),)
    if goal.task == PICK_TWO:
        fullest = max((sum(world.holder[name] == parent for name in placed) for parent in parents), default=0)
        return fullest >= 1, fullest >= 2
    state = TREATMENTS[goal.task][0]
    treated = [name for name in things if name in world.states[state]]
    return bool(placed), bool(treated), any(name in treated for name in placed)
