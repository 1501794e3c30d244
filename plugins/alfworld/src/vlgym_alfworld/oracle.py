"""Two oracles without search: one knows where everything is, one only what has been seen in this episode.

The seeking oracle gives the knowing one a world without the things that were not seen, and says where to look next.
Both finish every generated game, also after arbitrary commands. They are good, not proved optimal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .game import LOOK, PICK_TWO, TREATMENTS, Goal, World, number_key

_VERBS = {"clean": "clean", "hot": "heat", "cool": "cool"}


@dataclass(frozen=True)
class Advice:
    """A command and the thought behind it."""

    command: str
    reason: str


def advise(goal: Goal, world: World, commands: Sequence[str]) -> Advice | None:
    """Return the next command towards the goal, one of `commands`; `None` where nothing helps."""
    return _Guide(goal, world, commands).next()


class _Guide:
    def __init__(self, goal: Goal, world: World, commands: Sequence[str]) -> None:
        self.goal, self.world, self.commands = goal, world, frozenset(commands)
        self.things = _of_kind(world.object_kinds, goal.thing)
        self.parents = _of_kind(world.receptacle_kinds, goal.parent)
        self.treatment, self.appliance = TREATMENTS.get(goal.task, ("", ""))

    def next(self) -> Advice | None:
        load = self.world.held
        if load is not None and load not in self.things:
            return self.put(load, list(self.world.receptacle_kinds), "I need a free hand", aside=True)
        if load is None:
            return self.fetch()
        if self.goal.task == LOOK:
            return self.light()
        if self.treatment and load not in self.world.states[self.treatment]:
            return self.treat(load)
        return self.put(load, self.target_parents(), f"it belongs in the {self.goal.parent.lower()}")

    def fetch(self) -> Advice | None:
        """Take an object of the goal's type that is not where it should be."""
        world = self.world
        done = self.target_parents()[:1] if self.goal.task == PICK_TWO else []
        ready = world.states.get(self.treatment, frozenset())
        candidates = [
            thing
            for thing in self.things
            if thing in world.holder and thing in world.takeable and world.holder[thing] not in done
        ]
        if not candidates:
            return None
        thing = min(candidates, key=lambda one: (one not in ready, *self._effort(world.holder[one]), number_key(one)))
        place = world.holder[thing]
        return self.reach(place, f"I need the {thing}") or self._say(
            f"I take the {thing}", f"take {thing} from {place}"
        )

    def put(self, load: str, places: Iterable[str], reason: str, *, aside: bool = False) -> Advice | None:
        """Bring the held object to the first receptacle of `places` that takes it (`aside`: to the nearest)."""
        fitting = [place for place in places if self.world.can_hold(place, load)]
        if not fitting:
            return None
        place = min(fitting, key=self._effort) if aside else fitting[0]
        why = f"I hold the {load}; {reason}"
        return self.reach(place, why) or self._say(why, f"move {load} to {place}", f"put {load} in/on {place}")

    def treat(self, load: str) -> Advice | None:
        places = sorted(_of_kind(self.world.receptacle_kinds, self.appliance), key=self._effort)
        if not places:
            return None
        why = f"the {load} must be {self.treatment}"
        return self.go(places[0], why) or self._say(why, f"{_VERBS[self.treatment]} {load} with {places[0]}")

    def light(self) -> Advice | None:
        lamps = [lamp for lamp in _of_kind(self.world.object_kinds, self.goal.toggle) if lamp in self.world.holder]
        if not lamps:
            return None
        lamp = min(lamps, key=lambda one: (*self._effort(self.world.holder[one]), number_key(one)))
        why = f"I hold the {self.world.held} and need the light of the {lamp}"
        return self.go(self.world.holder[lamp], why) or self._say(why, f"use {lamp}")

    def reach(self, place: str, why: str) -> Advice | None:
        """Go to a receptacle and open it; `None` when there is nothing left to do."""
        if not self._is_here(place):
            return self.go(place, why)
        if not self.world.is_accessible(place):
            return self._say(f"{why}; the {place} is closed", f"open {place}")
        return None

    def go(self, place: str, why: str) -> Advice | None:
        return None if self._is_here(place) else self._say(f"{why}, so I go to {place}", f"go to {place}")

    def target_parents(self) -> list[str]:
        """The receptacles of the goal's type, the best first: the one with most of the objects already, then the
        nearest.
        """
        counted = self.things if self.goal.task == PICK_TWO else []
        inside = {place: sum(self.world.holder.get(thing) == place for thing in counted) for place in self.parents}
        return sorted(self.parents, key=lambda place: (-inside[place], *self._effort(place)))

    def _effort(self, place: str) -> tuple[int, tuple[str, int]]:
        """Commands that it takes to reach into a receptacle, then its name."""
        return (not self._is_here(place)) + (not self.world.is_accessible(place)), number_key(place)

    def _is_here(self, place: str) -> bool:
        return self.world.receptacle_at.get(place) == self.world.agent_at

    def _say(self, reason: str, *commands: str) -> Advice | None:
        """Return the first command that the engine admits (older games say `put .. in/on` for `move .. to`)."""
        return next((Advice(command, reason) for command in commands if command in self.commands), None)


