"""A game: a snapshot of its facts, the six ALFRED task types with their goals, the game file's record.

Oracle, goal conditions and picture read the snapshot; none of them touches the engine. The
conditions are those that ALFRED's simulator counts as `goal_condition_success_rate`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_STATES = {"isclean": "clean", "ishot": "hot", "iscool": "cool", "issliced": "sliced"}
_CHANGING = frozenset({"atlocation", "inreceptacle", "holds", "opened", "istoggled", *_STATES})


@dataclass(frozen=True)
class World:
    """The state of a game. Things have the names of the commands, for example `mug 1`."""

    agent_at: str
    receptacle_at: Mapping[str, str]
    receptacle_kinds: Mapping[str, str]  # type, lower case, for example `countertop`
    object_kinds: Mapping[str, str]
    holder: Mapping[str, str]  # object -> receptacle that it is in or on; a held one has none
    held: str | None
    openable: frozenset[str]  # receptacles with a door or drawer
    opened: frozenset[str]
    states: Mapping[str, frozenset[str]]  # `clean`, `hot`, `cool`, `sliced` -> objects
    toggled: frozenset[str]  # lamps that were switched on
    takeable: frozenset[str]  # objects that can be picked up
    holds_kinds: Mapping[str, frozenset[str]] = field(repr=False)  # object types, lower case

    def receptacles_here(self) -> list[str]:
        """Return the receptacles at the agent's location, in the order of their names."""
        return sorted(filter(self.is_here, self.receptacle_at), key=number_key)

    def is_here(self, receptacle: str) -> bool:
        """True if the receptacle is at the agent's location."""
        return self.receptacle_at.get(receptacle) == self.agent_at

    def count_commands(self, receptacle: str) -> int:
        """Return how many commands it takes to reach into a receptacle: to go there, to open it."""
        return (not self.is_here(receptacle)) + (not self.is_accessible(receptacle))

    def is_accessible(self, receptacle: str) -> bool:
        """True if the receptacle has no door, or its door is open."""
        return receptacle not in self.openable or receptacle in self.opened

    def visible(self) -> dict[str, list[str]]:
        """Return the receptacles here that can be looked into, with their contents."""
        seen = [name for name in self.receptacles_here() if self.is_accessible(name)]
        things = sorted(self.holder, key=number_key)
        return {name: [thing for thing in things if self.holder[thing] == name] for name in seen}

    def can_hold(self, receptacle: str, thing: str) -> bool:
        """True if the receptacle's type takes the object's type."""
        return self.object_kinds[thing] in self.holds_kinds.get(self.receptacle_kinds[receptacle], ())


def number_key(name: str) -> tuple[str, int]:
    """Sort key of names like `cabinet 10`: by word, then by number."""
    word, _, number = name.rpartition(" ")
    return (word, int(number)) if number.isdigit() else (name, 0)


def read_world(facts: Iterable[Any], names: Mapping[str, str], before: World | None = None) -> World:
    """Sort the engine's facts into a snapshot.

    `names` are those in commands of the engine's ids, for example `mug 1`. An earlier snapshot of
    the game, `before`, has what never changes.
    """
    # Only some facts ever change; the others need no sorting again.
    rows: dict[str, list[tuple[str, ...]]] = {}
    for fact in facts:
        if before is None or fact.name in _CHANGING:
            rows.setdefault(fact.name, []).append(tuple(variable.name for variable in fact.arguments))

    def pairs(name: str) -> dict[str, str]:
        return {names[row[0]]: row[1] for row in sorted(rows.get(name, ()))}

    def single(name: str) -> frozenset[str]:
        return frozenset(names[row[0]] for row in rows.get(name, ()))

    changing: dict[str, Any] = {
        "agent_at": rows.get("atlocation", [("", "")])[0][1],
        "holder": {name: names[place] for name, place in pairs("inreceptacle").items()},
        "held": min((names[row[1]] for row in rows.get("holds", ())), default=None),
        "opened": single("opened"),
        "states": {word: single(fact) for fact, word in _STATES.items()},
        "toggled": single("istoggled"),
    }
    if before is not None:
        return replace(before, **changing)

    # Types are words of the facts, in lower case.
    def kinds(name: str) -> dict[str, str]:
        return {thing: type_word(kind) for thing, kind in pairs(name).items()}

    holds: dict[str, set[str]] = {}
    for receptacle_type, object_type in rows.get("cancontain", ()):
        holds.setdefault(type_word(receptacle_type), set()).add(type_word(object_type))
    return World(
        receptacle_at=pairs("receptacleatlocation"),
        receptacle_kinds=kinds("receptacletype"),
        object_kinds=kinds("objecttype"),
        openable=single("openable"),
        takeable=single("pickupable"),
        holds_kinds={kind: frozenset(things) for kind, things in holds.items()},
        **changing,
    )


