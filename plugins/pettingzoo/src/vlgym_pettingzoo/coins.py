"""A coin game: two who may help or harm each other while they collect coins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.games.multi import MultiVLEnv, Round
from vlgym.types import Image

from .art import BLUE, GREY, INK, RED, WHITE, Canvas, Grid
from .prompts import game_prompt

SIDE = 4
STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}
NAMES, TINTS = ("red", "blue"), (RED, BLUE)
ENOUGH = 4.0
"""Return of both together that counts as success."""


class CoinGame(MultiVLEnv):
    """A coin game: take the coins of your colour, and leave the other's alone, if you want both to gain.

    Goal: collect coins on a board of 4 x 4 squares. Seat 0 is red, seat 1 is blue. There is one coin at a time, red or
        blue.
    Observation: the board with both players and the coin, and what both have earned (384 x 384 pixels by default). The
        text says your colour, not where things are.
    Actions: `up`, `down`, `left`, `right`, `stay`. Both move at once; both may stand on one square.
    Reward: 1 for a coin that you take, of either colour; -2 when the other takes a coin of your colour. Two who take a
        coin at once both take it.
    Endings: truncated after 24 turns of each.
    Success: the two have earned at least 4 together, and neither has lost. `score` is the sum of both.
    Splits: train, val and test differ by seed: coins, places, seat.
    Oracle: a planner: it walks to coins of its colour and stands aside for the other's. The opponent `search` takes
        every coin. Default opponent: the oracle.
    References: Lerer and Peysakhovich, Maintaining cooperation in complex social dilemmas using deep reinforcement
        learning, 2017, describe such a game. Rules as written here, drawing and texts are this package's.
    """

    symmetric: ClassVar[bool] = True
    prompt = game_prompt("You are playing a coin game.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.chance_rng = rng
        self.flipped = 0
        cells = rng.permutation(SIDE * SIDE)[:2]
        self.places = [divmod(int(cell), SIDE) for cell in cells]
        self.earned = [0.0, 0.0]
        self.taken = 0
        self._lay_coin()

    def _lay_coin(self) -> None:
        free = [(row, column) for row in range(SIDE) for column in range(SIDE) if (row, column) not in self.places]
        self.coin = free[int(self.chance_rng.integers(len(free)))]
        self.drawn = int(self.chance_rng.integers(2))

    def colour_of(self, seat: int) -> int:
        """0 for red, 1 for blue."""
        return seat ^ self.flipped

    def movers(self) -> tuple[int, ...]:
        return (0, 1)

    def moves(self, seat: int) -> list[str]:
        row, column = self.places[seat]
        return [word for word, (down, right) in STEPS.items() if 0 <= row + down < SIDE and 0 <= column + right < SIDE]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        for seat in (0, 1):
            down, right = STEPS[moves[seat]]
            self.places[seat] = (self.places[seat][0] + down, self.places[seat][1] + right)
        rewards = [0.0, 0.0]
        for seat in (0, 1):
            if self.places[seat] == self.coin:
                rewards[seat] += 1.0
                if self.drawn != self.colour_of(seat):
                    rewards[1 - seat] -= 2.0
        if self.coin in self.places:
            self.taken += 1
            self._lay_coin()
        self.earned = [before + more for before, more in zip(self.earned, rewards, strict=True)]
        return Round((rewards[0], rewards[1]))

    def idle(self, seat: int) -> str:
        return "stay"

    def goal(self, seat: int) -> str:
        mine, its = NAMES[self.colour_of(seat)], NAMES[1 - self.colour_of(seat)]
        return (
            f"You are {mine}, the other is {its}. You both move at once on a board of 4 x 4 squares. Whoever steps "
            f"on the coin takes it and earns 1. If you take a {its} coin, the other loses 2; if the other takes a "
            f"{mine} coin, you lose 2. Then a new coin appears. There are {self.max_turns} turns. Try to let both of "
            "you earn as much as possible."
        )

    def won(self, seat: int) -> bool:
        return sum(self.earned) >= ENOUGH and min(self.earned) >= 0

    def points(self, seat: int) -> float | None:
        return sum(self.earned)

    def details(self, seat: int) -> dict[str, Any]:
        return {"earned": self.earned[seat], "other_earned": self.earned[1 - seat], "coins_taken": self.taken}

    def tell(self, seat: int) -> str:
        return f"You are {NAMES[self.colour_of(seat)]}. "

    def advise(self, seat: int) -> str | None:
        """Walk to a coin of the own colour; for one of the other's, keep off its square."""
        if self.drawn == self.colour_of(seat):
            return self._walk(seat)
        return "stay"

    def search(self, seat: int) -> str | None:
        return self._walk(seat)

    def equals(self, seat: int) -> list[str]:
        """Return the first steps of the shortest ways to a coin of the own colour."""
        away = {word: self._distance(seat, word) for word in self.moves(seat)}
        return [word for word in away if away[word] == min(away.values()) and self.drawn == self.colour_of(seat)]

    def _distance(self, seat: int, word: str) -> int:
        """Return the steps to the coin after a move."""
        places = zip(self.places[seat], STEPS[word], self.coin, strict=True)
        return sum(abs(place + step - coin) for place, step, coin in places)

    def _walk(self, seat: int) -> str:
        (row, column), (to_row, to_column) = self.places[seat], self.coin
        if row != to_row:
            return "down" if to_row > row else "up"
        return "right" if to_column > column else "left" if to_column < column else "stay"

    def explain(self, seat: int, action: str) -> str:
        return f"the coin is {NAMES[self.drawn]} and I am {NAMES[self.colour_of(seat)]}"

    def mirror(self) -> None:
        self.flipped = 1
        self.places.reverse()

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        grid = Grid(canvas, SIDE, SIDE, (52, 44, 70))
        for row in range(SIDE):
            for column in range(SIDE):
                grid.fill(row, column, WHITE, GREY, 1)
        x, y = grid.middle(*self.coin)
        tint = TINTS[self.drawn]
        canvas.disc(x, y, 20, tint, INK, 3)
        canvas.text("coin", x, y, 14, WHITE, bold=0.3)
        together = self.places[0] == self.places[1]
        for player in (0, 1):
            left = self.colour_of(player) == 0
            x, y = grid.middle(*self.places[player])
            shift = 0 if not together else -17 if left else 17
            size = 16 if together else 24
            canvas.box(x + shift - size, y - size, 2 * size, 2 * size, TINTS[self.colour_of(player)], INK, 3, 6)
            canvas.text("you" if player == seat else "other", x + shift, y, 11 if together else 15, WHITE, bold=0.3)
        canvas.text(f"You ({NAMES[self.colour_of(seat)]}): {self.earned[seat]:+.0f}", 16, 22, 19, anchor="lm")
        other = f"Other ({NAMES[1 - self.colour_of(seat)]}): {self.earned[1 - seat]:+.0f}"
        canvas.text(other, 368, 22, 19, anchor="rm")
        canvas.text("up / down / left / right as you see the board", 192, 352, 14, GREY)
        return canvas.finish()
