"""Connect Four: four in a row, against tree search."""

from __future__ import annotations

from vlgym.types import Image

from .art import GOLD, INK, RED, WHITE, Canvas, Grid
from .prompts import game_prompt
from .spiel import SearchedGame


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
    Splits: train, val and test differ by seed: which seat is played, and so how the opponent plays.
    Oracle: a planner, not proved optimal: OpenSpiel's Monte Carlo tree search with 1,000 simulations a move. The
        opponent `search`, the default, is the same player with 50.
    References: OpenSpiel 2.0.2, `connect_four` and `MCTSBot`. Drawing and texts are this package's.
    """

    spiel = "connect_four"
    marks = ("yellow", "red")
    strong, modest = 1000, 50
    prompt = game_prompt("You are playing Connect Four.")

    def name_action(self, action: int) -> str:
        return f"column {action + 1}"

    def goal(self, seat: int) -> str:
        return (
            f"You play {self.marks[self.player_of(seat)]}. The players drop discs into the seven columns in turn; "
            "yellow begins. A disc falls to the lowest free place of its column. Four discs of one colour in a row, "
            "across, up or diagonally, win."
        )

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
        return canvas.finish()