def type_word(name: str) -> str:
    """Return `mug` for `MugType` or `mugtype`."""
    return name.lower().removesuffix("type")


PICK = "pick_and_place_simple"
LOOK = "look_at_obj_in_light"
CLEAN = "pick_clean_then_place_in_recep"
HEAT = "pick_heat_then_place_in_recep"
COOL = "pick_cool_then_place_in_recep"
PICK_TWO = "pick_two_obj_and_place"

TASKS = (PICK, LOOK, CLEAN, HEAT, COOL, PICK_TWO)  # in the order of ALFWorld's numbers 1 to 6
TREATMENTS = {CLEAN: ("clean", "SinkBasin"), HEAT: ("hot", "Microwave"), COOL: ("cool", "Fridge")}
"""State that an object must reach, and the receptacle type that brings it there."""


@dataclass(frozen=True)
class Goal:
    """Goal of an episode: ALFRED's task and types, for example `Mug`."""

    task: str
    thing: str
    parent: str = ""  # receptacle type that the object must be brought to; empty for `LOOK`
    toggle: str = ""  # type of the lamp for `LOOK`; else empty


def met_conditions(goal: Goal, world: World) -> tuple[bool, ...]:
    """Return for each of the goal's conditions whether the state meets it; together they are the goal.

    Pick: an object of the type is in or on a receptacle of the type. Pick two: one is; two are, in
    the same receptacle. Look: the object is held; a lamp that is on stands where the agent is.
    Clean, heat, cool: an object is in place; an object was treated; a treated one is in place.
    """
    kinds = world.object_kinds
    things = [name for name, kind in kinds.items() if kind == goal.thing.lower()]
    if goal.task == LOOK:
        lamps = [name for name, kind in kinds.items() if kind == goal.toggle.lower()]
        here = world.receptacles_here()
        lit = any(lamp in world.toggled and world.holder.get(lamp) in here for lamp in lamps)
        return world.held in things, lit

    # All other goals ask for objects in place.
    parent = goal.parent.lower()
    parents = {name for name, kind in world.receptacle_kinds.items() if kind == parent}
    placed = [name for name in things if world.holder.get(name) in parents]
    if goal.task == PICK:
        return (bool(placed),)
    if goal.task == PICK_TWO:
        fullest = max(Counter(world.holder[name] for name in placed).values(), default=0)
        return fullest >= 1, fullest >= 2
    treated = world.states[TREATMENTS[goal.task][0]].intersection(things)
    return bool(placed), bool(treated), any(name in treated for name in placed)


@dataclass(frozen=True)
class Game:
    """One game, with its PDDL domain and problem."""

    name: str  # `task-Object-None-Receptacle-scene`, with `/trial_...` for a benchmark game
    goal: Goal
    scene: int  # number of the floor plan
    sentence: str  # the task in words, which the text grammar holds, too
    domain: str
    grammar: str
    problem: str
    file: str = ""  # path of a benchmark game; empty for a generated one

    def data(self) -> dict[str, Any]:
        """Return the content of a `game.tw-pddl` file."""
        texts = {"pddl_domain": self.domain, "grammar": self.grammar, "pddl_problem": self.problem}
        return {**texts, "solvable": True, "walkthrough": None}
