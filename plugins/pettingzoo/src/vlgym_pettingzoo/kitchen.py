"""A cooperative kitchen in the manner of Overcooked: its rules, two greedy cooks, the game."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np

from vlgym.errors import check_choice
from vlgym.games.multi import Round

from .base import BLUE, GREEN, GREY, INK, RED, WHITE, Canvas, Colour, GameAtOnce, Grid, game_prompt

Cell = tuple[int, int]

LAYOUTS = {  # `X` counter, `O` onions, `D` dishes, `P` pot, `S` hatch, `.` floor
    "galley": ("XOXPXX", "D....S", "X....X", "XOXPXX"),
    "island": ("XXOXPX", "X....X", "D.XX.S", "X....X", "XPXOXX"),
    "long": ("XOXPXPXX", "D......S", "X.XXXX.X", "X......O", "XXXXXXXX"),
}
COOK_STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
ONIONS, COOKING = 3, 6  # of a soup, and the rounds that it cooks


@dataclass
class Pot:
    """Onions in a pot, and the rounds it has cooked since it was full."""

    onions: int = 0
    cooked: int = 0

    @property
    def full(self) -> bool:
        return self.onions == ONIONS

    @property
    def ready(self) -> bool:
        return self.full and self.cooked >= COOKING


@dataclass
class Kitchen:
    """A kitchen in some moment."""

    layout: str
    places: list[Cell]
    facing: list[str]  # the step in which each cook looks
    held: list[str] = field(default_factory=lambda: ["", ""])  # nothing, `onion`, `dish` or `soup`
    pots: dict[Cell, Pot] = field(default_factory=dict)
    counters: dict[Cell, str] = field(default_factory=dict)  # what lies on them
    served: int = 0

    def __post_init__(self) -> None:
        self.pots = self.pots or {cell: Pot() for cell in self.find("P")}

    def at(self, cell: Cell) -> str:
        return LAYOUTS[self.layout][cell[0]][cell[1]]

    def find(self, letter: str) -> list[Cell]:
        """Return all cells with a letter, from the top left."""
        lines = enumerate(LAYOUTS[self.layout])
        return [(row, column) for row, line in lines for column, each in enumerate(line) if each == letter]

    def ahead(self, cook: int) -> Cell:
        return step(self.places[cook], self.facing[cook])

    def play(self, moves: Mapping[int, str]) -> int:
        """Execute one move of both cooks; return the soups served in this round."""
        # Cooks who would stand on one cell, or pass through each other, stay.
        wanted = list(self.places)
        for cook, move in moves.items():
            if move in COOK_STEPS:
                self.facing[cook] = move
                cell = step(self.places[cook], move)
                wanted[cook] = cell if self.at(cell) == "." else self.places[cook]
        swapped = wanted[0] == self.places[1] and wanted[1] == self.places[0]
        if wanted[0] != wanted[1] and not swapped:
            self.places = wanted

        # At one pot or counter both get in each other's way, and nothing happens.
        users = [cook for cook, move in moves.items() if move == "use"]
        clash = len(users) == 2 and self.ahead(0) == self.ahead(1) and self.at(self.ahead(0)) in "PX"
        served = 0 if clash else sum(self._use(cook) for cook in sorted(users))
        for pot in self.pots.values():
            pot.cooked += pot.full and not pot.ready
        self.served += served
        return served

    def _use(self, cook: int) -> int:
        cell, thing = self.ahead(cook), self.held[cook]
        kind = self.at(cell)
        if kind in "OD" and not thing:
            self.held[cook] = {"O": "onion", "D": "dish"}[kind]
        elif kind == "P" and thing == "onion" and not self.pots[cell].full:
            self.pots[cell].onions += 1
            self.held[cook] = ""
        elif kind == "P" and thing == "dish" and self.pots[cell].ready:
            self.pots[cell] = Pot()
            self.held[cook] = "soup"
        elif kind == "S" and thing == "soup":
            self.held[cook] = ""
            return 1
        elif kind == "X" and thing and cell not in self.counters:
            self.counters[cell], self.held[cook] = thing, ""
        elif kind == "X" and not thing and cell in self.counters:
            self.held[cook] = self.counters.pop(cell)
        return 0


def step(cell: Cell, move: str) -> Cell:
    down, right = COOK_STEPS[move]
    return cell[0] + down, cell[1] + right


# Tasks, the most urgent first.
URGENT = ("serve", "take soup", "fill", "wait for soup", "fetch dish", "fetch onion", "put down", "rest")
DETOUR = 2  # steps that are walked more, rather than send the other cook away


def choose(kitchen: Kitchen, cook: int) -> str:
    """Return a cook's move, as if the other were such a cook too."""
    tasks = [_task(kitchen, 0, "")]
    tasks.append(_task(kitchen, 1, tasks[0]))

    # The cook with the more urgent task goes round the other, unless through it is much shorter.
    lead = min((0, 1), key=lambda each: URGENT.index(tasks[each]))
    place, other, goals = kitchen.places[lead], kitchen.places[1 - lead], _goals(kitchen, tasks[lead])
    through, around = _way(kitchen, place, goals, ()), _way(kitchen, place, goals, {other})
    way = around if around and len(around) <= len(through) + DETOUR else through
    move = _act(kitchen, lead, tasks[lead], goals, way)
    return move if cook == lead else _follow(kitchen, cook, tasks[cook], way, move)


