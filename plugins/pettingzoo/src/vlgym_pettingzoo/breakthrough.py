"""Breakthrough on 6 x 6 squares: bring one piece to the other side, against tree search."""

from __future__ import annotations

from vlgym.types import Image

from .art import GOLD, INK, WHITE, Canvas, Grid
from .prompts import game_prompt
from .spiel import SearchedGame


class Breakthrough(SearchedGame):
    """Breakthrough on a board of 6 x 6: bring one of your pieces to the row on the other side.

    Goal: reach the farthest row, or capture all pieces of the other. Seat 0 plays black, from the top down, and begins;
        seat 1 plays white, from the bottom up.
    Observation: the board with the names of its columns and rows (384 x 384 pixels by default); the squares of the last
        move are yellow. The text says which colour is yours, not where the pieces are.
    Actions: moves such as `a5-b4`: one step ahead or diagonally ahead to an empty square; captures such as `a5xb4`,
        only diagonally ahead.
    Reward: +1 for a win, -1 for a loss; zero-sum. There is no draw.
    Endings: terminated by a win; truncated after 60 turns of a seat, which legal play does not reach.
    Success: a win.
    Splits: train, val and test differ by seed: which seat is played, and so how the opponent plays.
    Oracle: a planner, not proved optimal: OpenSpiel's Monte Carlo tree search with 2,000 simulations a move. The
        opponent `search`, the default, is the same player with 100.
    References: OpenSpiel 2.0.2, `breakthrough(rows=6,columns=6)` and `MCTSBot`. Drawing and texts are this package's.
    """

    spiel = "breakthrough(rows=6,columns=6)"
    marks = ("black", "white")
    strong, modest = 2000, 100
    prompt = game_prompt("You are playing Breakthrough.")

    def name_action(self, action: int) -> str:
        told = self.state.action_to_string(self.state.current_player(), action)
        return f"{told[:2]}{'x' if told.endswith('*') else '-'}{told[2:4]}"

    def goal(self, seat: int) -> str:
        player = self.player_of(seat)
        return (
            f"You play {self.marks[player]} and move {('down', 'up')[player]} the board. In each turn one piece moves "
            "one square ahead or diagonally ahead to an empty square, or captures diagonally ahead. Whoever brings a "
            "piece to the last row wins; so does who captures all pieces. Black begins. A move is written a5-b4, a "
            "capture a5xb4."
        )

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        grid = Grid(canvas, 6, 6, (42, 32, 52))
        lines = str(self.state).splitlines()
        squares = (self.last[1][:2], self.last[1][3:5]) if self.last else ()
        for row in range(6):
            for column in range(6):
                square = "abcdef"[column] + "654321"[row]
                plain = (222, 205, 170) if (row + column) % 2 else (190, 160, 118)
                grid.fill(row, column, GOLD if square in squares else plain, INK, 1)
                piece = lines[row][column + 1]
                if piece in "bw":
                    x, y = grid.middle(row, column)
                    canvas.disc(x, y, 19, INK if piece == "b" else WHITE, INK if piece == "w" else WHITE, 3)
        grid.name("abcdef", "654321", 20)
        player = self.player_of(seat)
        canvas.text(f"You are {self.marks[player]}, moving {('down', 'up')[player]}", 198, 15, 19)
        return canvas.finish()
