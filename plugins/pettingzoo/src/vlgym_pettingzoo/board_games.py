"""Battleship, Breakthrough, Connect Four and Tic-Tac-Toe on OpenSpiel's rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from vlgym.types import Image

from .art import BLUE, GOLD, GREY, INK, RED, WHITE, Canvas, Grid, draw_turn
from .base import game_prompt
from .spiel import SearchedGame, SpielGame, replay

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
        default, shoots next to its hits, and else anywhere.
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
        """Return a seat's shots, in order."""
        return [cell for player, cell in self._read()[1] if player == self.player_of(seat)]

    def _read(self) -> tuple[list[tuple[int, frozenset[Cell]]], list[tuple[int, Cell]]]:
        """Ships and shots, each with OpenSpiel's player."""
        game, ships, shots = self.state.get_game(), [], []
        for index, action in enumerate(self.state.history()):
            player = index % 2
            if index < 2 * len(SHIPS):
                match = _PLACE.search(game.action_to_string(player, action))
                assert match is not None
                ships.append((player, place(match[1], int(match[2]), int(match[3]), SHIPS[index // 2])))
            else:
                match = _SHOOT.search(game.action_to_string(player, action))
                assert match is not None
                shots.append((player, (int(match[1]), int(match[2]))))
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
        """Return a shot next to a hit, else anywhere; the same each time in one state."""
        hidden = {cell for ship in self.ships_of(1 - seat) for cell in ship}
        tried = self.shots_of(seat)
        free = [(row, column) for row in range(SIDE) for column in range(SIDE) if (row, column) not in tried]
        hits = [cell for cell in tried if cell in hidden]
        beside = [cell for cell in free if any(abs(cell[0] - r) + abs(cell[1] - c) == 1 for r, c in hits)]
        rng = np.random.default_rng([self.noise, len(tried), seat != self.first])
        chosen = beside or free
        return name(chosen[int(rng.integers(len(chosen)))])

    def explain(self, seat: int, action: str) -> str:
        hidden = {cell for ship in self.ships_of(1 - seat) for cell in ship}
        tried = sorted(self.shots_of(seat))
        squares = [" ".join(name(cell) for cell in tried if (cell in hidden) is hit) or "none" for hit in (True, False)]
        return f"hits {squares[0]}, water {squares[1]}; most ways in which the ships may lie cover {action}"

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Move ships of the other that were never hit to where no shot has shown water."""
        tried, other = set(self.shots_of(seat)), self.player_of(1 - seat)
        view = self.state.observation_string(self.player_of(seat))
        history, game = list(self.state.history()), self.state.get_game()
        for number in rng.permutation(len(SHIPS)):
            index = 2 * int(number) + other
            if self.ships_of(1 - seat)[number] & tried:
                continue
            for action in rng.permutation(game.num_distinct_actions()):
                changed = [*history[:index], int(action), *history[index + 1 :]]
                state = replay(self.spiel, changed) if changed != history else None
                if state is not None and state.observation_string(self.player_of(seat)) == view:
                    self.state = state
                    return True
        return False

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        canvas.text("Other's sea: your shots", 142, 16, 17, INK, bold=0.4)
        canvas.text("Your sea", 330, 46, 15, INK, bold=0.4)
        own, its = self.ships_of(seat), self.ships_of(1 - seat)
        mine, others = self.shots_of(seat), self.shots_of(1 - seat)
        big, small = Grid(canvas, SIDE, SIDE, (30, 32, 38)), Grid(canvas, SIDE, SIDE, (278, 60, 17))
        self._draw_sea(big, mine, {cell for ship in its for cell in ship}, (), 1)
        self._draw_sea(small, others, {cell for ship in own for cell in ship}, own, 0.45)
        big.name("abcdef", "123456", 20)
        small.name("abcdef", "123456", 13)
        canvas.text(f"You: {len(mine)} of {SHOTS} shots", 12, 304, 16, BLUE, "lm")
        canvas.text(f"Other: {len(others)} of {SHOTS} shots", 200, 304, 16, INK, "lm")
        canvas.text("red cross: hit    white ring: water", 12, 329, 15, GREY, "lm")
        canvas.text("Ships to find: 2, 3 and 4 squares", 12, 353, 15, GREY, "lm")
        draw_turn(canvas, self.movers(), seat)
        return canvas.finish()

    def _draw_sea(
        self, grid: Grid, shots: list[Cell], hidden: set[Cell], ships: Sequence[frozenset[Cell]], scale: float
    ) -> None:
        """Draw a sea with each of these ships in one piece, and the shots at it."""
        for row in range(SIDE):
            for column in range(SIDE):
                grid.fill(row, column, GOLD if [(row, column)] == shots[-1:] else _SEA, WHITE, 1)
        for ship in ships:
            (left, top), (right, bottom) = (grid.middle(*end(ship)) for end in (min, max))
            half = 0.38 * grid.side
            wide, high = right - left + 2 * half, bottom - top + 2 * half
            grid.canvas.box(left - half, top - half, wide, high, _SHIP, INK, 1, half)
        for cell in shots:
            x, y, reach = *grid.middle(*cell), 11 * scale
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
    for way, rows, columns in (("horizontally", SIDE, SIDE - length + 1), ("vertically", SIDE - length + 1, SIDE))
    for row in range(rows)
    for column in range(columns)
)
"""Possible places of each ship."""


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


TTT_COLUMNS, TTT_ROWS = "abc", "321"
"""Names of the columns from the left and of the rows from the top."""


class TicTacToe(SpielGame):
    """Tic-Tac-Toe: put three of your marks in a row before the other does.

    Goal: three own marks in a row, column or diagonal. Seat 0 plays X and begins; seat 1 plays O.
    Observation: the board with the names of its squares (384 x 384 pixels by default); the last mark stands on yellow.
        The text says which mark is yours, not what is on the board: it does not list the empty squares.
    Actions: the empty squares, `a3` (top left) to `c1` (bottom right).
    Reward: +1 for a win, -1 for a loss, 0 for a draw; zero-sum.
    Endings: terminated by three in a row or a full board; truncated after 9 turns of a seat, which legal play does not
        reach.
    Success: a win.
    Splits: no opening is in two of train, val and test: each game begins after 2 random moves, whose board belongs to
        one split by its hash. The seed says which seat is played and what random opponents do.
    Oracle: exact: minimax over all states. Of moves that are worth the same it takes the one that wins most often
        against random play.
    References: OpenSpiel 2.0.2, `tic_tac_toe`. Drawing and texts are this package's.
    """

    spiel = "tic_tac_toe"
    marks = "XO"
    opening: ClassVar[int] = 2
    zero_sum: ClassVar[bool] = True
    prompt = game_prompt("You are playing tic-tac-toe.", version=2)
    notation: ClassVar[str] = "every empty square, by its column and its row"

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        super().deal(rng, options)
        self.draw_opening(rng)

    def name_action(self, action: int) -> str:
        return TTT_COLUMNS[action % 3] + TTT_ROWS[action // 3]

    def goal(self, seat: int) -> str:
        mark = "XO"[self.player_of(seat)]
        return (
            f"You play {mark}. The players put their marks on empty squares in turn; X begins. Three marks of one "
            "player in a row, a column or a diagonal win. A square is named by its column (a, b, c) and its row (1, "
            "2, 3)."
        )

    def describe_view(self, seat: int) -> str:
        rows = [name + row for name, row in zip(TTT_ROWS, str(self.state).splitlines(), strict=True)]
        return self.describe_board([*rows, f" {TTT_COLUMNS}"], "xo")

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        grid = Grid(canvas, 3, 3, (48, 40, 100))
        board = str(self.state).replace("\n", "")
        for cell, mark in enumerate(board):
            row, column = divmod(cell, 3)
            fresh = self.last is not None and self.last[1] == self.name_action(cell)
            grid.fill(row, column, GOLD if fresh else (255, 255, 255), INK, 3)
            x, y = grid.middle(row, column)
            if mark == "x":
                canvas.line([(x - 28, y - 28), (x + 28, y + 28)], BLUE, 10)
                canvas.line([(x - 28, y + 28), (x + 28, y - 28)], BLUE, 10)
            elif mark == "o":
                canvas.disc(x, y, 32, None, RED, 10)
        grid.name(TTT_COLUMNS, TTT_ROWS, 24)
        canvas.text(f"You are {'XO'[self.player_of(seat)]}", 198, 20, 22, BLUE if self.player_of(seat) == 0 else RED)
        draw_turn(canvas, self.movers(), seat)
        return canvas.finish()

    def advise(self, seat: int) -> str | None:
        player = self.player_of(seat)
        values = {}
        for action in self.state.legal_actions():
            after = (*self.state.history(), action)
            values[action] = _worth(_key(after), player)
        return self.name_action(max(values, key=lambda action: values[action]))

    def explain(self, seat: int, action: str) -> str:
        history = self.state.history()
        cells = [" ".join(map(self.name_action, sorted(history[player::2]))) or "none" for player in (0, 1)]
        return f"X has {cells[0]}, O has {cells[1]}; I play {action}"


Key = tuple[frozenset[int], frozenset[int]]
"""The squares of X and of O."""


def _key(history: tuple[int, ...]) -> Key:
    return frozenset(history[::2]), frozenset(history[1::2])


@lru_cache(maxsize=20000)
def _worth(key: Key, player: int) -> tuple[float, float]:
    """Return a player's value under best play by both, and the value of its best play against random moves."""
    line = _winner(key)
    if line is not None:
        return (1.0, 1.0) if line == player else (-1.0, -1.0)
    following = [_worth(after, player) for after in _following(key)]
    if not following:
        return 0.0, 0.0
    values, chances = zip(*following, strict=True)
    if len(key[0]) - len(key[1]) == player:
        return max(values), max(chances)
    return min(values), sum(chances) / len(chances)


def _following(key: Key) -> list[Key]:
    crosses, noughts = key
    free = [cell for cell in range(9) if cell not in crosses | noughts]
    if len(crosses) == len(noughts):
        return [(crosses | {cell}, noughts) for cell in free]
    return [(crosses, noughts | {cell}) for cell in free]


_LINES = tuple(
    frozenset(line) for line in ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
)


def _winner(key: Key) -> int | None:
    for player, cells in enumerate(key):
        if any(line <= cells for line in _LINES):
            return player
    return None


class ConnectFour(SearchedGame):
    """Connect Four: drop discs, and have four of yours in a row before the other does.

    Goal: four own discs in a row: across, up or diagonally. Seat 0 plays yellow and begins; seat 1 plays red.
    Observation: the rack of 6 rows and 7 numbered columns (384 x 384 pixels by default); the disc that was dropped last
        has a white ring. The text says which colour is yours, not where the discs are.
    Actions: `column 1` to `column 7`, as long as the column has room.
    Reward: +1 for a win, -1 for a loss, 0 for a draw; zero-sum.
    Endings: terminated by four in a row or a full rack; truncated after 42 turns of a seat, which legal play does not
        reach.
    Success: a win.
    Splits: no opening is in two of train, val and test: each game begins after 6 random moves, whose board belongs to
        one split by its hash. The seed says which seat is played and what the
        opponent's search draws. Some openings are lost.
    Oracle: a planner, not proved optimal: OpenSpiel's Monte Carlo tree search with 1,000 simulations a move. The
        opponent `search`, the default, is the same player with 50.
    Options of `reset`: `level`, 0 to 4: how many simulations the opponent `search` has, 2 to 200.
    References: OpenSpiel 2.0.2, `connect_four` and `MCTSBot`. Drawing and texts are this package's.
    """

    spiel = "connect_four"
    marks = ("yellow", "red")
    opening, strong, modest = 6, 1000, 50
    level_arguments: ClassVar = tuple({"modest": simulations} for simulations in (2, 10, 25, 50, 200))
    prompt = game_prompt("You are playing Connect Four.")

    def name_action(self, action: int) -> str:
        return f"column {action + 1}"

    def goal(self, seat: int) -> str:
        return (
            f"You play {self.marks[self.player_of(seat)]}. The players drop discs into the seven columns in turn; "
            "yellow begins. A disc falls to the lowest free place of its column. Four discs of one colour in a row, "
            "across, up or diagonally, win."
        )

    def describe_view(self, seat: int) -> str:
        return self.describe_board([*str(self.state).split(), "1234567"], "xo")

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        grid = Grid(canvas, 6, 7, (17, 38, 50))
        canvas.box(13, 34, 358, 308, (38, 72, 156), INK, 3, 10)
        board = [line for line in str(self.state).splitlines() if line]
        column = int(self.last[1].split()[1]) - 1 if self.last else -1
        top = next((row for row in range(6) if column >= 0 and board[row][column] != "."), None)
        for row in range(6):
            for place in range(7):
                x, y = grid.middle(row, place)
                colour = {"x": GOLD, "o": RED}.get(board[row][place], (225, 230, 242))
                canvas.disc(x, y, 20, colour, INK, 2)
                if place == column and row == top:
                    canvas.disc(x, y, 11, None, WHITE, 4)
        grid.name("1234567", (), 22)
        player = self.player_of(seat)
        canvas.disc(110, 17, 11, (GOLD, RED)[player], INK, 2)
        canvas.text(f"You are {self.marks[player]}", 128, 17, 21, anchor="lm")
        draw_turn(canvas, self.movers(), seat)
        return canvas.finish()


class Breakthrough(SearchedGame):
    """Breakthrough, on a board of 6 x 6 without a level: bring one of your pieces to the row on the other side.

    Goal: reach the farthest row, or capture all pieces of the other. Seat 0 plays black, from the top down, and begins;
        seat 1 plays white, from the bottom up.
    Observation: the board with the names of its columns and rows (384 x 384 pixels by default); the squares of the last
        move are yellow. The text says which colour is yours, not where the pieces are: it does not list the legal
        moves.
    Actions: moves such as `a5-b4`: one step ahead or diagonally ahead to an empty square; captures such as `a5xb4`,
        only diagonally ahead.
    Reward: +1 for a win, -1 for a loss; zero-sum. There is no draw.
    Endings: terminated by a win; truncated after 60 turns of a seat, which legal play does not reach.
    Success: a win.
    Splits: no opening is in two of train, val and test: each game begins after 4 random moves, whose board belongs to
        one split by its hash. The seed says which seat is played and what the
        opponent's search draws. Some openings are lost.
    Oracle: a planner, not proved optimal: OpenSpiel's Monte Carlo tree search with 2,000 simulations a move. The
        opponent `search`, the default, is the same player with 100.
    Options of `reset`: `level`, 0 to 4: the side of the board, 5 to 8 squares, and the opponent's simulations, 5 to
        100.
    References: OpenSpiel 2.0.2, `breakthrough(rows=6,columns=6)` and `MCTSBot`. Drawing and texts are this package's.
    """

    spiel = "breakthrough(rows=6,columns=6)"
    board_side: int = 6
    level_arguments: ClassVar = tuple(
        {"spiel": f"breakthrough(rows={side},columns={side})", "board_side": side, "modest": simulations}
        for side, simulations in ((5, 5), (6, 20), (6, 100), (7, 100), (8, 100))
    )
    marks = ("black", "white")
    opening, strong, modest = 4, 2000, 100
    prompt = game_prompt("You are playing Breakthrough.", version=2)
    notation: ClassVar[str] = "every move of the rules, from square to square"

    def name_action(self, action: int) -> str:
        move = self.state.action_to_string(self.state.current_player(), action)
        return f"{move[:2]}{'x' if move.endswith('*') else '-'}{move[2:4]}"

    def goal(self, seat: int) -> str:
        player = self.player_of(seat)
        return (
            f"You play {self.marks[player]} and move {('down', 'up')[player]} the board. In each turn one piece moves "
            "one square ahead or diagonally ahead to an empty square, or captures diagonally ahead. Whoever brings a "
            "piece to the last row wins; so does who captures all pieces. Black begins. A move is written a5-b4, a "
            "capture a5xb4."
        )

    def describe_view(self, seat: int) -> str:
        return self.describe_board(str(self.state).splitlines(), "bw")

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        side = self.board_side
        grid = Grid(canvas, side, side, (42, 32, 312 / side))
        columns, rows = "abcdefgh"[:side], "87654321"[-side:]
        lines = str(self.state).splitlines()
        squares = (self.last[1][:2], self.last[1][3:5]) if self.last else ()
        for row in range(side):
            for column in range(side):
                square = columns[column] + rows[row]
                plain = (222, 205, 170) if (row + column) % 2 else (190, 160, 118)
                grid.fill(row, column, GOLD if square in squares else plain, INK, 1)
                piece = lines[row][column + 1]
                if piece in "bw":
                    x, y = grid.middle(row, column)
                    canvas.disc(
                        x, y, 19 * grid.side / 52, INK if piece == "b" else WHITE, INK if piece == "w" else WHITE, 3
                    )
        grid.name(columns, rows, 20)
        player = self.player_of(seat)
        canvas.text(f"You are {self.marks[player]}, moving {('down', 'up')[player]}", 198, 15, 19)
        draw_turn(canvas, self.movers(), seat)
        return canvas.finish()