def _follow(kitchen: Kitchen, cook: int, task: str, others_way: list[Cell], its_move: str) -> str:
    """Return the move of the cook who makes way."""
    place, other = kitchen.places[cook], kitchen.places[1 - cook]
    if place in others_way:
        out = _walk(kitchen, place, lambda cell: cell not in others_way, {other})
        return _move(place, out[0]) if out else "stay"
    goals = _goals(kitchen, task)
    way = _way(kitchen, place, goals, {other, *others_way[:1]})
    move = _act(kitchen, cook, task, goals, way)
    clash = move == "use" == its_move and kitchen.ahead(0) == kitchen.ahead(1)
    return "stay" if clash else move


def _act(kitchen: Kitchen, cook: int, task: str, goals: set[Cell], way: list[Cell]) -> str:
    """Use the thing ahead if that is the task; else turn to it, or walk."""
    place = kitchen.places[cook]
    if kitchen.ahead(cook) in goals:
        return "stay" if task == "wait for soup" else "use"
    turn = next((move for move in COOK_STEPS if step(place, move) in goals), None)
    return turn or (_move(place, way[0]) if way else "stay")


def _way(kitchen: Kitchen, place: Cell, goals: set[Cell], blocked: Container[Cell]) -> list[Cell]:
    """Return a shortest way to a neighbour of a goal; empty where there is none, or on one."""
    return _walk(kitchen, place, lambda cell: any(step(cell, move) in goals for move in COOK_STEPS), blocked)


def _walk(kitchen: Kitchen, place: Cell, arrived: Callable[[Cell], bool], blocked: Container[Cell]) -> list[Cell]:
    waiting: deque[list[Cell]] = deque([[place]])
    visited = {place}
    while waiting:
        way = waiting.popleft()
        if arrived(way[-1]):
            return way[1:]
        for move in COOK_STEPS:
            after = step(way[-1], move)
            if kitchen.at(after) == "." and after not in blocked and after not in visited:
                visited.add(after)
                waiting.append([*way, after])
    return []


def _move(place: Cell, after: Cell) -> str:
    return next(move for move in COOK_STEPS if step(place, move) == after)


def _task(kitchen: Kitchen, cook: int, taken: str) -> str:
    """Return a cook's task: by its thing, else by the need; `taken` is the other's task."""
    thing, other = kitchen.held[cook], kitchen.held[1 - cook]
    pots = kitchen.pots.values()
    room = sum(ONIONS - pot.onions for pot in pots)
    coming = sum(pot.full for pot in pots)

    # A cook brings away its thing first.
    if thing == "soup":
        return "serve"
    if thing == "onion":
        return "fill" if room else "put down"
    if thing == "dish":
        ready = any(pot.ready for pot in pots)
        return "take soup" if ready else "wait for soup" if coming else "put down"

    # Free hands fetch what the other does not bring.
    dishes = (other == "dish") + (taken == "fetch dish")
    onions = (other == "onion") + (taken == "fetch onion")
    if coming > dishes:
        return "fetch dish"
    return "fetch onion" if room > onions else "rest"


