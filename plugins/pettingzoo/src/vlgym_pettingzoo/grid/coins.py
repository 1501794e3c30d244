"""A coin game: two who may help or harm each other while they collect coins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.games.multi import Round
from vlgym.types import Image

from ..art import INK, WHITE
from ..base import game_prompt
from .walkers import NAMES, STEPS, TINTS, Walkers


class CoinGame(Walkers):
    """A coin game: take the coins of your colour, and leave the other's, if you want both to gain.

    Goal: collect coins on a board of 4 x 4 squares. Seat 0 is red, seat 1 is blue. There is one coin
        at a time, red or blue.
    Observation: the board with both players and the coin, and the returns of both. The text says your
        colour, not where things are.
    Actions: `up`, `down`, `left`, `right`, `stay`. Both move at once; both may stand on one square.
    Reward: 1 for a coin that you take, of either colour; -2 when the other takes a coin of your
        colour. Two who take a coin at once both take it.
    Endings: truncated after 24 turns of each.
    Success: the two have earned at least 4 together, and neither has lost. `score` is the sum of both.
    Splits: train, val and test differ by seed: coins, places, seat.
    Oracle: a planner: it walks to coins of its colour and stands aside for the other's. The opponent
        `search` takes every coin. Default opponent: the oracle.
    References: Lerer and Peysakhovich, Maintaining cooperation in complex social dilemmas using deep
        reinforcement learning, 2017, describe such a game. Rules, drawing and texts are ours.
    """

    side: ClassVar[int] = 4
    enough: ClassVar[float] = 4.0
    prompt = game_prompt("You are playing a coin game.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.set_out(rng)
        self.taken = 0
        self._lay_coin()

    def _lay_coin(self) -> None:
        self.coin = self.draw_cell(self.places)
        self.drawn = int(self.chance_rng.integers(2))

    def moves(self, seat: int) -> list[str]:
        here = self.places[seat]
        return [word for word in STEPS if word == "stay" or self.reach(here, word) != here]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        self.walk(moves)
        rewards = [0.0, 0.0]
        for seat in (0, 1):
            if self.places[seat] == self.coin:
                rewards[seat] += 1.0
                if self.drawn != self.colour_of(seat):
                    rewards[1 - seat] -= 2.0
        if self.coin in self.places:
            self.taken += 1
            self._lay_coin()
        return self.pay(rewards)

    def goal(self, seat: int) -> str:
        mine, its = self.names(seat)
        return (
            f"You are {mine}, the other is {its}. You both move at once on a board of 4 x 4 squares. Whoever steps "
            f"on the coin takes it and earns 1. If you take a {its} coin, the other loses 2; if the other takes a "
            f"{mine} coin, you lose 2. Then a new coin appears. There are {self.max_turns} turns. Try to let both of "
            "you earn as much as possible."
        )

    def won(self, seat: int) -> bool:
        return super().won(seat) and min(self.earned) >= 0

    def details(self, seat: int) -> dict[str, Any]:
        return {**super().details(seat), "coins_taken": self.taken}

    def advise(self, seat: int) -> str | None:
        """Walk to a coin of the own colour; for one of the other's, keep off its square."""
        return self.search(seat) if self.drawn == self.colour_of(seat) else "stay"

    def search(self, seat: int) -> str | None:
        return self.nearer(seat, self.coin)[0]

    def equals(self, seat: int) -> list[str]:
        """Return the first steps of the shortest ways to a coin of the own colour."""
        return self.nearer(seat, self.coin) if self.drawn == self.colour_of(seat) else []

    def explain(self, seat: int, action: str) -> str:
        way = self.way_to(seat, self.coin)
        return f"the coin is {NAMES[self.drawn]}, {way}, and I am {self.names(seat)[0]}"

    def draw(self, seat: int) -> Image:
        canvas, grid = self.draw_board(seat, (52, 44, 70))
        x, y = grid.middle(*self.coin)
        canvas.disc(x, y, 20, TINTS[self.drawn], INK, 3)
        canvas.text("coin", x, y, 14, WHITE, bold=0.3)
        self.draw_players(seat, canvas, grid)
        return canvas.finish()
