"""Tic-Tac-Toe: three in a row, against an exact player."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from vlgym.types import Image

from .art import BLUE, GOLD, INK, RED, Canvas, Grid
from .prompts import game_prompt
from .spiel import SpielGame

COLUMNS, ROWS = "abc", "321"
"""Names of the columns from the left and of the rows from the top."""


class TicTacToe(SpielGame):
    """Tic-Tac-Toe: put three of your marks in a row before the other does.

    Goal: three own marks in a row, column or diagonal. Seat 0 plays X and begins; seat 1 plays O.
    Observation: the board with the names of its squares (384 x 384 pixels by default); the last mark stands on yellow.
        The text says which mark is yours, not what is on the board.
    Actions: the empty squares, `a3` (top left) to `c1` (bottom right).
    Reward: +1 for a win, -1 for a loss, 0 for a draw; zero-sum.
    Endings: terminated by three in a row or a full board; truncated after 9 turns of a seat, which legal play does not
        reach.
    Success: a win.
    Splits: train, val and test differ by seed: which seat is played, and what random opponents do.
    Oracle: exact: minimax over all states. Of moves that are worth the same it takes the one that wins most often
        against random play.
    References: OpenSpiel 2.0.2, `tic_tac_toe`. Drawing and texts are this package's.
    """

    spiel = "tic_tac_toe"
    marks = "XO"
    zero_sum: ClassVar[bool] = True
    prompt = game_prompt("You are playing tic-tac-toe.")

    def name_action(self, action: int) -> str:
        return COLUMNS[action % 3] + ROWS[action // 3]

    def goal(self, seat: int) -> str:
        mark = "XO"[self.player_of(seat)]
        return (
            f"You play {mark}. The players put their marks on empty squares in turn; X begins. Three marks of one "
            "player in a row, a column or a diagonal win. A square is named by its column (a, b, c) and its row (1, "
            "2, 3)."
        )

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
        grid.name(COLUMNS, ROWS, 24)
        canvas.text(f"You are {'XO'[self.player_of(seat)]}", 198, 20, 22, BLUE if self.player_of(seat) == 0 else RED)
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
        seen = [" ".join(self.name_action(cell) for cell in sorted(history[player::2])) or "none" for player in (0, 1)]
        return f"X has {seen[0]}, O has {seen[1]}; I play {action}"


Key = tuple[frozenset[int], frozenset[int]]
"""The squares of X and of O."""


def _key(history: tuple[int, ...]) -> Key:
    return frozenset(history[::2]), frozenset(history[1::2])


@lru_cache(maxsize=20000)
def _worth(key: Key, player: int) -> tuple[float, float]:
    """What both playing on their best is worth to a player, and what its best play is worth against random moves."""
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
