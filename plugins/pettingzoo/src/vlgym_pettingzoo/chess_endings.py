"""Chess endings against Stockfish, a program that speaks UCI; a process has one."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import chess
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFilter

from vlgym.errors import UserError, check_choice
from vlgym.games.multi import PLAYERS, Round
from vlgym.parsers import match_legal

from .base import INK, WHITE, Canvas, Grid, PaintedGame, game_prompt

LEVELS = {"stockfish-1": 300, "stockfish-2": 3_000, "stockfish-3": 20_000}  # nodes for a move
SETTINGS = {"Threads": "1", "Hash": "4", "Use NNUE": "false"}
PATIENCE = 60.0  # seconds for an answer; 20,000 nodes take about 0.03 s


def find_stockfish() -> str:
    """Return the program's path. Debian puts it into `/usr/games`, which is not on every PATH."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/games"))
    path = shutil.which("stockfish", path=places)
    if path is None:
        raise UserError(
            "This player is Stockfish, which is not installed: apt-get install stockfish. "
            "Without it the game can be played against opponents='random' or a policy."
        )
    return path


class EngineError(RuntimeError):
    """The engine ended, did not answer in time, or answered what is no legal move."""


class Stockfish:
    """The engine of this process; one version answers the same for the same game so far.

    It has one thread, a fixed number of nodes, and clears its table before each search. Where it
    has the choice (15.1 has), it evaluates by rules, which mate with fewer nodes than its network.
    """

    def __init__(self) -> None:
        self.search = lru_cache(maxsize=20_000)(self._search)
        self.begin_in_child()

    def begin_in_child(self) -> None:
        """Leave a running program to the parent process."""
        self.program: subprocess.Popen[str] | None = None
        self._lock = threading.RLock()

    def choose(self, board: chess.Board, nodes: int) -> chess.Move:
        moves = tuple(move.uci() for move in board.move_stack)
        with self._lock:
            return self.search(board.root().fen(), moves, nodes)

    def end(self) -> None:
        with self._lock:
            program, self.program = self.program, None
            if program is not None:
                program.kill()
                program.communicate()

    def _search(self, root: str, moves: tuple[str, ...], nodes: int) -> chess.Move:
        board = chess.Board(root)
        for move in moves:
            board.push_uci(move)
        for _ in range(2):  # where it dies or hangs: once more, with a fresh one
            try:
                program = self.program or self._start()
                _ask(program, "ucinewgame\nisready", "readyok")
                search = f"position fen {root} moves {' '.join(moves)}\ngo nodes {nodes}"
                answer = _ask(program, search, "bestmove")[-1].split()[1]
                if answer not in {move.uci() for move in board.legal_moves}:
                    raise EngineError(f"Stockfish answered {answer} in {board.fen()}")
                return chess.Move.from_uci(answer)
            except EngineError as error:
                self.end()
                failure = error
        raise failure

    def _start(self) -> subprocess.Popen[str]:
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        program = subprocess.Popen([find_stockfish()], stdin=pipe, stdout=pipe, stderr=quiet, text=True, bufsize=1)
        self.program = program

        # Settings that another version of the engine has not are left out.
        options = "".join(_ask(program, "uci", "uciok"))
        rows = [f"{name} value {value}" for name, value in SETTINGS.items() if f"option name {name} type" in options]
        _ask(program, "".join(f"setoption name {row}\n" for row in rows) + "isready", "readyok")
        return program


def _ask(program: subprocess.Popen[str], words: str, last: str) -> list[str]:
    """Return the lines of an answer, up to one that begins with `last`."""
    assert program.stdin is not None
    assert program.stdout is not None
    watch = threading.Timer(PATIENCE, program.kill)
    watch.start()
    lines: list[str] = []
    try:
        program.stdin.write(f"{words}\n")
        for answer in program.stdout:
            lines.append(answer)
            if answer.startswith(last):
                return lines
    except OSError as error:
        raise EngineError(f"Stockfish has ended: {error}") from error
    finally:
        watch.cancel()
    raise EngineError(f"Stockfish has ended, or did not answer within {PATIENCE:g} seconds")


STOCKFISH = Stockfish()
atexit.register(STOCKFISH.end)
os.register_at_fork(after_in_child=STOCKFISH.begin_in_child)

