"""Two players who walk on a square board, the base of the games of this folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.games.multi import Round

from ..art import BLUE, GREY, INK, RED, WHITE, Canvas, Grid, draw_turn
from ..base import GameAtOnce

Cell = tuple[int, int]

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}
NAMES, TINTS = ("red", "blue"), (RED, BLUE)


def distance(one: Cell, other: Cell) -> int:
    """Return the steps between two squares."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


class Walkers(GameAtOnce):
    """A red and a blue player on a board of `side` x `side` squares, who may share a square.

    Attributes:
        enough: return of both together that counts as success.
        places, earned: each player's square and return.
        flipped: 1 where seat 0 is blue.
    """

    symmetric: ClassVar[bool] = True
    actions = tuple(STEPS)
    side: ClassVar[int] = 5
    enough: ClassVar[float]
    places: list[Cell]
    earned: list[float]
    flipped: int

    def colour_of(self, seat: int) -> int:
        """Return 0 for red, 1 for blue."""
        return seat ^ self.flipped

    def names(self, seat: int) -> tuple[str, str]:
        """Return a seat's colour and the other's, in words."""
        return NAMES[self.colour_of(seat)], NAMES[1 - self.colour_of(seat)]

    def set_out(self, rng: np.random.Generator, things: int = 0) -> list[Cell]:
        """Begin a game with both players on drawn squares; return other squares, one a thing."""
        self.chance_rng, self.flipped, self.earned = rng, 0, [0.0, 0.0]
        drawn = [self.cells()[int(index)] for index in rng.permutation(self.side**2)[: 2 + things]]
        self.places = drawn[:2]
        return drawn[2:]

    def pay(self, rewards: list[float]) -> Round:
        self.earned = [before + more for before, more in zip(self.earned, rewards, strict=True)]
        return Round(tuple(rewards))

    def won(self, seat: int) -> bool:
        return sum(self.earned) >= self.enough

    def details(self, seat: int) -> dict[str, Any]:
        return {"earned": self.earned[seat], "other_earned": self.earned[1 - seat]}

    def tell(self, seat: int) -> str:
        return f"You are {NAMES[self.colour_of(seat)]}. "

    def points(self, seat: int) -> float | None:
        return sum(self.earned)

    def mirror(self) -> None:
        self.flipped = 1
        self.places.reverse()

    def reach(self, cell: Cell, word: str) -> Cell:
        """Return the square to which a move leads; a wall stops it."""
        down, right = STEPS[word]
        last = self.side - 1
        return min(max(cell[0] + down, 0), last), min(max(cell[1] + right, 0), last)

    def walk(self, moves: Mapping[int, str]) -> None:
        """Execute both moves."""
        self.places = [self.reach(self.places[seat], moves[seat]) for seat in (0, 1)]

    def cells(self, taken: Collection[Cell] = ()) -> list[Cell]:
        """Return the squares that are not taken."""
        every = [(row, column) for row in range(self.side) for column in range(self.side)]
        return [cell for cell in every if cell not in taken]

    def draw_cell(self, taken: Collection[Cell]) -> Cell:
        free = self.cells(taken)
        return free[int(self.chance_rng.integers(len(free)))]

    def nearer(self, seat: int, goal: Cell) -> list[str]:
        """Return the first moves of the shortest ways to a square: `stay` on it."""
        here = self.places[seat]
        if here == goal:
            return ["stay"]
        away = distance(here, goal)
        return [word for word in STEPS if distance(self.reach(here, word), goal) < away]

    def way_to(self, seat: int, goal: Cell) -> str:
        """Return in words how far a square is: `2 up 1 left`, or `here`."""
        down, right = (to - here for here, to in zip(self.places[seat], goal, strict=True))
        steps = ((down, "down" if down > 0 else "up"), (right, "right" if right > 0 else "left"))
        return " ".join(f"{abs(far)} {word}" for far, word in steps if far) or "here"

    def draw_board(self, seat: int, box: tuple[float, float, float]) -> tuple[Canvas, Grid]:
        """Draw the board, what both have earned, and whose turn it is."""
        canvas = Canvas(self.image_size)
        grid = Grid(canvas, self.side, box)
        for cell in self.cells():
            grid.fill(*cell, WHITE, GREY, 1)
        mine, its = self.names(seat)
        canvas.text(f"You ({mine}): {self.earned[seat]:+.0f}", 16, 22, 19, anchor="lm")
        canvas.text(f"Other ({its}): {self.earned[1 - seat]:+.0f}", 368, 22, 19, anchor="rm")
        canvas.text("up / down / left / right as you see the board", 192, 350, 14, GREY)
        draw_turn(canvas, self.movers(), seat)
        return canvas, grid

    def draw_players(self, seat: int, canvas: Canvas, grid: Grid, size: float = 24) -> None:
        """Draw both players; on one square they stand side by side, red at the left."""
        together = self.places[0] == self.places[1]
        for player in (0, 1):
            (x, y), colour = grid.middle(*self.places[player]), self.colour_of(player)
            half, letters = size, 0.63
            if together:
                x, half, letters = x + (-0.7, 0.7)[colour] * size, 0.67 * size, 0.46
            canvas.box(x - half, y - half, 2 * half, 2 * half, TINTS[colour], INK, 3, 6)
            word = "you" if player == seat else "other"
            canvas.text(word, x, y, size * letters, WHITE, bold=0.3)
