"""Two greedy cooks: each fetches what is missing most by the shortest way; the one with the more urgent task goes
first, and the other makes way."""

from __future__ import annotations

from collections import deque
from collections.abc import Container

from .kitchen_rules import ONIONS, STEPS, Cell, Kitchen, step

URGENT = ("serve", "take soup", "fill", "wait for soup", "fetch dish", "fetch onion", "put down", "rest")
"""Tasks, the most urgent first."""

DETOUR = 2
"""Steps that are walked more, rather than send the other cook away."""


def choose(kitchen: Kitchen, cook: int) -> str:
    """Return a cook's move, as if the other were such a cook too."""
    tasks = [_task(kitchen, 0, "")]
    tasks.append(_task(kitchen, 1, tasks[0]))
    lead = min((0, 1), key=lambda each: (URGENT.index(tasks[each]), each))
    follow = 1 - lead
    goals = _goals(kitchen, tasks[lead])
    way = _lead_way(kitchen, lead, goals)
    move = _act(kitchen, lead, tasks[lead], goals, way)
    if cook == lead:
        return move
    return _follow(kitchen, follow, tasks[follow], [*way], move)


def _follow(kitchen: Kitchen, cook: int, task: str, others_way: list[Cell], others_move: str) -> str:
    """The move of the cook who makes way."""
    place, other = kitchen.places[cook], kitchen.places[1 - cook]
    if place in others_way:
        out = _walk(kitchen, place, lambda cell: cell not in others_way, {other})
        return _move(place, out[0]) if out else "stay"
    goals = _goals(kitchen, task)
    taken = {other, *others_way[:1]}
    way = _way(kitchen, place, goals, taken)
    move = _act(kitchen, cook, task, goals, way)
    if move == "use" == others_move and kitchen.ahead(0) == kitchen.ahead(1):
        return "stay"
    return move


def _act(kitchen: Kitchen, cook: int, task: str, goals: set[Cell], way: list[Cell]) -> str:
    """Use the thing ahead if that is the task; else turn to it, or walk."""
    place = kitchen.places[cook]
    if kitchen.ahead(cook) in goals:
        return "stay" if task == "wait for soup" else "use"
    beside = [move for move in STEPS if step(place, move) in goals]
    if beside:
        return beside[0]
    return _move(place, way[0]) if way else "stay"


def _lead_way(kitchen: Kitchen, cook: int, goals: set[Cell]) -> list[Cell]:
    """The cells to walk: round the other cook if that is not much longer, else through it."""
    place, other = kitchen.places[cook], kitchen.places[1 - cook]
    through = _way(kitchen, place, goals, ())
    around = _way(kitchen, place, goals, {other})
    return around if around and len(around) <= len(through) + DETOUR else through


def _way(kitchen: Kitchen, place: Cell, goals: set[Cell], blocked: Container[Cell]) -> list[Cell]:
    """The cells of a shortest way to stand beside a goal; empty where there is none, or nothing to walk."""
    return _walk(kitchen, place, lambda cell: any(step(cell, move) in goals for move in STEPS), blocked)


def _walk(kitchen: Kitchen, place: Cell, arrived: object, blocked: Container[Cell]) -> list[Cell]:
    waiting: deque[list[Cell]] = deque([[place]])
    seen = {place}
    while waiting:
        way = waiting.popleft()
        if arrived(way[-1]):  # type: ignore[operator]
            return way[1:]
        for move in STEPS:
            after = step(way[-1], move)
            if kitchen.at(after) == "." and after not in blocked and after not in seen:
                seen.add(after)
                waiting.append([*way, after])
    return []


def _move(place: Cell, after: Cell) -> str:
    return next(move for move in STEPS if step(place, move) == after)


def _task(kitchen: Kitchen, cook: int, taken: str) -> str:
    """What to do: by what is held, else by what is missing most; `taken` is the other's task."""
    held, other = kitchen.held[cook], kitchen.held[1 - cook]
    pots = kitchen.pots.values()
    room = sum(ONIONS - pot.onions for pot in pots)
    coming = sum(pot.full for pot in pots)
    if held == "soup":
        return "serve"
    if held == "onion":
        return "fill" if room else "put down"
    if held == "dish":
        ready = any(pot.ready for pot in pots)
        return "take soup" if ready else "wait for soup" if coming else "put down"
    dishes = (other == "dish") + (taken == "fetch dish")
    onions = (other == "onion") + (taken == "fetch onion")
    if coming > dishes:
        return "fetch dish"
    return "fetch onion" if room > onions else "rest"


def _goals(kitchen: Kitchen, task: str) -> set[Cell]:
    """The cells at which a task is done."""
    pots = kitchen.pots
    if task == "fill":
        room = {cell: pot.onions for cell, pot in pots.items() if not pot.full}
        return {cell for cell, onions in room.items() if onions == max(room.values())}
    if task == "take soup":
        return {cell for cell, pot in pots.items() if pot.ready}
    if task == "wait for soup":
        most = max(pot.cooked for pot in pots.values() if pot.full)
        return {cell for cell, pot in pots.items() if pot.full and pot.cooked == most}
    if task == "put down":
        return {cell for cell in kitchen.find("X") if cell not in kitchen.counters}
    letter = {"serve": "S", "fetch dish": "D", "fetch onion": "O"}.get(task)
    return set(kitchen.find(letter)) if letter else set()
