"""A snapshot of a game's facts in plain words: where things are, what is open, held, clean, hot, cool, switched on.

It is what the oracle, the goal conditions and the picture read; none of them touches the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_STATES = {"isclean": "clean", "ishot": "hot", "iscool": "cool", "issliced": "sliced"}
_CHANGING = frozenset({"atlocation", "inreceptacle", "holds", "opened", "istoggled", *_STATES})


@dataclass(frozen=True)
class World:
    """The state of a game. Things are known by the names of the commands, for example `mug 1`.

    Attributes:
        agent_at: location of the agent.
        receptacle_at: location of each receptacle.
        receptacle_kinds: type of each receptacle, lower case, for example `countertop`.
        object_kinds: type of each object, lower case.
        holder: the receptacle that each object is in or on; a held object has none.
        held: the object in the agent's hand, or `None`.
        openable: receptacles with a door or drawer.
        opened: those of them that are open.
        states: for `clean`, `hot`, `cool`, `sliced` the objects in that state.
        toggled: lamps that were switched on.
        takeable: objects that can be picked up.
        holds_kinds: for each receptacle type the object types that it can hold, lower case.
    """

    agent_at: str
    receptacle_at: Mapping[str, str]
    receptacle_kinds: Mapping[str, str]
    object_kinds: Mapping[str, str]
    holder: Mapping[str, str]
    held: str | None
    openable: frozenset[str]
    opened: frozenset[str]
    states: Mapping[str, frozenset[str]]
    toggled: frozenset[str]
    takeable: frozenset[str]
    holds_kinds: Mapping[str, frozenset[str]] = field(repr=False)

    def receptacles_here(self) -> list[str]:
        """The receptacles at the agent's location, in the order of their names."""
        return sorted((name for name, place in self.receptacle_at.items() if place == self.agent_at), key=number_key)

    def contents(self, receptacle: str) -> list[str]:
        """What is in or on a receptacle, in the order of the names; whether it can be seen is another matter."""
        return sorted((name for name, holder in self.holder.items() if holder == receptacle), key=number_key)

    def is_accessible(self, receptacle: str) -> bool:
        """Whether the receptacle has no door, or its door is open."""
        return receptacle not in self.openable or receptacle in self.opened

    def visible(self) -> dict[str, list[str]]:
        """The receptacles at the agent's location that can be looked into, with their contents."""
        return {name: self.contents(name) for name in self.receptacles_here() if self.is_accessible(name)}

    def can_hold(self, receptacle: str, thing: str) -> bool:
        """Whether the receptacle's type takes the object's type."""
        return self.object_kinds[thing] in self.holds_kinds.get(self.receptacle_kinds[receptacle], frozenset())


def number_key(name: str) -> tuple[str, int]:
    """Sort key of names like `cabinet 10`: by word, then by number."""
    word, _, number = name.rpartition(" ")
    return (word, int(number)) if number.isdigit() else (name, 0)


def read_world(facts: Iterable[Any], names: Mapping[str, str], before: World | None = None) -> World:
    """Sort the engine's facts into a snapshot.

    Args:
        facts: propositions with `name` and `arguments`, each argument with a `name` (the engine's id).
        names: the name in commands of each id, for example `mug 1`.
        before: an earlier snapshot of the same game, from which to take what never changes.
    """
    rows: dict[str, list[tuple[str, ...]]] = {}
    for fact in facts:
        if before is None or fact.name in _CHANGING:
            rows.setdefault(fact.name, []).append(tuple(variable.name for variable in fact.arguments))

    def pairs(name: str) -> dict[str, str]:
        return {names[row[0]]: row[1] for row in sorted(rows.get(name, ()))}

    def single(name: str) -> frozenset[str]:
        return frozenset(names[row[0]] for row in rows.get(name, ()))

    held = sorted(names[row[1]] for row in rows.get("holds", ()))
    changing: dict[str, Any] = {
        "agent_at": next(iter(rows.get("atlocation", [("", "")])))[1],
        "holder": {name: names[place] for name, place in pairs("inreceptacle").items()},
        "held": held[0] if held else None,
        "opened": single("opened"),
        "states": {word: single(fact) for fact, word in _STATES.items()},
        "toggled": single("istoggled"),
    }
    if before is not None:
        return replace(before, **changing)
    holds: dict[str, set[str]] = {}
    for receptacle_type, object_type in rows.get("cancontain", ()):
        holds.setdefault(type_word(receptacle_type), set()).add(type_word(object_type))
    return World(
        receptacle_at=pairs("receptacleatlocation"),
        receptacle_kinds={name: type_word(kind) for name, kind in pairs("receptacletype").items()},
        object_kinds={name: type_word(kind) for name, kind in pairs("objecttype").items()},
        openable=single("openable"),
        takeable=single("pickupable"),
        holds_kinds={kind: frozenset(things) for kind, things in holds.items()},
        **changing,
    )


def type_word(name: str) -> str:
    """Return `mug` for `MugType` or `mugtype`."""
    word = name.lower()
    return word.removesuffix("type")
