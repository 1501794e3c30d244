"""Battleship, Breakthrough, Connect Four and Tic-Tac-Toe on OpenSpiel's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .base import BLUE, GOLD, GREY, INK, RED, WHITE, Canvas, Grid, game_prompt
from .spiel import SearchedGame, SpielGame, replay

SIDE, SHIPS, SHOTS = 6, (2, 3, 4), 20
Cell = tuple[int, int]
CELLS = tuple((row, column) for row in range(SIDE) for column in range(SIDE))
WAYS = ("horizontally", "vertically")

_SEA, _SHIP = (176, 208, 232), (92, 100, 112)


class Battleship(SpielGame):
    """Battleship: sink more of the other's ships than the other sinks of yours.

    Goal: sink the ships of 2, 3 and 4 squares that chance hid on the other's sea of 6 x 6 squares.
    Observation: at the left the other's sea, with your shots: a red cross is a hit, a white ring is
        water; at the right your sea with your ships and the other's shots. The last shot at each
        sea stands on yellow. The text does not tell the results.
    Actions: squares that you have not shot at, `a1` (top left) to `f6` (bottom right).
    Reward: at the end, the number of ships that you sank less those that you lost, -3 to 3.
    Endings: terminated when all ships of one are sunk or both have shot 20 times.
    Splits: train, val and test differ by seed: ships, seat, and how the opponent shoots.
    Oracle: a planner: it shoots where most placements of ships lie that fit its shots. The opponent
        `search`, the default, shoots next to its hits, and else anywhere.
    References: OpenSpiel 2.0.2, `battleship`.
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

    def _actions(self, seat: int) -> list[int]:
        """Return OpenSpiel's actions of a seat: placements of its ships, then shots."""
        return list(self.state.history())[self.player_of(seat) :: 2]

    def ships_of(self, seat: int) -> list[frozenset[Cell]]:
        """Return the squares of each ship of a seat."""
        ways = [divmod(action, SIDE**2) for action in self._actions(seat)[: len(SHIPS)]]
        rows = zip(ways, SHIPS, strict=True)
        return [place(WAYS[kind - 1], *divmod(square, SIDE), length) for (kind, square), length in rows]

    def shots_of(self, seat: int) -> list[Cell]:
        """Return a seat's shots, in order."""
        return [divmod(action, SIDE) for action in self._actions(seat)[len(SHIPS) :]]

    def hits_of(self, seat: int) -> set[Cell]:
        """Return the squares at which a seat's shots hit."""
        ships = self.ships_of(1 - seat)
        return {cell for cell in self.shots_of(seat) if any(cell in ship for ship in ships)}

    def goal(self, seat: int) -> str:
        return (
            "Each player has three ships of 2, 3 and 4 squares, across or down, on a sea of 6 x 6 squares that the "
            "other does not see. In turn each shoots at one square of the other's sea and learns whether it hit; "
            f"each has {SHOTS} shots. A ship is sunk when all its squares are hit. Whoever sinks more ships wins. "
            "The big sea at the left is the other's, with your shots; the small one at the right is yours."
        )

    def advise(self, seat: int) -> str | None:
        hits = self.hits_of(seat)
        return name(hunt(hits, set(self.shots_of(seat)) - hits))

    def search(self, seat: int) -> str | None:
        """Return a shot next to a hit, else anywhere; the same each time in one state."""
        tried, hits = self.shots_of(seat), self.hits_of(seat)
        free = [cell for cell in CELLS if cell not in tried]
        near = [(r, c) for r, c in free if hits & {(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)}]
        rng = np.random.default_rng([self.noise, len(tried), seat != self.first])
        chosen = near or free
        return name(chosen[int(rng.integers(len(chosen)))])

    def explain(self, seat: int, action: str) -> str:
        hits = self.hits_of(seat)
        hit, water = (" ".join(map(name, sorted(cells))) or "none" for cells in (hits, set(self.shots_of(seat)) - hits))
        return f"hits {hit}, water {water}; most ways in which the ships may lie cover {action}"

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Move ships of the other that were never hit to where no shot has shown water."""
        tried, player = set(self.shots_of(seat)), self.player_of(seat)
        view = self.state.observation_string(player)
        history, game = list(self.state.history()), self.state.get_game()
        for number in rng.permutation(len(SHIPS)):
            index = 2 * int(number) + 1 - player
            if self.ships_of(1 - seat)[number] & tried:
                continue
            for action in rng.permutation(game.num_distinct_actions()):
                changed = [*history[:index], int(action), *history[index + 1 :]]
                state = replay(self.spiel, changed) if changed != history else None
                if state is not None and state.observation_string(player) == view:
                    self.state = state
                    return True
        return False

    def paint(self, canvas: Canvas, seat: int) -> None:
        canvas.text("Other's sea: your shots", 142, 16, 17, INK, bold=0.4)
        canvas.text("Your sea", 330, 46, 15, INK, bold=0.4)
        big, small = Grid(canvas, SIDE, (30, 32, 38)), Grid(canvas, SIDE, (278, 60, 17))
        self._draw_sea(big, seat, (), 1)
        self._draw_sea(small, 1 - seat, self.ships_of(seat), 0.45)
        big.name("abcdef", "123456", 20)
        small.name("abcdef", "123456", 13)
        mine, others = len(self.shots_of(seat)), len(self.shots_of(1 - seat))
        canvas.text(f"You: {mine} of {SHOTS} shots", 12, 304, 16, BLUE, "lm")
        canvas.text(f"Other: {others} of {SHOTS} shots", 200, 304, 16, INK, "lm")
        canvas.text("red cross: hit    white ring: water", 12, 329, 15, GREY, "lm")
        canvas.text("Ships to find: 2, 3 and 4 squares", 12, 353, 15, GREY, "lm")

    def _draw_sea(self, grid: Grid, seat: int, ships: Sequence[frozenset[Cell]], scale: float) -> None:
        """Draw a sea with each of these ships in one piece, and a seat's shots at it."""
        shots, hits = self.shots_of(seat), self.hits_of(seat)
        for cell in CELLS:
            grid.fill(*cell, GOLD if [cell] == shots[-1:] else _SEA, WHITE, 1)

        # Ships in one piece each, then the shots above them.
        for ship in ships:
            (left, top), (right, bottom) = (grid.middle(*end(ship)) for end in (min, max))
            half = 0.38 * grid.side
            wide, high = right - left + 2 * half, bottom - top + 2 * half
            grid.canvas.box(left - half, top - half, wide, high, _SHIP, INK, 1, half)
        for cell in shots:
            if cell in hits:
                grid.canvas.cross(*grid.middle(*cell), 11 * scale, RED, 5 * scale)
            else:
                grid.canvas.disc(*grid.middle(*cell), 9 * scale, WHITE, INK, 2 * scale)


