"""Battle of the Colors: two who gain by meeting, and differ about where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.games.multi import Round
from vlgym.types import Image

from ..art import INK
from ..base import game_prompt
from .walkers import NAMES, Cell, Walkers, distance


class BattleOfTheColors(Walkers):
    """Battle of the Colors: meet on a block; the one of your colour pays you more.

    Goal: earn as much as possible on a board of 5 x 5 squares with a red and a blue block. Seat 0 is
        red, seat 1 blue.
    Observation: the board with players and blocks, and the returns of both. The text says your colour,
        not where things are.
    Actions: `up`, `down`, `left`, `right`, `stay`. Both move at once. A wall stops a move.
    Reward: where both stand on one block, 2 for the player of its colour and 1 for the other, and the
        block appears elsewhere. Where they stand on different blocks both appear elsewhere, and
        nobody is paid.
    Endings: truncated after 50 turns of each.
    Success: the two have earned at least 30 together. `score` is the sum of both.
    Splits: train, val and test differ by seed: places, chance, seat.
    Oracle: a planner: it walks to the block that both reach first and waits there. The opponent
        `search` walks to the block of its colour. Default opponent: the oracle.
    References: rules of Battle of the Colors in Xu et al., VS-Bench, arXiv 2506.02387, 2025. Drawing,
        texts and players are this package's.
    """

    enough: ClassVar[float] = 30.0
    prompt = game_prompt("You are playing Battle of the Colors.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.blocks = self.set_out(rng, 2)
        self.met, self.split = [0, 0], 0

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        self.walk(moves)
        rewards, fresh = [0.0, 0.0], []
        if self.places[0] == self.places[1] and self.places[0] in self.blocks:
            colour = self.blocks.index(self.places[0])
            rewards = [2.0 if self.colour_of(seat) == colour else 1.0 for seat in (0, 1)]
            self.met[colour] += 1
            fresh = [colour]
        elif set(self.places) == set(self.blocks):
            self.split += 1
            fresh = [0, 1]
        for colour in fresh:
            self.blocks[colour] = self.draw_cell((*self.places, *self.blocks))
        return self.pay(rewards)

    def goal(self, seat: int) -> str:
        mine, its = self.names(seat)
        return (
            f"You are {mine}, the other is {its}. You both move at once on a board of 5 x 5 squares with a red and a "
            f"blue block. When both of you stand on the {mine} block, you earn 2 and the other 1; when both stand on "
            f"the {its} block, you earn 1 and the other 2; then this block appears elsewhere. When you stand on "
            f"different blocks, nobody earns and both appear elsewhere. There are {self.max_turns} turns. Earn as much "
            "as you can."
        )

    def details(self, seat: int) -> dict[str, Any]:
        met = dict(zip(NAMES, self.met, strict=True))
        return {**super().details(seat), "met_on": met, "on_different_blocks": self.split}

    def advise(self, seat: int) -> str | None:
        """Walk to the block that both reach first."""
        return self.equals(seat)[0]

    def equals(self, seat: int) -> list[str]:
        """Return the first moves of the shortest ways there."""
        return self.nearer(seat, self._nearest())

    def _nearest(self) -> Cell:
        def ways(block: Cell) -> tuple[int, int]:
            there = [distance(place, block) for place in self.places]
            return max(there), sum(there)

        return min(self.blocks, key=ways)

    def search(self, seat: int) -> str | None:
        return self.nearer(seat, self.blocks[self.colour_of(seat)])[0]

    def explain(self, seat: int, action: str) -> str:
        block = self._nearest()
        name = NAMES[self.blocks.index(block)]
        return f"we both reach the {name} block first, {self.way_to(seat, block)}"

    def draw(self, seat: int) -> Image:
        canvas, grid = self.draw_board(seat, (52, 44, 56))
        tints = (255, 170, 170), (165, 200, 255)
        for name, tint, block in zip(NAMES, tints, self.blocks, strict=True):
            grid.fill(*block, tint, INK, 2)
            x, y = grid.middle(*block)
            canvas.text(name, x, y - 21, 12, INK, bold=0.3)
        self.draw_players(seat, canvas, grid, 17)
        return canvas.finish()
