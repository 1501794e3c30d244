"""Battleship on 6 x 6 squares: find the other's ships, which you do not see."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from vlgym.types import Image

from .art import BLUE, GOLD, GREY, INK, RED, WHITE, Canvas, Grid
from .prompts import game_prompt
from .spiel import SpielGame, replay

SIDE = 6
SHIPS = (2, 3, 4)
SHOTS = 20
Cell = tuple[int, int]

_SEA, _SHIP = (176, 208, 232), (92, 100, 112)
_PLACE = re.compile(r"place ship (\w+) with top-left corner in \((\d), (\d)\)")
_SHOOT = re.compile(r"shoot at \((\d), (\d)\)")


class Battleship(SpielGame):
    """Battleship: sink more of the other's ships than the other sinks of yours.

    Goal: sink the ships of 2, 3 and 4 squares that lie hidden on the other's sea of 6 x 6 squares. Seat 0 begins.
        Chance places the ships of both.
    Observation: at the left the other's sea, with your shots: a red cross is a hit, a white ring is water; at the right
        your own sea with your ships and the other's shots (384 x 384 pixels by default). The last shot at each sea
        stands on yellow. The text does not tell the results.
    Actions: squares that you have not shot at, `a1` (top left) to `f6` (bottom right).
    Reward: at the end, the number of ships that you sank less those that you lost, -3 to 3; zero-sum.
    Endings: terminated when all ships of one are sunk or both have shot 20 times; truncated after 20 turns of a seat,
        which is the same.
    Success: more ships sunk than lost.
    Splits: train, val and test differ by seed: ships, seat, and how the opponent shoots.
    Oracle: a planner: it shoots where most placements of ships that fit all its shots lie, and knows no more than a
        player may. The opponent `search`, the
        default, shoots beside its hits, and else anywhere.
    References: OpenSpiel 2.0.2, `battleship`. Drawing, texts and the planner are this package's.
    """

    spiel = (
        f"battleship(board_width={SIDE},board_height={SIDE},ship_sizes=[2;3;4],ship_values=[1;1;1],"
        f"num_shots={SHOTS},allow_repeated_shots=false)"
    )
    zero_sum: ClassVar[bool] = True
    hidden_information: ClassVar[bool] = True
    prompt = game_prompt("You are playing Battleship.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().deal(rng, options)
        self.noise = int(rng.integers(2**31))
        for _ in range(2 * len(SHIPS)):
            self.state.apply_action(int(rng.choice(self.state.legal_actions())))

    def name_action(self, action: int) -> str:
        return name(divmod(action, SIDE))

    def ships_of(self, seat: int) -> list[frozenset[Cell]]:
        """The squares of each ship of a seat."""
        return [cells for player, cells in self._read()[0] if player == self.player_of(seat)]

    def shots_of(self, seat: int) -> list[Cell]:
        """Where a seat has shot, in order."""
        return [cell for player, cell in self._read()[1] if player == self.player_of(seat)]

    def _read(self) -> tuple[list[tuple[int, frozenset[Cell]]], list[tuple[int, Cell]]]:
        """Ships and shots, each with OpenSpiel's player."""
        game, ships, shots = self.state.get_game(), [], []
        for index, action in enumerate(self.state.history()):
            player = index % 2
            if index < 2 * len(SHIPS):
                told = _PLACE.search(game.action_to_string(player, action))
                assert told is not None
                ships.append((player, place(told[1], int(told[2]), int(told[3]), SHIPS[index // 2])))
            else:
                told = _SHOOT.search(game.action_to_string(player, action))
                assert told is not None
                shots.append((player, (int(told[1]), int(told[2]))))
        return ships, shots

    def goal(self, seat: int) -> str:
        return (
            "Each player has three ships of 2, 3 and 4 squares, across or down, on a sea of 6 x 6 squares that the "
            "other does not see. In turn each shoots at one square of the other's sea and learns whether it hit; "
            f"each has {SHOTS} shots. A ship is sunk when all its squares are hit. Whoever sinks more ships wins. "
            "The big sea at the left is the other's, with your shots; the small one at the right is yours."
        )

    def advise(self, seat: int) -> str | None:
        hidden = {cell for ship in self.ships_of(1 - seat) for cell in ship}
        tried = self.shots_of(seat)
        hits = {cell for cell in tried if cell in hidden}
        return name(hunt(hits, set(tried) - hits))

    def search(self, seat: int) -> str | None:
        """Shoot beside a hit, else anywhere; the same each time in one state."""
        hidden = {cell for ship in self.ships_of(1 - seat) for cell in ship}
        tried = self.shots_of(seat)
        free = [(row, column) for row in range(SIDE) for column in range(SIDE) if (row, column) not in tried]
        hits = [cell for cell in tried if cell in hidden]
        beside = [cell for cell in free if any(abs(cell[0] - r) + abs(cell[1] - c) == 1 for r, c in hits)]
        rng = np.random.default_rng([self.noise, len(tried), seat != self.first])
        chosen = beside or free
        return name(chosen[int(rng.integers(len(chosen)))])

    def explain(self, seat: int, action: str) -> str:
        return f"most ways in which the ships may lie cover {action}"

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Move ships of the other that were never hit to where no shot has shown water."""
        tried, other = set(self.shots_of(seat)), self.player_of(1 - seat)
        seen = self.state.observation_string(self.player_of(seat))
        history, game = list(self.state.history()), self.state.get_game()
        for number in rng.permutation(len(SHIPS)):
            index = 2 * int(number) + other
            if self.ships_of(1 - seat)[number] & tried:
                continue
            for action in rng.permutation(game.num_distinct_actions()):
                changed = [*history[:index], int(action), *history[index + 1 :]]
                state = replay(self.spiel, changed) if changed != history else None
                if state is not None and state.observation_string(self.player_of(seat)) == seen:
                    self.state = state
                    return True
        return False

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        canvas.text("Other's sea: your shots", 150, 18, 17, INK, bold=0.4)
        canvas.text("Your sea", 323, 48, 15, INK, bold=0.4)
        own, its = self.ships_of(seat), self.ships_of(1 - seat)
        mine, others = self.shots_of(seat), self.shots_of(1 - seat)
        big, small = Grid(canvas, SIDE, SIDE, (34, 36, 38)), Grid(canvas, SIDE, SIDE, (272, 62, 17))
        self._draw_sea(big, mine, {cell for ship in its for cell in ship}, frozenset(), 1)
        self._draw_sea(small, others, {cell for ship in own for cell in ship}, frozenset().union(*own), 0.45)
        big.name("abcdef", "123456", 20)
        small.name("abcdef", "123456", 11)
        canvas.text(f"You: {len(mine)} of {SHOTS} shots", 12, 312, 16, BLUE, "lm")
        canvas.text(f"Other: {len(others)} of {SHOTS} shots", 200, 312, 16, INK, "lm")
        canvas.text("red cross: hit    white ring: water", 12, 340, 15, GREY, "lm")
        canvas.text("Ships to find: 2, 3 and 4 squares", 12, 364, 15, GREY, "lm")
        return canvas.finish()

    def _draw_sea(self, grid: Grid, shots: list[Cell], hidden: set[Cell], shown: frozenset[Cell], scale: float) -> None:
        for row in range(SIDE):
            for column in range(SIDE):
                cell = (row, column)
                fill = GOLD if shots and cell == shots[-1] else _SHIP if cell in shown else _SEA
                grid.fill(row, column, fill, WHITE, 1)
                if cell not in shots:
                    continue
                x, y, reach = *grid.middle(row, column), 11 * scale
                if cell in hidden:
                    grid.canvas.line([(x - reach, y - reach), (x + reach, y + reach)], RED, 5 * scale)
                    grid.canvas.line([(x - reach, y + reach), (x + reach, y - reach)], RED, 5 * scale)
                else:
                    grid.canvas.disc(x, y, 9 * scale, WHITE, INK, 2 * scale)


def name(cell: Cell) -> str:
    return f"{'abcdef'[cell[1]]}{cell[0] + 1}"


def place(way: str, row: int, column: int, length: int) -> frozenset[Cell]:
    """The squares of a ship that lies `horizontally` or `vertically` from its top left corner."""
    if way == "horizontally":
        return frozenset((row, column + step) for step in range(length))
    return frozenset((row + step, column) for step in range(length))


PLACES = tuple(
    place(way, row, column, length)
    for length in SHIPS
    for way, rows, columns in (
        ("horizontally", SIDE, SIDE - length + 1),
        ("vertically", SIDE - length + 1, SIDE),
    )
    for row in range(rows)
    for column in range(columns)
)
"""Where each ship may lie."""


def hunt(hits: set[Cell], water: set[Cell]) -> Cell:
    """Return the square that most placements cover which avoid the water; those through hits count far more."""
    weights = dict.fromkeys(
        ((row, column) for row in range(SIDE) for column in range(SIDE) if (row, column) not in hits | water), 0.0
    )
    for cells in PLACES:
        if cells & water or cells <= hits:
            continue
        for cell in cells - hits:
            weights[cell] += 30.0 ** len(cells & hits)
    return max(weights, key=lambda cell: (weights[cell], (cell[0] + cell[1]) % 2, -cell[0], -cell[1]))