FINE = 6  # times larger a man is drawn before it is reduced, which smooths its edges
Points = tuple[tuple[float, float], ...]
Ball = tuple[float, float, float, float]

FOOT: Points = ((24, 82), (76, 82), (76, 93), (24, 93))
SHAPES: dict[str, tuple[Points, ...]] = {  # polygons on 100 x 100, from the top left
    "p": (((43, 44), (57, 44), (67, 84), (33, 84)), ((35, 46), (65, 46), (62, 53), (38, 53)), FOOT),
    "r": (
        ((24, 14), (37, 14), (37, 24), (44, 24), (44, 14), (56, 14), (56, 24), (63, 24), (63, 14), (76, 14), (76, 36),
         (67, 42), (67, 70), (73, 84), (27, 84), (33, 70), (33, 42), (24, 36)),
        FOOT,
    ),
    "n": (
        ((32, 84), (36, 68), (47, 54), (45, 50), (35, 55), (28, 63), (19, 60), (16, 50), (28, 33), (34, 24), (33, 9),
         (43, 18), (54, 18), (68, 30), (75, 50), (75, 84)),
        FOOT,
    ),
    "b": (((38, 60), (62, 60), (70, 84), (30, 84)), ((50, 14), (66, 34), (34, 34)), FOOT),
    "q": (((29, 84), (15, 30), (33, 56), (35, 20), (50, 52), (65, 20), (67, 56), (85, 30), (71, 84)), FOOT),
    "k": (
        ((46, 4), (54, 4), (54, 34), (46, 34)), ((37, 11), (63, 11), (63, 19), (37, 19)),
        ((30, 84), (17, 54), (20, 40), (32, 32), (43, 36), (50, 46), (57, 36), (68, 32), (80, 40), (83, 54), (70, 84)),
        FOOT,
    ),
}  # fmt: skip
BALLS: dict[str, tuple[Ball, ...]] = {
    "p": ((34, 16, 66, 48),),
    "b": ((44, 5, 56, 17), (32, 20, 68, 66)),
    "q": ((8, 20, 22, 34), (28, 8, 42, 22), (58, 8, 72, 22), (78, 20, 92, 34)),
}
LINES: dict[str, tuple[Points, ...]] = {
    "r": (((33, 42), (67, 42)), ((33, 70), (67, 70))),
    "n": (((38, 30), (40, 34)), ((22, 53), (25, 52))),
    "b": (((50, 30), (50, 52)), ((40, 41), (60, 41)), ((38, 66), (62, 66))),
    "q": (((27, 70), (73, 70)),),
    "k": (((27, 70), (73, 70)), ((50, 46), (50, 70))),
}


def draw_man(canvas: Canvas, kind: str, white: bool, x: float, y: float, side: float) -> None:
    """Draw a man, a key of `SHAPES`, on the square with this top left corner and side, in units."""
    corner = (round(x * canvas.scale), round(y * canvas.scale))
    body, edge, lines = _make_masks(kind, max(4, round(side * canvas.scale)))
    fill, line = (WHITE, INK) if white else (INK, WHITE)
    for colour, mask in ((line, edge), (fill, body), (line, lines)):
        canvas.picture.paste(colour, corner, mask)


@lru_cache(maxsize=64)
def _make_masks(kind: str, pixels: int) -> list[PILImage.Image]:
    """Return body, body with its edge, and lines, as masks of `pixels` squared."""
    size = pixels * FINE
    body, lines = PILImage.new("L", (size, size)), PILImage.new("L", (size, size))
    pen, scale = ImageDraw.Draw(body), size / 100
    for points in SHAPES[kind]:
        pen.polygon([(x * scale, y * scale) for x, y in points], 255)
    for ball in BALLS.get(kind, ()):
        pen.ellipse([place * scale for place in ball], 255)
    for points in LINES.get(kind, ()):
        ImageDraw.Draw(lines).line([(x * scale, y * scale) for x, y in points], 255, round(3 * scale))
    edge = body.filter(ImageFilter.MaxFilter(2 * max(1, round(2.2 * scale)) + 1))
    return [mask.resize((pixels, pixels), PILImage.Resampling.BOX) for mask in (body, edge, lines)]