def _of_kind(kinds: Mapping[str, str], kind: str) -> list[str]:
    return sorted((name for name, its in kinds.items() if its == kind.lower()), key=number_key)


class Memory:
    """Last seen places of things and searched furniture, in one episode."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self.looked: set[str] = set()

    def look(self, world: World) -> None:
        """Remember what can be seen now: the contents of the open furniture where the agent is, and what it holds."""
        for receptacle, things in world.visible().items():
            self._places.update(dict.fromkeys(things, receptacle))
            self.looked.add(receptacle)
        if world.held is not None:
            self._places.pop(world.held, None)

    def recall(self, world: World) -> World:
        """Return a state without all that was not seen."""
        known = {*self._places, *([world.held] if world.held is not None else [])}
        return replace(
            world,
            holder=dict(self._places),
            object_kinds={thing: kind for thing, kind in world.object_kinds.items() if thing in known},
            states={word: things & known for word, things in world.states.items()},
            toggled=world.toggled & known,
        )


def seek(goal: Goal, world: World, memory: Memory, commands: Sequence[str]) -> Advice | None:
    """Return the next command towards the goal from what was seen; where that is not enough, one that looks further.

    Args:
        goal: what must be done.
        world: the state; of the things in it only those that `memory` recalls are used.
        memory: what was seen so far.
        commands: what can be commanded now.

    Returns:
        `None` where all furniture was looked into and nothing helps.
    """
    advice = advise(goal, memory.recall(world), commands)
    return advice or _explore(goal, world, memory, commands)


def _explore(goal: Goal, world: World, memory: Memory, commands: Sequence[str]) -> Advice | None:
    """Go to, or open, the furniture where the missing thing is likeliest for the fewest commands."""
    missing = goal.toggle if goal.task == LOOK and world.held is not None else goal.thing
    places = [place for place in world.receptacle_kinds if place not in memory.looked]
    of_kind = Counter(world.receptacle_kinds.values())

    def rank(place: str) -> tuple[bool, bool, int, tuple[str, int]]:
        kind = world.receptacle_kinds[place]
        here = world.receptacle_at.get(place) == world.agent_at
        effort = (not here) + (not world.is_accessible(place))
        fits = missing.lower() in world.holds_kinds.get(kind, ())
        return not fits, kind == goal.parent.lower(), effort * of_kind[kind], number_key(place)

    if not places:
        return None
    place = min(places, key=rank)
    why = f"I have not seen {_with_article(missing.lower())} yet; it may be in the {place}"
    command = f"open {place}" if world.receptacle_at.get(place) == world.agent_at else f"go to {place}"
    return Advice(command, why) if command in commands else None


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