def _goals(kitchen: Kitchen, task: str) -> set[Cell]:
    """Return the cells at which a task is done."""
    if task in ("fill", "wait for soup"):  # at the pot that is nearest to its end
        full = task != "fill"
        pots = {cell: pot for cell, pot in kitchen.pots.items() if pot.full == full}
        most = max((pot.onions, pot.cooked) for pot in pots.values())
        return {cell for cell, pot in pots.items() if (pot.onions, pot.cooked) == most}
    if task == "take soup":
        return {cell for cell, pot in kitchen.pots.items() if pot.ready}
    if task == "put down":
        return {cell for cell in kitchen.find("X") if cell not in kitchen.counters}
    letter = {"serve": "S", "fetch dish": "D", "fetch onion": "O"}.get(task)
    return set(kitchen.find(letter)) if letter else set()


ENOUGH_SOUPS = 2  # of a game that counts as success
_FLOOR, _COUNTER = (236, 226, 206), (150, 116, 84)
_ONION, _DISH, _SOUP = (232, 190, 80), (250, 250, 250), (214, 120, 40)


class KitchenPair(GameAtOnce):
    """A kitchen: two cooks put onions into pots, wait, fill dishes with soup and serve them.

    Goal: serve soups through the hatch. A soup needs three onions in one pot and six rounds on the
        fire; then a cook with a dish takes it and brings it to the hatch.
    Observation: the kitchen from above, with names on all things, both cooks with their things and
        where they look, and how far each pot is. The text does not tell where things are.
    Actions: `up`, `down`, `left`, `right` (look there, and step if there is free floor), `use` (the
        thing ahead: take an onion or a dish, fill a pot, take soup, serve, or put down and take up
        on a counter), `stay`. Both move at once.
    Reward: 1 for each soup served; both are paid.
    Endings: truncated after 80 turns of each.
    Success: at least 2 soups. `score` is the number of soups.
    Splits: train, val and test differ by seed: the layout, where the cooks begin, and the seat.
    Oracle: a planner: greedy cooks, which share the tasks. Default opponent: the same.
    References: Carroll et al., 2019 (Overcooked-AI). Rules, layouts and cooks are this package's.

    Args:
        layout: `galley`, `island` or `long`; `None` draws one for each episode.
    """

    symmetric: ClassVar[bool] = True
    actions = (*COOK_STEPS, "use", "stay")
    prompt = game_prompt("You are a cook.")

    def __init__(self, *, layout: str | None = None, **kwargs: Any) -> None:
        check_choice("layout", layout, (None, *LAYOUTS))
        self.layout = layout
        super().__init__(**kwargs)

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        drawn = list(LAYOUTS)[int(rng.integers(len(LAYOUTS)))]
        self.kitchen = Kitchen(self.layout or drawn, [(0, 0), (0, 0)], ["down", "down"])
        floor = self.kitchen.find(".")
        self.kitchen.places = [floor[int(place)] for place in rng.permutation(len(floor))[:2]]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        served = float(self.kitchen.play(moves))
        return Round((served, served))

    def goal(self, seat: int) -> str:
        return (
            f"You and another cook make onion soup. Bring {ONIONS} onions, one by one, to a pot; then it cooks for "
            f"{COOKING} turns. Take a dish, take the soup with it, and bring it to the hatch (SERVE): each soup "
            "earns 1 for both. You carry one thing at a time. up, down, left and right make you look that way, and "
            "step there if the floor is free. use does something with the thing that you look at. Both cooks move "
            f"at once and cannot pass through each other. There are {self.max_turns} turns. Serve as many soups as "
            "you can."
        )

    def won(self, seat: int) -> bool:
        return self.kitchen.served >= ENOUGH_SOUPS

    def points(self, seat: int) -> float | None:
        return float(self.kitchen.served)

    def details(self, seat: int) -> dict[str, Any]:
        return {"layout": self.kitchen.layout, "soups": self.kitchen.served}

    def advise(self, seat: int) -> str | None:
        return choose(self.kitchen, seat)

    def explain(self, seat: int, action: str) -> str:
        kitchen, (row, column) = self.kitchen, self.kitchen.places[seat]
        things = [each or "nothing" for each in kitchen.held]
        pots = " and ".join(str(pot.onions) for pot in kitchen.pots.values())
        return (
            f"I stand in row {row + 1}, column {column + 1}, look {kitchen.facing[seat]} and hold {things[seat]}, the "
            f"other holds {things[1 - seat]}, in the pots are {pots} onions, so {action}"
        )

    def mirror(self) -> None:
        self.kitchen.places.reverse()
        self.kitchen.facing.reverse()
        self.kitchen.held.reverse()

    def paint(self, canvas: Canvas, seat: int) -> None:
        kitchen, rows = self.kitchen, LAYOUTS[self.kitchen.layout]
        side = min(376 / len(rows[0]), 326 / len(rows))
        left, top = (384 - side * len(rows[0])) / 2, 36 + (330 - side * len(rows)) / 2
        grid = Grid(canvas, len(rows), (left, top, side))
        canvas.text(f"Soups served: {kitchen.served}", 12, 18, 19, anchor="lm", bold=0.4)
        canvas.text("you: blue   other: red", 372, 18, 16, GREY, "rm")

        # Cooks stand above the floor.
        for cell in product(range(len(rows)), range(len(rows[0]))):
            self._draw_cell(grid, cell, kitchen.at(cell))
        for cook in (0, 1):
            self._draw_cook(grid, cook, BLUE if cook == seat else RED)

    def _draw_cell(self, grid: Grid, cell: Cell, kind: str) -> None:
        if kind == ".":
            grid.fill(*cell, _FLOOR, (216, 204, 180), 1)
            return
        grid.fill(*cell, _COUNTER, (120, 90, 64), 1)
        canvas, (x, y), size = grid.canvas, grid.middle(*cell), max(14.0, grid.side / 4)
        if kind in "OD":
            tint, word = (_ONION, "onion") if kind == "O" else (_DISH, "dish")
            canvas.disc(x, y, grid.side * 0.42, tint, INK, 1)
            canvas.text(word, x, y, size, INK)
        elif kind == "S":
            grid.fill(*cell, GREEN, WHITE, 2, 1, 4)
            canvas.text("SERVE", x, y, 0.9 * size, WHITE, bold=0.3)
        elif kind == "P":
            pot = self.kitchen.pots[cell]
            grid.fill(*cell, (70, 74, 84), INK, 2, 3, 8)
            word, progress, tint = "pot", f"{pot.onions}/{ONIONS}", _ONION
            if pot.ready:
                progress, tint = "ready", (120, 240, 140)
            elif pot.full:
                word, progress, tint = "cooks", f"{pot.cooked}/{COOKING}", _SOUP
            canvas.text(word, x, y - grid.side * 0.18, size, WHITE)
            canvas.text(progress, x, y + grid.side * 0.18, size, tint, bold=0.3)
        elif cell in self.kitchen.counters:
            self._draw_thing(canvas, self.kitchen.counters[cell], x, y, grid.side * 0.3)

    def _draw_cook(self, grid: Grid, cook: int, tint: Colour) -> None:
        canvas, side, (x, y) = grid.canvas, grid.side, grid.middle(*self.kitchen.places[cook])
        down, right = COOK_STEPS[self.kitchen.facing[cook]]
        reach, wide = side * 0.48, side * 0.2
        tip = (x + right * reach, y + down * reach)
        wings = [(x + turn * down * wide, y + turn * right * wide) for turn in (1, -1)]
        canvas.shape([tip, *wings], INK)
        canvas.disc(x, y, side * 0.36, tint, INK, 2)
        if self.kitchen.held[cook]:
            self._draw_thing(canvas, self.kitchen.held[cook], x, y, side * 0.25)

    def _draw_thing(self, canvas: Canvas, thing: str, x: float, y: float, radius: float) -> None:
        canvas.disc(x, y, radius, _ONION if thing == "onion" else _DISH, INK, 1)
        if thing == "soup":
            canvas.disc(x, y, radius * 0.72, _SOUP, None)
        canvas.text(thing[0], x, y, radius * 1.1, WHITE if thing == "soup" else INK)