WON = ("KQvK", "KRvK", "KPvK", "KBBvK", "KQvKR")  # but for rare positions; of KPvK none
HARD = ("KBNvK",)  # won as well, but mate may take more than 30 moves
OPEN = ("KRPvKR", "KRPvKRP", "KPPvKPP", "KQPvKQ")  # won or drawn, and some of them lost
GROUPS = {"won": WON, "hard": HARD, "open": OPEN, "all": (*WON, *HARD, *OPEN)}
Squares = NDArray[np.bool_]


def read_endings(names: str) -> tuple[str, ...]:
    """Return the endings of a list of names of `GROUPS` and endings with commas, each once."""
    endings: list[str] = []
    for name in map(str.strip, str(names).split(",")):
        check_choice("endings", name, (*GROUPS, *GROUPS["all"]))
        endings += GROUPS.get(name, (name,))
    return tuple(dict.fromkeys(endings))


def draw_position(ending: str, rng: np.random.Generator) -> chess.Board:
    """Return a legal position of an ending, in which its first side, white or black, is to move."""
    own, other = ending.split("v")
    men = [chess.Piece.from_symbol(symbol) for symbol in own + other.lower()]
    while True:
        squares = rng.choice(64, size=len(men), replace=False)
        board = chess.Board(None)
        for square, piece in zip(squares, men, strict=True):
            board.set_piece_at(int(square), piece)
        if _fits(board, ending):
            return board if rng.random() < 0.5 else board.mirror()


def _fits(board: chess.Board, ending: str) -> bool:
    """True if in a position with white to move nothing is attacked, and there is no mate in one."""
    if not board.is_valid() or board.is_check() or board.is_game_over():
        return False
    men = board.piece_map().items()
    if any(board.is_attacked_by(not piece.color, square) for square, piece in men):
        return False
    if ending == "KBBvK" and board.has_insufficient_material(chess.WHITE):  # bishops of one colour
        return False
    if ending == "KPvK":
        (pawn,), kings = board.pieces(chess.PAWN, True), (board.king(True), board.king(False))
        if not solve_pawn_ending()[0, pawn, *kings]:
            return False
    return not any(board.san(move).endswith("#") for move in board.legal_moves)


