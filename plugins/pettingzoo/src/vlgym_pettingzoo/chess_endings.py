"""Chess endings: few men on a real board, against Stockfish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import chess
import numpy as np

from vlgym.multi import PLAYERS, MultiVLEnv, Round
from vlgym.spaces import match_legal
from vlgym.types import Image

from .art import INK, WHITE, Canvas, Grid
from .chess_men import draw_man
from .chess_positions import draw_position, read_endings
from .prompts import game_prompt
from .stockfish import LEVELS, STOCKFISH, find_stockfish

COLUMNS, ROWS = "abcdefgh", "87654321"
LONGEST = 16
"""Characters of a move at most."""

_LIGHT, _DARK, _LIGHT_MOVED, _DARK_MOVED = (240, 224, 192), (181, 146, 104), (255, 222, 96), (232, 186, 52)


class ChessEndings(MultiVLEnv):
    """Chess endings: mate with the few men that are left, or hold the draw.

    Goal: mate the other king. Seat 0 has the first move, and in the endings of the default should win; whether it plays
        white or black is drawn. Seat 1 defends.
    Observation: the board with the names of its columns and rows, white at the bottom (384 x 384 pixels by default);
        the squares of the last move are yellow. The text says which colour is yours, not where the men are.
    Actions: moves from square to square, `e2e4`, with the new man where a pawn is promoted, `e7e8q` (UCI). A move in
        standard algebraic notation, `Qd5+` or `e8=Q`, is read, too.
    Reward: +1 for mate, -1 for being mated, 0 for a draw; zero-sum.
    Endings: terminated by mate, stalemate, material with which nobody can mate, the third time of one position, and
        fifty moves of each without a capture or a pawn's move (the last two at once, without a claim); truncated after
        60 turns of a seat, a draw.
    Success: this seat has mated.
    Splits: train, val and test differ by seed: ending, position and colour.
    Oracle: a planner: Stockfish with 20,000 nodes a move, one thread and an empty table, so it answers the same each
        time; another version of it may answer otherwise. The same player is called `stockfish-3`; `stockfish-2` looks
        at 3,000 nodes, `stockfish-1`, which is also `search`, at 300.
    References: python-chess 1.11 (rules) and Stockfish (players), both GPL-3.0. Drawing and texts are this package's.

    Args:
        endings: which endings are played: names such as `KQvK` (the side that moves first has king and queen) or groups
            of them, `won`, `hard`, `open` or `all`, with commas between.
        **kwargs: of `MultiVLEnv`.
    """

    zero_sum: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    named_players: ClassVar[tuple[str, ...]] = (*PLAYERS, *LEVELS)
    prompt = game_prompt("You are playing chess.")

    def __init__(self, *, endings: str = "won", **kwargs: Any) -> None:
        self.endings = read_endings(endings)
        super().__init__(**kwargs)
        others = [player for seat, player in enumerate(self._players) if seat != self.seat]
        if any(isinstance(player, str) and player != "random" for player in others):
            find_stockfish()

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.first = 0
        self.ending = self.endings[int(rng.integers(len(self.endings)))]
        self.board = draw_position(self.ending, rng)
        self.opens = self.board.turn
        self.result = ""

    def colour_of(self, seat: int) -> chess.Color:
        """White (`True`) or black."""
        return self.opens if seat == self.first else not self.opens

    def movers(self) -> tuple[int, ...]:
        return () if self.result else (self.first if self.board.turn == self.opens else 1 - self.first,)

    def moves(self, seat: int) -> list[str]:
        return sorted(move.uci() for move in self.board.legal_moves)

    def match_move(self, wanted: str, seat: int) -> str | None:
        """A move from square to square, or in standard algebraic notation, where upper case counts only if else two
        moves could be meant (`bxc3`, `Bxc3`)."""
        wanted = wanted.strip()
        if len(wanted) > LONGEST:
            return None
        legal = self.moves(seat)
        found = match_legal(wanted, legal)
        if found is not None:
            return found
        try:
            move = self.board.parse_san(wanted)
        except ValueError:
            named = {uci: self.board.san(chess.Move.from_uci(uci)) for uci in legal}
            plain = wanted.rstrip("+#").casefold()
            meant = [uci for uci, san in named.items() if san.rstrip("+#").casefold() == plain]
            return meant[0] if len(meant) == 1 else None
        return move.uci() if move.uci() in legal else None

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        ((seat, name),) = moves.items()
        self.board.push_uci(name)
        self.result = judge(self.board)
        paid = (0.0, 0.0)
        if self.result == "checkmate":
            paid = (1.0, -1.0) if seat == 0 else (-1.0, 1.0)
        return Round(paid, bool(self.result), feedback=self.result)

    def won(self, seat: int) -> bool:
        return self.result == "checkmate" and self.board.turn != self.colour_of(seat)

    def goal(self, seat: int) -> str:
        colour, way = ("white", "up") if self.colour_of(seat) else ("black", "down")
        return (
            f"You play {colour}; your pawns move {way} the board. It is an ending with few men: mate the other king. "
            "Stalemate, the third time of one position, fifty moves without a capture or a pawn's move, and a game of "
            f"{self.max_turns} turns are draws. A move is written from square to square, e2e4, and with the new man "
            "where a pawn is promoted, e7e8q; standard notation such as Qd5 is read, too."
        )

    def draw(self, seat: int) -> Image:
        canvas = Canvas(self.image_size)
        grid = Grid(canvas, 8, 8, (36, 27, 41))
        last = self.board.move_stack[-1] if self.board.move_stack else None
        for row in range(8):
            for column in range(8):
                square = chess.square(column, 7 - row)
                moved = last is not None and square in (last.from_square, last.to_square)
                plain, marked = ((_DARK, _DARK_MOVED), (_LIGHT, _LIGHT_MOVED))[(row + column) % 2 == 0]
                grid.fill(row, column, marked if moved else plain)
                man = self.board.piece_at(square)
                if man is not None:
                    x, y = grid.left + column * grid.side, grid.top + row * grid.side
                    draw_man(canvas, man.symbol().lower(), man.color == chess.WHITE, x, y, grid.side)
        canvas.box(36, 27, 328, 328, None, INK, 2)
        grid.name(COLUMNS, ROWS, 19)
        white = self.colour_of(seat) == chess.WHITE
        canvas.disc(118, 13, 8, WHITE if white else INK, INK, 2)
        canvas.text(f"You are {'white' if white else 'black'}", 134, 13, 18, anchor="lm")
        return canvas.finish()

    def tell(self, seat: int) -> str:
        return f"You play {'white' if self.colour_of(seat) else 'black'}. "

    def details(self, seat: int) -> dict[str, Any]:
        """The ending, and how the game ended (an empty text while it goes on, or where a limit ended it)."""
        return {"ending": self.ending, "result": self.result}

    def advise(self, seat: int) -> str | None:
        return self.ask_player("stockfish-3", seat)

    def search(self, seat: int) -> str | None:
        return self.ask_player("stockfish-1", seat)

    def ask_player(self, player: str, seat: int) -> str | None:
        if player not in LEVELS:
            return super().ask_player(player, seat)
        return STOCKFISH.choose(self.board, LEVELS[player]).uci()

    def explain(self, seat: int, action: str) -> str:
        men = sorted(
            (not man.color, -man.piece_type, chess.square_name(square), man.symbol().upper())
            for square, man in self.board.piece_map().items()
        )
        sides = [" ".join(name + square for black, _, square, name in men if black == side) for side in (False, True)]
        named = self.board.san(chess.Move.from_uci(action))
        return f"White has {sides[0]}, black has {sides[1]}; {named} is the strongest move I find"

    def mirror(self) -> None:
        self.first = 1 - self.first


def judge(board: chess.Board) -> str:
    """Return how the game has ended, in words; an empty text while it goes on."""
    if board.is_checkmate():
        return "checkmate"
    if board.is_stalemate():
        return "stalemate"
    if board.is_insufficient_material():
        return "insufficient material"
    if board.is_repetition(3):
        return "threefold repetition"
    return "fifty moves" if board.is_fifty_moves() else ""
