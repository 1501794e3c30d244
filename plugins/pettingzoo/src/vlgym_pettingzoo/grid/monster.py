"""Monster Hunt: eat apples alone, or trust the other and defeat a monster together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.games.multi import Round
from vlgym.types import Image

from ..art import GOLD, GREEN, INK, WHITE
from ..base import game_prompt
from .walkers import STEPS, Cell, Walkers, distance

APPLE, MET_ALONE, MET_TOGETHER = 2.0, -2.0, 5.0


class MonsterHunt(Walkers):
    """Monster Hunt: apples are safe, and a monster is worth more, but to both at once only.

    Goal: earn as much as possible on a board of 5 x 5 squares with two apples and a monster. Seat 0 is
        red, seat 1 is blue.
    Observation: the board with players, apples and monster, and the returns of both. The text says
        your colour, not where things are.
    Actions: `up`, `down`, `left`, `right`, `stay`. Both move at once, then the monster moves one square
        towards the nearest player; chance decides among equals. A wall stops a move.
    Reward: 2 for an apple, 5 for each where both meet the monster on one square, -2 for who meets it
        alone.
    Endings: truncated after 50 turns of each.
    Success: the two have earned at least 60 together. `score` is the sum of both.
    Splits: train, val and test differ by seed: places, chance, seat.
    Oracle: a planner: it goes where both can meet soonest, away from the monster, and then to the
        monster. The opponent `search` walks to the nearest apple. Default opponent: the oracle.
    References: rules of Monster Hunt in Xu et al., VS-Bench, arXiv 2506.02387, 2025, after Peysakhovich
        and Lerer's stag hunts. Drawing, texts and players are this package's.
    """

    enough: ClassVar[float] = 60.0
    prompt = game_prompt("You are playing Monster Hunt.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.monster, *self.apples = self.set_out(rng, 3)
        self.eaten, self.alone, self.defeated = [0, 0], [0, 0], 0

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        self.walk(moves)
        self._move_monster()

        # Apples and the monster pay by where all stand now.
        rewards, met = [0.0, 0.0], [seat for seat in (0, 1) if self.places[seat] == self.monster]
        for seat, place in enumerate(self.places):
            rewards[seat] += APPLE * (place in self.apples)
            self.eaten[seat] += place in self.apples
        for seat in met:
            rewards[seat] += MET_TOGETHER if len(met) == 2 else MET_ALONE
            self.alone[seat] += len(met) == 1

        # Apples under somebody, a defeated monster and who met it alone come back elsewhere.
        for index, apple in enumerate(self.apples):
            if apple in (*self.places, self.monster):
                self.apples[index] = self.draw_cell((*self.places, self.monster, *self.apples))
        if len(met) == 2:
            self.defeated += 1
            self.monster = self.draw_cell((*self.places, *self.apples))
        elif met:
            self.places[met[0]] = self.draw_cell((*self.places, self.monster, *self.apples))
        return self.pay(rewards)

    def _move_monster(self) -> None:
        least = min(distance(place, self.monster) for place in self.places)
        near = sorted(place for place in self.places if distance(place, self.monster) == least)
        prey = near[int(self.chance_rng.integers(len(near)))]
        ways = [word for word in STEPS if distance(self.reach(self.monster, word), prey) < least]
        if ways:
            self.monster = self.reach(self.monster, ways[int(self.chance_rng.integers(len(ways)))])

    def goal(self, seat: int) -> str:
        mine, its = self.names(seat)
        return (
            f"You are {mine}, the other is {its}. You both move at once on a board of 5 x 5 squares; then the monster "
            "moves one square towards the nearest of you. Whoever steps on an apple earns 2, and it grows elsewhere. "
            "If the monster meets one of you alone, this one loses 2 and is put elsewhere. If it meets both of you on "
            f"one square, each earns 5 and it comes back elsewhere. There are {self.max_turns} turns. Earn as much as "
            "you can."
        )

    def details(self, seat: int) -> dict[str, Any]:
        return {
            **super().details(seat), "apples": self.eaten[seat], "met_alone": self.alone[seat],
            "defeated": self.defeated,
        }  # fmt: skip

    def advise(self, seat: int) -> str | None:
        """Meet the other and go to the monster together."""
        return self.equals(seat)[0]

    def equals(self, seat: int) -> list[str]:
        """Return the moves that are as good as the oracle's; the first is its own."""
        mine, its = self.places[seat], self.places[1 - seat]
        if mine == its:
            return self.nearer(seat, self.monster)
        return self._approach(seat, min(self.cells(), key=self._meeting))

    def _meeting(self, cell: Cell) -> tuple[int, ...]:
        """Return the rank of a square to meet on: soonest for both, then far from the monster."""
        ways = [distance(place, cell) for place in self.places]
        return max(ways), sum(ways), -distance(cell, self.monster), *cell

    def search(self, seat: int) -> str | None:
        """Walk to the nearest apple."""
        here = self.places[seat]
        apple = min(self.apples, key=lambda apple: (distance(here, apple), apple))
        return self._approach(seat, apple)[0]

    def _approach(self, seat: int, goal: Cell) -> list[str]:
        """Return the best moves to a square, of those that keep off the monster where any does."""

        def rank(word: str) -> tuple[bool, int]:
            cell = self.reach(self.places[seat], word)
            joined = cell == goal and distance(self.places[1 - seat], cell) <= 1
            return distance(cell, self.monster) <= 1 and not joined, distance(cell, goal)

        best = min(map(rank, STEPS))
        return [word for word in STEPS if rank(word) == best]

    def explain(self, seat: int, action: str) -> str:
        monster, other = self.way_to(seat, self.monster), self.way_to(seat, self.places[1 - seat])
        plan = "we must meet before the monster comes" if other != "here" else "together to the monster"
        return f"the monster is {monster}, the other {other}; {plan}"

    def draw(self, seat: int) -> Image:
        canvas, grid = self.draw_board(seat, (52, 44, 56))
        for apple in self.apples:
            x, y = grid.middle(*apple)
            canvas.disc(x, y + 3, 17, GREEN, INK, 2)
            canvas.line([(x, y - 14), (x + 5, y - 24)], INK, 3)
            canvas.text("apple", x, y + 3, 12, WHITE, bold=0.3)

        # The monster: a black head with two horns, eyes and its name.
        x, y = grid.middle(*self.monster)
        canvas.box(x - 25, y - 18, 50, 40, INK, radius=12)
        for side in (-1, 1):
            horn = [(x + side * 8, y - 14), (x + side * 24, y - 27), (x + side * 23, y - 8)]
            canvas.shape(horn, INK)
            canvas.disc(x + side * 9, y - 7, 5, GOLD)
        canvas.text("monster", x, y + 9, 12, WHITE, bold=0.3)
        self.draw_players(seat, canvas, grid)
        return canvas.finish()
