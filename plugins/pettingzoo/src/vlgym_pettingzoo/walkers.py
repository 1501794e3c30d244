"""A coin game, Monster Hunt and Battle of the Colors: two who walk on a square board at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import numpy as np

from vlgym.games.multi import Round

from .base import BLUE, GOLD, GREEN, GREY, INK, RED, WHITE, Canvas, GameAtOnce, Grid, game_prompt

Cell = tuple[int, int]

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}
NAMES, TINTS = ("red", "blue"), (RED, BLUE)


def distance(one: Cell, other: Cell) -> int:
    """Return the steps between two squares."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


class Walkers(GameAtOnce):
    """A red and a blue player on a board of `side` x `side` squares, who may share a square."""

    symmetric: ClassVar[bool] = True
    actions = tuple(STEPS)
    side: ClassVar[int] = 5
    enough: ClassVar[float]  # return of both together that counts as success
    places: list[Cell]
    earned: list[float]
    flipped: int  # 1 where seat 0 is blue

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

    def draw_board(self, canvas: Canvas, seat: int, box: tuple[float, float, float]) -> Grid:
        """Draw the board, and what both have earned."""
        grid = Grid(canvas, self.side, box)
        for cell in self.cells():
            grid.fill(*cell, WHITE, GREY, 1)
        mine, its = self.names(seat)
        canvas.text(f"You ({mine}): {self.earned[seat]:+.0f}", 16, 22, 19, anchor="lm")
        canvas.text(f"Other ({its}): {self.earned[1 - seat]:+.0f}", 368, 22, 19, anchor="rm")
        canvas.text("up / down / left / right as you see the board", 192, 350, 14, GREY)
        return grid

    def draw_players(self, seat: int, canvas: Canvas, grid: Grid, size: float = 24) -> None:
        """Draw both players; on one square they stand side by side, red at the left."""
        together = self.places[0] == self.places[1]
        for player in (0, 1):
            (x, y), colour = grid.middle(*self.places[player]), self.colour_of(player)
            half, letters = size, 0.63
            if together:
                x, half, letters = x + (-0.7, 0.7)[colour] * size, 0.67 * size, 0.46
            canvas.box(x - half, y - half, 2 * half, 2 * half, TINTS[colour], INK, 3, 6)
            canvas.text("you" if player == seat else "other", x, y, size * letters, WHITE, bold=0.3)


