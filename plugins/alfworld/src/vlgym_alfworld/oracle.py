"""Two oracles without search: one knows where everything is, one only what the episode has shown.

The seeking oracle gives the knowing one a world without the things that were not seen, and says
where to look next. Both finish every generated game, also after arbitrary commands.
"""

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
            nearest = sorted(self.world.receptacle_kinds, key=self._effort)
            return self.put(load, nearest, "I need a free hand")
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
        here = [thing for thing in self.things if thing in world.holder and thing in world.takeable]
        candidates = [thing for thing in here if world.holder[thing] not in done]
        if not candidates:
            return None

        # One that is treated already saves a way; then the nearest.
        thing = min(candidates, key=lambda one: (one not in ready, *self._rank(one)))
        place = world.holder[thing]
        return self.reach(place, f"I need the {thing}") or self._say(
            f"I take the {thing}", f"take {thing} from {place}"
        )

    def put(self, load: str, places: Iterable[str], reason: str) -> Advice | None:
        """Bring the held object to the first of `places` that takes it."""
        place = next((place for place in places if self.world.can_hold(place, load)), None)
        if place is None:
            return None
        why = f"I hold the {load}; {reason}"
        commands = f"move {load} to {place}", f"put {load} in/on {place}"
        return self.reach(place, why) or self._say(why, *commands)

    def treat(self, load: str) -> Advice | None:
        places = _of_kind(self.world.receptacle_kinds, self.appliance)
        if not places:
            return None
        place, why = min(places, key=self._effort), f"the {load} must be {self.treatment}"
        return self.go(place, why) or self._say(why, f"{_VERBS[self.treatment]} {load} with {place}")

    def light(self) -> Advice | None:
        lamps = _of_kind(self.world.object_kinds, self.goal.toggle)
        lamps = [lamp for lamp in lamps if lamp in self.world.holder]
        if not lamps:
            return None
        lamp = min(lamps, key=self._rank)
        why = f"I hold the {self.world.held} and need the light of the {lamp}"
        return self.go(self.world.holder[lamp], why) or self._say(why, f"use {lamp}")

    def reach(self, place: str, why: str) -> Advice | None:
        """Go to a receptacle and open it; `None` when there is nothing left to do."""
        if not self.world.is_here(place):
            return self.go(place, why)
        if not self.world.is_accessible(place):
            return self._say(f"{why}; the {place} is closed", f"open {place}")
        return None

    def go(self, place: str, why: str) -> Advice | None:
        if self.world.is_here(place):
            return None
        return self._say(f"{why}, so I go to {place}", f"go to {place}")

    def target_parents(self) -> list[str]:
        """Return the goal's receptacles: that with most of two objects first, then the nearest."""
        counted = self.things if self.goal.task == PICK_TWO else []
        inside = Counter(self.world.holder.get(thing) for thing in counted)
        return sorted(self.parents, key=lambda place: (-inside[place], *self._effort(place)))

    def _rank(self, thing: str) -> tuple[int, tuple[str, int], tuple[str, int]]:
        return *self._effort(self.world.holder[thing]), number_key(thing)

    def _effort(self, place: str) -> tuple[int, tuple[str, int]]:
        """Return the commands that it takes to reach into a receptacle, then its name."""
        return self.world.count_commands(place), number_key(place)

    def _say(self, reason: str, *commands: str) -> Advice | None:
        """Return the first command that the engine admits: older games say `put`, not `move`."""
        return next((Advice(command, reason) for command in commands if command in self.commands), None)


def _of_kind(kinds: Mapping[str, str], kind: str) -> list[str]:
    return sorted((name for name, its in kinds.items() if its == kind.lower()), key=number_key)


class Memory:
    """Last seen places of things and searched furniture, in one episode."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self.looked: set[str] = set()

    def look(self, world: World) -> None:
        """Remember the contents of the open furniture where the agent is, and what it holds."""
        for receptacle, things in world.visible().items():
            self._places.update(dict.fromkeys(things, receptacle))
            self.looked.add(receptacle)
        if world.held is not None:
            self._places.pop(world.held, None)

    def recall(self, world: World) -> World:
        """Return a state without all that was not seen."""
        known = {*self._places, world.held}
        kinds = {thing: kind for thing, kind in world.object_kinds.items() if thing in known}
        return replace(
            world,
            holder=dict(self._places),
            object_kinds=kinds,
            states={word: things & known for word, things in world.states.items()},
            toggled=world.toggled & known,
        )


def seek(goal: Goal, world: World, memory: Memory, commands: Sequence[str]) -> Advice | None:
    """Return the next command towards the goal from what `memory` recalls of the world, if any."""
    if advice := advise(goal, memory.recall(world), commands):
        return advice

    # The missing thing is sought where it is likeliest for the fewest commands.
    missing = (goal.toggle if goal.task == LOOK and world.held is not None else goal.thing).lower()
    places = [place for place in world.receptacle_kinds if place not in memory.looked]
    of_kind = Counter(world.receptacle_kinds.values())

    def rank(place: str) -> tuple[bool, bool, int, tuple[str, int]]:
        kind = world.receptacle_kinds[place]
        fits = missing in world.holds_kinds.get(kind, ())
        effort = world.count_commands(place) * of_kind[kind]
        return not fits, kind == goal.parent.lower(), effort, number_key(place)

    if not places:
        return None
    place = min(places, key=rank)
    article = "an" if missing[0] in "aeiou" else "a"
    why = f"I have not seen {article} {missing} yet; it may be in the {place}"
    command = f"open {place}" if world.is_here(place) else f"go to {place}"
    return Advice(command, why) if command in commands else None
