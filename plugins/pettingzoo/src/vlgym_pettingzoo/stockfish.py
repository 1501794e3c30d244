"""Stockfish as players of three strengths, by its text protocol UCI: one engine for all games of a process.

The engine is a program of its own (Debian: `stockfish`); it is started when a move is first asked for, and ended with
this process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import threading
from functools import lru_cache

import chess

from vlgym.errors import UserError

LEVELS = {"stockfish-1": 300, "stockfish-2": 3_000, "stockfish-3": 20_000}
"""Positions (nodes) that the engine looks at for a move, of each player."""

SETTINGS = {"Threads": "1", "Hash": "4", "Use NNUE": "false"}
PATIENCE = 60.0
"""Seconds after which an engine that does not answer is ended. 20,000 nodes take about 0.03 s."""


def find_stockfish() -> str:
    """Return the program's path. Debian puts it into `/usr/games`, which is not on every PATH."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/games"))
    path = shutil.which("stockfish", path=places)
    if path is None:
        raise UserError(
            "This player is Stockfish, which is not installed: apt-get install stockfish. Without it the game can be "
            "played against opponents='random' or a policy."
        )
    return path


class EngineError(RuntimeError):
    """The engine ended, did not answer in time, or answered what is no legal move."""


class Engine:
    """One running program."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._program = subprocess.Popen(
            [find_stockfish()], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )
        self.pid = self._program.pid
        told = "\n".join(self._ask("uci", "uciok"))
        for name, value in SETTINGS.items():
            if f"option name {name} type" in told:
                self._say(f"setoption name {name} value {value}")

    def play(self, board: chess.Board, nodes: int) -> chess.Move:
        """Return a legal move, found with an empty table."""
        moves = " ".join(move.uci() for move in board.move_stack)
        self._say("ucinewgame")
        self._ask("isready", "readyok")
        self._say(f"position fen {board.root().fen()}" + (f" moves {moves}" if moves else ""))
        answer = self._ask(f"go nodes {nodes}", "bestmove")[-1].split()[1]
        if answer not in {move.uci() for move in board.legal_moves}:
            raise EngineError(f"Stockfish answered {answer} in {board.fen()}")
        return chess.Move.from_uci(answer)

    def end(self) -> None:
        self._program.kill()
        self._program.communicate()

    def _say(self, line: str) -> None:
        assert self._program.stdin is not None
        try:
            self._program.stdin.write(f"{line}\n")
        except OSError as error:
            raise EngineError(f"Stockfish has ended: {error}") from error

    def _ask(self, line: str, last: str) -> list[str]:
        """Return the lines of an answer, up to one that begins with `last`."""
        assert self._program.stdout is not None
        watch = threading.Timer(PATIENCE, self._program.kill)
        watch.start()
        try:
            self._say(line)
            lines: list[str] = []
            while not (lines and lines[-1].startswith(last)):
                lines.append(self._program.stdout.readline())
                if not lines[-1]:
                    raise EngineError(f"Stockfish has ended, or did not answer within {PATIENCE:g} seconds")
            return lines
        finally:
            watch.cancel()


class Stockfish:
    """The engine of this process.

    One thread, a table that is cleared before each search, and a fixed number of nodes: the same version of the engine
    gives the same answer for the same game so far. Where the engine has the choice (15.1 has), it evaluates by rules:
    those know what few men can do, and mate with fewer nodes than its network.
    """

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self._lock = threading.RLock()
        self.search = lru_cache(maxsize=20_000)(self._search)

    def choose(self, board: chess.Board, nodes: int) -> chess.Move:
        """Return the engine's move."""
        with self._lock:
            return self.search(board.root().fen(), tuple(move.uci() for move in board.move_stack), nodes)

    def end(self) -> None:
        with self._lock:
            engine, self.engine = self.engine, None
            if engine is not None:
                engine.end()

    def _search(self, root: str, moves: tuple[str, ...], nodes: int) -> chess.Move:
        board = chess.Board(root)
        for move in moves:
            board.push_uci(move)
        for _ in range(2):  # where it dies or hangs: once more, with a fresh one
            try:
                self.engine = self.engine or Engine()
                return self.engine.play(board, nodes)
            except EngineError as error:
                self.end()
                failure = error
        raise failure

    def begin_in_child(self) -> None:
        self.engine, self._lock = None, threading.RLock()


STOCKFISH = Stockfish()
"""The engine of this process."""

atexit.register(STOCKFISH.end)
os.register_at_fork(after_in_child=STOCKFISH.begin_in_child)