class CoinGame(Walkers):
    """A coin game: take the coins of your colour, and leave the other's, if you want both to gain.

    Goal: collect coins, red or blue, one at a time, on 4 x 4 squares. Seat 0 is red, seat 1 blue.
    Observation: board, players, coin, and both returns; in the text your colour, no places.
    Actions: `up`, `down`, `left`, `right`, `stay`. Both move at once; both may stand on one square.
    Reward: 1 for a coin that you take, of either colour; -2 when the other takes a coin of your
        colour. Two who take a coin at once both take it.
    Endings: truncated after 24 turns of each.
    Success: the two have earned at least 4 together, and neither has lost. `score` is the sum.
    Splits: train, val and test differ by seed: coins, places, seat.
    Oracle: a planner: it walks to coins of its colour and stands aside for the other's. The
        opponent `search` takes every coin. Default opponent: the oracle.
    References: Lerer and Peysakhovich, 2017 (arXiv 1707.01068), describe such a game.
    """

    side: ClassVar[int] = 4
    enough: ClassVar[float] = 4.0
    prompt = game_prompt("You are playing a coin game.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.set_out(rng)
        self.taken = 0
        self._lay_coin()

    def _lay_coin(self) -> None:
        self.coin, self.drawn = self.draw_cell(self.places), int(self.chance_rng.integers(2))

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
        return self.search(seat) if self.drawn == self.colour_of(seat) else "stay"

    def search(self, seat: int) -> str | None:
        return self.nearer(seat, self.coin)[0]

    def equals(self, seat: int) -> list[str]:
        """Return the first steps of the shortest ways to a coin of the own colour."""
        return self.nearer(seat, self.coin) if self.drawn == self.colour_of(seat) else []

    def explain(self, seat: int, action: str) -> str:
        way = self.way_to(seat, self.coin)
        return f"the coin is {NAMES[self.drawn]}, {way}, and I am {self.names(seat)[0]}"

    def paint(self, canvas: Canvas, seat: int) -> None:
        grid = self.draw_board(canvas, seat, (52, 44, 70))
        x, y = grid.middle(*self.coin)
        canvas.disc(x, y, 20, TINTS[self.drawn], INK, 3)
        canvas.text("coin", x, y, 14, WHITE, bold=0.3)
        self.draw_players(seat, canvas, grid)


APPLE, MET_ALONE, MET_TOGETHER = 2.0, -2.0, 5.0


class MonsterHunt(Walkers):
    """Monster Hunt: apples are safe, and a monster is worth more, but to both at once only.

    Goal: earn as much as possible on 5 x 5 squares with two apples and a monster. Seat 0 is red.
    Observation: board, players, apples, monster, both returns; in the text your colour, no places.
    Actions: `up`, `down`, `left`, `right`, `stay`. Both move at once, then the monster moves one
        square towards the nearest player; chance decides among equals. A wall stops a move.
    Reward: 2 for an apple, 5 for each where both meet the monster on one square, -2 alone.
    Endings: truncated after 50 turns of each.
    Success: the two have earned at least 60 together. `score` is the sum of both.
    Splits: train, val and test differ by seed: places, chance, seat.
    Oracle: a planner: it goes where both can meet soonest, away from the monster, and then to the
        monster. The opponent `search` walks to the nearest apple. Default opponent: the oracle.
    References: Monster Hunt in Xu et al., VS-Bench, arXiv 2506.02387, 2025.
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
        counts = {"apples": self.eaten[seat], "met_alone": self.alone[seat], "defeated": self.defeated}
        return {**super().details(seat), **counts}

    def advise(self, seat: int) -> str | None:
        return self.equals(seat)[0]

    def equals(self, seat: int) -> list[str]:
        """Return the moves that meet the other and then lead to the monster together."""
        if self.places[0] == self.places[1]:
            return self.nearer(seat, self.monster)
        return self._approach(seat, min(self.cells(), key=self._meeting))

    def _meeting(self, cell: Cell) -> tuple[int, ...]:
        """Return the rank of a square to meet on: soonest for both, then far from the monster."""
        ways = [distance(place, cell) for place in self.places]
        return max(ways), sum(ways), -distance(cell, self.monster), *cell

    def search(self, seat: int) -> str | None:
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

    def paint(self, canvas: Canvas, seat: int) -> None:
        grid = self.draw_board(canvas, seat, (52, 44, 56))
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


class BattleOfTheColors(Walkers):
    """Battle of the Colors: meet on a block; the one of your colour pays you more.

    Goal: earn as much as possible on 5 x 5 squares with two blocks. Seat 0 is red, seat 1 blue.
    Observation: board, players, blocks, and both returns; in the text your colour, no places.
    Actions: `up`, `down`, `left`, `right`, `stay`. Both move at once. A wall stops a move.
    Reward: where both stand on one block, 2 for the player of its colour and 1 for the other, and
        the block appears elsewhere. On different blocks nobody is paid, and both appear elsewhere.
    Endings: truncated after 50 turns of each.
    Success: the two have earned at least 30 together. `score` is the sum of both.
    Splits: train, val and test differ by seed: places, chance, seat.
    Oracle: a planner: it walks to the block that both reach first and waits there. The opponent
        `search` walks to the block of its colour. Default opponent: the oracle.
    References: rules of Battle of the Colors in Xu et al., VS-Bench, arXiv 2506.02387, 2025.
    """

    enough: ClassVar[float] = 30.0
    prompt = game_prompt("You are playing Battle of the Colors.")

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.blocks = self.set_out(rng, 2)
        self.met, self.split = [0, 0], 0

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        self.walk(moves)
        rewards, fresh, (one, other) = [0.0, 0.0], [], self.places
        if one == other and one in self.blocks:
            colour = self.blocks.index(one)
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
        return self.equals(seat)[0]

    def equals(self, seat: int) -> list[str]:
        """Return the first moves of the shortest ways to the block that both reach first."""
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

    def paint(self, canvas: Canvas, seat: int) -> None:
        grid = self.draw_board(canvas, seat, (52, 44, 56))
        tints = (255, 170, 170), (165, 200, 255)
        for name, tint, block in zip(NAMES, tints, self.blocks, strict=True):
            grid.fill(*block, tint, INK, 2)
            x, y = grid.middle(*block)
            canvas.text(name, x, y - 21, 12, INK, bold=0.3)
        self.draw_players(seat, canvas, grid, 17)