def name(cell: Cell) -> str:
    return f"{'abcdef'[cell[1]]}{cell[0] + 1}"


def place(way: str, row: int, column: int, length: int) -> frozenset[Cell]:
    """Return the squares of a ship that lies one of `WAYS` from its top left corner."""
    down, right = (0, 1) if way == "horizontally" else (1, 0)
    return frozenset((row + step * down, column + step * right) for step in range(length))


EVERY = [place(way, *cell, length) for length in SHIPS for way in WAYS for cell in CELLS]
PLACES = tuple(cells for cells in EVERY if cells <= {*CELLS})


def hunt(hits: set[Cell], water: set[Cell]) -> Cell:
    """Return the square that most `PLACES` without water cover; hits count far more."""
    weights = {cell: 0.0 for cell in CELLS if cell not in hits | water}
    for cells in PLACES:
        if not cells & water:
            for cell in cells - hits:
                weights[cell] += 30.0 ** len(cells & hits)
    return max(weights, key=lambda cell: (weights[cell], sum(cell) % 2, -cell[0], -cell[1]))


TTT_COLUMNS, TTT_ROWS = "abc", "321"  # from the left, from the top


class TicTacToe(SpielGame):
    """Tic-Tac-Toe: put three of your marks in a row before the other does.

    Goal: three own marks in a row, column or diagonal. Seat 0 plays X and begins; seat 1 plays O.
    Observation: the board with the names of its squares, the last mark on yellow. The text tells
        your mark; it does not list the empty squares.
    Actions: the empty squares, `a3` (top left) to `c1` (bottom right).
    Reward: +1 for a win, -1 for a loss, 0 for a draw.
    Endings: terminated by three in a row or a full board.
    Splits: each game begins after 2 random moves, whose board belongs to one split by its hash.
    Oracle: exact: minimax over all states. Of moves that are worth the same it takes the one that
        wins most often against random play.
    References: OpenSpiel 2.0.2, `tic_tac_toe`.
    """

    spiel = "tic_tac_toe"
    marks = "XO"
    opening: ClassVar[int] = 2
    zero_sum: ClassVar[bool] = True
    prompt = game_prompt("You are playing tic-tac-toe.", version=2)
    notation: ClassVar[str] = "every empty square, by its column and its row"

    def name_action(self, action: int) -> str:
        return TTT_COLUMNS[action % 3] + TTT_ROWS[action // 3]

    def goal(self, seat: int) -> str:
        mark = self.marks[self.player_of(seat)]
        return (
            f"You play {mark}. The players put their marks on empty squares in turn; X begins. Three marks of one "
            "player in a row, a column or a diagonal win. A square is named by its column (a, b, c) and its row (1, "
            "2, 3)."
        )

    def describe_view(self, seat: int) -> str:
        lines = zip(TTT_ROWS, str(self.state).splitlines(), strict=True)
        return self.describe_board([*map("".join, lines), f" {TTT_COLUMNS}"], "xo")

    def paint(self, canvas: Canvas, seat: int) -> None:
        grid = Grid(canvas, 3, (48, 40, 100))
        for cell, mark in enumerate(str(self.state).replace("\n", "")):
            place = divmod(cell, 3)
            fresh = self.last is not None and self.last[1] == self.name_action(cell)
            grid.fill(*place, GOLD if fresh else WHITE, INK, 3)
            if mark == "x":
                canvas.cross(*grid.middle(*place), 28, BLUE, 10)
            elif mark == "o":
                canvas.disc(*grid.middle(*place), 32, None, RED, 10)
        grid.name(TTT_COLUMNS, TTT_ROWS, 24)
        player = self.player_of(seat)
        canvas.text(f"You are {self.marks[player]}", 198, 20, 22, (BLUE, RED)[player])

    def advise(self, seat: int) -> str | None:
        player, state = self.player_of(seat), self.state
        return self.name_action(max(state.legal_actions(), key=lambda action: _worth(state.child(action), player)))

    def explain(self, seat: int, action: str) -> str:
        history = self.state.history()
        crosses, noughts = (" ".join(map(self.name_action, sorted(history[player::2]))) or "none" for player in (0, 1))
        return f"X has {crosses}, O has {noughts}; I play {action}"


_WORTHS: dict[tuple[str, int], tuple[float, float]] = {}


def _worth(state: Any, player: int) -> tuple[float, float]:
    """Return a player's value under best play by both, and against random moves."""
    if state.is_terminal():
        return (state.returns()[player],) * 2
    key = str(state), player
    if key not in _WORTHS:
        after = [_worth(state.child(action), player) for action in state.legal_actions()]
        values, chances = zip(*after, strict=True)
        mine = state.current_player() == player
        _WORTHS[key] = (max(values), max(chances)) if mine else (min(values), sum(chances) / len(chances))
    return _WORTHS[key]


class ConnectFour(SearchedGame):
    """Connect Four: drop discs, and have four of yours in a row before the other does.

    Goal: four own discs in a row: across, up or diagonally. Seat 0, yellow, begins; seat 1 is red.
    Observation: the rack of 6 rows and 7 numbered columns; the disc that was dropped last has a
        white ring. The text tells your colour, not where the discs are.
    Actions: `column 1` to `column 7`, as long as the column has room.
    Reward: +1 for a win, -1 for a loss, 0 for a draw.
    Endings: terminated by four in a row or a full rack.
    Splits: the board after 6 random moves belongs to one split by its hash; some are lost.
    Oracle: a planner, not proved optimal: OpenSpiel's Monte Carlo tree search with 1,000
        simulations a move. The opponent `search`, the default, is the same player with 50.
    Options of `reset`: `level`, 0 to 4: the opponent `search` has 2 to 200 simulations.
    References: OpenSpiel 2.0.2, `connect_four` and `MCTSBot`.
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

    def paint(self, canvas: Canvas, seat: int) -> None:
        grid = Grid(canvas, 6, (17, 38, 50))
        canvas.box(13, 34, 358, 308, (38, 72, 156), INK, 3, 10)
        board = str(self.state).split()
        for row, line in enumerate(board):
            for column, disc in enumerate(line):
                colour = {"x": GOLD, "o": RED}.get(disc, (225, 230, 242))
                canvas.disc(*grid.middle(row, column), 20, colour, INK, 2)

        # A ring marks the disc that was dropped last.
        if self.last:
            column = int(self.last[1].split()[1]) - 1
            top = next(row for row, line in enumerate(board) if line[column] != ".")
            canvas.disc(*grid.middle(top, column), 11, None, WHITE, 4)
        grid.name("1234567", (), 22)
        player = self.player_of(seat)
        canvas.disc(110, 17, 11, (GOLD, RED)[player], INK, 2)
        canvas.text(f"You are {self.marks[player]}", 128, 17, 21, anchor="lm")


class Breakthrough(SearchedGame):
    """Breakthrough, on 6 x 6 squares without a level: bring a piece to the last row.

    Goal: reach the farthest row, or capture all pieces of the other. Seat 0 plays black, from the
        top down, and begins; seat 1 plays white, from the bottom up.
    Observation: the board with the names of its columns and rows; the squares of the last move are
        yellow. The text tells your colour, and lists no legal moves.
    Actions: moves such as `a5-b4`: one step ahead or diagonally ahead to an empty square; captures
        such as `a5xb4`, only diagonally ahead.
    Reward: +1 for a win, -1 for a loss. There is no draw.
    Endings: terminated by a win; truncated after 60 turns of a seat.
    Splits: the board after 4 random moves belongs to one split by its hash; some are lost.
    Oracle: a planner, not proved optimal: OpenSpiel's Monte Carlo tree search with 2,000
        simulations a move. The opponent `search`, the default, is the same player with 100.
    Options of `reset`: `level`, 0 to 4: 5 to 8 squares a side, 5 to 100 simulations of `search`.
    References: OpenSpiel 2.0.2, `breakthrough(rows=6,columns=6)` and `MCTSBot`.
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

    def paint(self, canvas: Canvas, seat: int) -> None:
        side = self.board_side
        grid = Grid(canvas, side, (42, 32, 312 / side))
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
                    fill, edge = (INK, WHITE) if piece == "b" else (WHITE, INK)
                    canvas.disc(*grid.middle(row, column), 19 * grid.side / 52, fill, edge, 3)
        grid.name(columns, rows, 20)
        player = self.player_of(seat)
        words = f"You are {self.marks[player]}, moving {('down', 'up')[player]}"
        canvas.text(words, 198, 15, 19)
