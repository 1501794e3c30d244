"""The rules of the kitchen, in the manner of Overcooked. Pure data; it draws nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Cell = tuple[int, int]

LAYOUTS = {
    "galley": ("XOXPXX", "D....S", "X....X", "XOXPXX"),
    "island": ("XXOXPX", "X....X", "D.XX.S", "X....X", "XPXOXX"),
    "long": ("XOXPXPXX", "D......S", "X.XXXX.X", "X......O", "XXXXXXXX"),
}
"""`X` counter, `O` onions, `D` dishes, `P` pot, `S` hatch, `.` floor."""

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
ONIONS, COOKING = 3, 6
"""Onions of a soup, and the rounds that it cooks."""


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
    """A kitchen in some moment.

    Attributes:
        layout: a name of `LAYOUTS`.
        places: where each cook stands.
        facing: the step in which each cook looks.
        held: what each cook holds: nothing, `onion`, `dish` or `soup`.
        pots: by place.
        counters: what lies on a counter, by place.
        served: soups that went through the hatch.
    """

    layout: str
    places: list[Cell]
    facing: list[str]
    held: list[str] = field(default_factory=lambda: ["", ""])
    pots: dict[Cell, Pot] = field(default_factory=dict)
    counters: dict[Cell, str] = field(default_factory=dict)
    served: int = 0

    def __post_init__(self) -> None:
        self.pots = self.pots or {cell: Pot() for cell in self.find("P")}

    def at(self, cell: Cell) -> str:
        """The letter of a cell."""
        return LAYOUTS[self.layout][cell[0]][cell[1]]

    def find(self, letter: str) -> list[Cell]:
        """All cells with a letter, from the top left."""
        return [(r, c) for r, line in enumerate(LAYOUTS[self.layout]) for c, each in enumerate(line) if each == letter]

    def ahead(self, cook: int) -> Cell:
        return step(self.places[cook], self.facing[cook])

    def play(self, moves: Mapping[int, str]) -> int:
        """Execute one move of both cooks; return the soups served in this round.

        Both step at once: who would stand on one cell, or pass through each other, stay. Both use things at once: at
        one pot or counter both get in each other's way, and nothing happens.
        """
        wanted = list(self.places)
        for cook, move in moves.items():
            if move in STEPS:
                self.facing[cook] = move
                cell = step(self.places[cook], move)
                wanted[cook] = cell if self.at(cell) == "." else self.places[cook]
        swapped = wanted[0] == self.places[1] and wanted[1] == self.places[0]
        if wanted[0] != wanted[1] and not swapped:
            self.places = wanted
        users = [cook for cook, move in moves.items() if move == "use"]
        clash = len(users) == 2 and self.ahead(0) == self.ahead(1) and self.at(self.ahead(0)) in "PX"
        served = 0 if clash else sum(self._use(cook) for cook in sorted(users))
        for pot in self.pots.values():
            pot.cooked += pot.full and not pot.ready
        self.served += served
        return served

    def _use(self, cook: int) -> int:
        cell, held = self.ahead(cook), self.held[cook]
        kind = self.at(cell)
        if kind == "O" and not held:
            self.held[cook] = "onion"
        elif kind == "D" and not held:
            self.held[cook] = "dish"
        elif kind == "P" and held == "onion" and not self.pots[cell].full:
            self.pots[cell].onions += 1
            self.held[cook] = ""
        elif kind == "P" and held == "dish" and self.pots[cell].ready:
            self.pots[cell] = Pot()
            self.held[cook] = "soup"
        elif kind == "S" and held == "soup":
            self.held[cook] = ""
            return 1
        elif kind == "X" and held and cell not in self.counters:
            self.counters[cell], self.held[cook] = held, ""
        elif kind == "X" and not held and cell in self.counters:
            self.held[cook] = self.counters.pop(cell)
        return 0


def step(cell: Cell, move: str) -> Cell:
    down, right = STEPS[move]
    return cell[0] + down, cell[1] + right