@lru_cache(maxsize=1)
def solve_pawn_ending() -> Squares:
    """Return where a white pawn and its king win against the black king: `[2, 64, 64, 64] bool`.

    The axes are who is to move (0: white) and the squares of pawn, white and black king, each from
    a1 along the rows. Solved backwards from safe promotions, as the table of Stockfish's classical
    evaluation (bitbase.cpp, 111,282 wins with the pawn on the files a to d), without fifty moves.
    """
    places = np.arange(64)
    column, row = places % 8, places // 8
    near = np.maximum(abs(column[:, None] - column), abs(row[:, None] - row)) == 1
    apart = ~near & (places[:, None] != places)
    wins: Squares = np.zeros((2, 64, 64, 64), bool)
    for pawn in range(55, 7, -1):
        # Positions that are legal, and won pushes: to a promotion, or to a won square ahead.
        hits = (row == pawn // 8 + 1) & (abs(column - pawn % 8) == 1)
        stands = apart & (places != pawn)[:, None] & (places != pawn)
        ahead = pawn + 8
        free = (places != ahead)[:, None] & (places != ahead)
        if pawn >= 48:
            pushes = free & (~near[ahead] | near[ahead][:, None])
        else:
            pushes = wins[1, ahead].copy()
            if pawn < 16:
                pushes |= free & wins[1, ahead + 8]

        # Moves of the kings, until no more positions are won.
        safe = apart & ~hits  # for the black king; on the pawn's square it takes it
        moves = _any(safe, near)
        while True:
            lost = stands & moves & ~_any(safe & ~wins[0, pawn], near)
            won = stands & ~hits & (pushes | _any(near, lost))
            if (won == wins[0, pawn]).all() and (lost == wins[1, pawn]).all():
                break
            wins[0, pawn], wins[1, pawn] = won, lost
    return wins


def _any(one: Squares, two: Squares) -> Squares:
    return one.astype(np.float32) @ two.astype(np.float32) > 0


LONGEST = 16  # characters of a move at most
# Light and dark squares, plain and of the last move.
_TINTS = (((240, 224, 192), (255, 222, 96)), ((181, 146, 104), (232, 186, 52)))


class ChessEndings(PaintedGame):
    """Chess endings: mate with the few men that are left, or hold the draw.

    Goal: mate the other king. Seat 0 has the first move, and in the endings of the default should
        win; whether it plays white or black is drawn. Seat 1 defends.
    Observation: the board with the names of its columns and rows, white at the bottom; the squares
        of the last move are yellow. The text tells your colour; it lists neither men nor moves.
    Actions: moves from square to square, `e2e4`, with the new man where a pawn is promoted, `e7e8q`
        (UCI). A move in standard algebraic notation, `Qd5+` or `e8=Q`, is read, too.
    Reward: +1 for mate, -1 for being mated, 0 for a draw.
    Endings: terminated by mate, stalemate, material with which nobody can mate, and, without a
        claim, the third time of one position and fifty moves of each without a capture or a pawn's
        move; truncated after 60 turns of a seat, a draw.
    Splits: train, val and test differ by seed: ending, position and colour.
    Oracle: a planner: Stockfish with 20,000 nodes a move (`stockfish-3`), one thread and an empty
        table. `stockfish-2` looks at 3,000 nodes, `stockfish-1`, which is also `search`, at 300.
    References: python-chess 1.11 (rules) and Stockfish (players), both GPL-3.0.

    Args:
        endings: names such as `KQvK` (the side that moves first has king and queen) or of groups,
            `won`, `hard`, `open` or `all`, with commas between.
    """

    zero_sum: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    named_players: ClassVar[tuple[str, ...]] = (*PLAYERS, *LEVELS)
    prompt = game_prompt("You are playing chess.", version=2)
    notation: ClassVar[str] = "every move of the rules, from square to square"

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
        """Return a move that is written from square to square or in standard algebraic notation.

        Upper case counts only if else two moves could be meant (`bxc3`, `Bxc3`).
        """
        wanted, legal = wanted.strip(), self.moves(seat)
        if len(wanted) > LONGEST:
            return None
        if (match := match_legal(wanted, legal)) is not None:
            return match

        # python-chess reads upper case exactly; without it a single move must fit.
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

    def paint(self, canvas: Canvas, seat: int) -> None:
        grid = Grid(canvas, 8, (36, 27, 41))
        last = self.board.move_stack[-1:]
        moved = {square for move in last for square in (move.from_square, move.to_square)}
        for square in chess.SQUARES_180:
            column, row = chess.square_file(square), 7 - chess.square_rank(square)
            grid.fill(row, column, _TINTS[(row + column) % 2][square in moved])
            if man := self.board.piece_at(square):
                x, y = grid.left + column * grid.side, grid.top + row * grid.side
                draw_man(canvas, man.symbol().lower(), man.color, x, y, grid.side)

        # White is always at the bottom; the bar says whose picture it is.
        canvas.box(36, 27, 328, 328, None, INK, 2)
        grid.name("abcdefgh", "87654321", 19)
        canvas.disc(52, 12.5, 8, WHITE if self.colour_of(seat) else INK, INK, 2)

    def bar(self, seat: int) -> tuple[float, str]:
        return 5, f"You are {chess.COLOR_NAMES[self.colour_of(seat)]}: "

    def tell(self, seat: int) -> str:
        return f"You play {chess.COLOR_NAMES[self.colour_of(seat)]}. "

    def details(self, seat: int) -> dict[str, Any]:
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
            (-man.piece_type, chess.square_name(square), man.symbol().upper(), man.color)
            for square, man in self.board.piece_map().items()
        )
        white, black = (" ".join(man + at for _, at, man, side in men if side == colour) for colour in chess.COLORS)
        move = self.board.san(chess.Move.from_uci(action))
        return f"White has {white}, black has {black}; {move} is the strongest move I find"

    def mirror(self) -> None:
        self.first = 1 - self.first


def judge(board: chess.Board) -> str:
    """Return how the game has ended, in words; an empty text while it goes on."""
    checks = {
        "checkmate": board.is_checkmate, "stalemate": board.is_stalemate,
        "insufficient material": board.is_insufficient_material,
        "threefold repetition": board.is_repetition, "fifty moves": board.is_fifty_moves,
    }  # fmt: skip
    return next((result for result, holds in checks.items() if holds()), "")
