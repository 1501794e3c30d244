"""The oracle that seeks: it knows what has been seen in this episode, not where things are, so that a model which sees
the same can learn from it.

What it does with a thing that it has seen is the knowing oracle's business (`oracle`), which is given a world without
the rest. Here is the memory, and where to look next. The furniture, which doors are open, and what kind of furniture
takes what kind of thing count as known: the picture shows the former, and the latter is how homes are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from .oracle import Advice, advise
from .tasks import LOOK, Goal
from .world import World, number_key


class Memory:
    """Where things were when they were last seen, and into what furniture was looked; of one episode."""

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
