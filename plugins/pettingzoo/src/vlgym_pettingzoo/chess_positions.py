"""Positions of chess endings, drawn at random: which men, where they may stand, and which of them are won."""

from __future__ import annotations

from functools import lru_cache

import chess
import numpy as np
from numpy.typing import NDArray

from vlgym.errors import check_choice

WON = ("KQvK", "KRvK", "KPvK", "KBBvK", "KQvKR")
"""Endings that the side to move should win. With a pawn only won positions are drawn (`solve_pawn_ending`); the others
are won but for rare positions, by what is known of these endings."""

HARD = ("KBNvK",)
"""Won as well, but mate may take more than 30 moves."""

OPEN = ("KRPvKR", "KRPvKRP", "KPPvKPP", "KQPvKQ")
"""Endings that may be won or drawn, and some of them lost."""

GROUPS = {"won": WON, "hard": HARD, "open": OPEN, "all": (*WON, *HARD, *OPEN)}
TRIES = 100_000
Squares = NDArray[np.bool_]


def read_endings(names: str) -> tuple[str, ...]:
    """Return the endings that a text with commas between names of endings and of `GROUPS` names."""
    found: list[str] = []
    for name in str(names).split(","):
        check_choice("endings", name.strip(), (*GROUPS, *GROUPS["all"]))
        found += [each for each in GROUPS.get(name.strip(), (name.strip(),)) if each not in found]
    return tuple(found)


def draw_position(ending: str, rng: np.random.Generator) -> chess.Board:
    """Return a legal position in which the first side of an ending is to move: white or black, by chance.

    Nothing is in check or attacked, and there is no mate in one move, so the first move decides nothing by itself.

    Args:
        ending: one of `GROUPS["all"]`: the men of the side to move, `v`, those of the other.
        rng: a generator of the game's own.
    """
    own, other = ending.split("v")
    men = [chess.Piece.from_symbol(symbol) for symbol in own + other.lower()]
    for _ in range(TRIES):
        squares = rng.choice(64, size=len(men), replace=False)
        board = chess.Board(None)
        for square, piece in zip(squares, men, strict=True):
            board.set_piece_at(int(square), piece)
        if _fits(board, ending):
            return board if rng.random() < 0.5 else board.mirror()
    raise RuntimeError(f"no position of {ending} in {TRIES} tries")


def _fits(board: chess.Board, ending: str) -> bool:
    """Whether a position with white to move is a fair start."""
    if not board.is_valid() or board.is_check() or board.is_game_over():
        return False
    if any(board.is_attacked_by(not piece.color, square) for square, piece in board.piece_map().items()):
        return False
    if ending == "KBBvK" and board.has_insufficient_material(chess.WHITE):  # bishops of one colour
        return False
    if ending == "KPvK":
        (pawn,), (king, other) = board.pieces(chess.PAWN, True), (board.king(True), board.king(False))
        if not solve_pawn_ending()[0, pawn, king, other]:
            return False
    return not any(_mates(board, move) for move in board.legal_moves)


def _mates(board: chess.Board, move: chess.Move) -> bool:
    board.push(move)
    mate = board.is_checkmate()
    board.pop()
    return mate


@lru_cache(maxsize=1)
def solve_pawn_ending() -> Squares:
    """Return where a white pawn and its king win against the black king: `[2, 64, 64, 64] bool`, by who is to move (0:
    white), and the squares of the pawn, of the white and of the black king, each from a1 along the rows.

    Solved backwards from safe promotions. By the same rules Stockfish's classical evaluation had its table of this
    ending (bitbase.cpp, 111,282 wins with the pawn on the files a to d); fifty moves are not counted.
    """
    places = np.arange(64)
    column, row = places % 8, places // 8
    near = np.maximum(abs(column[:, None] - column), abs(row[:, None] - row)) == 1
    apart = ~near & (places[:, None] != places)
    wins: Squares = np.zeros((2, 64, 64, 64), bool)
    for pawn in range(55, 7, -1):
        hits = (row == pawn // 8 + 1) & (abs(column - pawn % 8) == 1)
        stands = apart & (places != pawn)[:, None] & (places != pawn)
        pushes = np.zeros((64, 64), bool)
        ahead = pawn + 8
        free = (places != ahead)[:, None] & (places != ahead)
        if pawn >= 48:
            pushes = free & (~near[ahead] | near[ahead][:, None])
        else:
            pushes = wins[1, ahead].copy()
            if pawn < 16:
                pushes |= free & wins[1, ahead + 8]
        safe = apart & ~hits  # where the black king may go; on the pawn's square it takes it
        moves = _any(safe, near)
        while True:
            lost = stands & moves & ~_any(safe & ~wins[0, pawn], near)
            won = stands & ~hits & (pushes | _any(near, lost))
            if (won == wins[0, pawn]).all() and (lost == wins[1, pawn]).all():
                break
            wins[0, pawn], wins[1, pawn] = won, lost
    return wins


def _any(one: Squares, two: Squares) -> Squares:
    """The product of two matrices of truth values."""
    return one.astype(np.float32) @ two.astype(np.float32) > 0
