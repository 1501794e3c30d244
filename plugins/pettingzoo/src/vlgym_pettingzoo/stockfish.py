"""Stockfish as players of three strengths, by python-chess: one engine for all games of a process, asked move by move.

The engine is a program of its own (Debian: `stockfish`); it is started when a move is first asked for, and ended when
the last game that asked is closed, or with this process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import subprocess
import threading
import weakref
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

import chess
import chess.engine

from vlgym.errors import UserError

T = TypeVar("T")
LEVELS = {"stockfish-1": 300, "stockfish-2": 3_000, "stockfish-3": 20_000}
"""Positions (nodes) that the engine looks at for a move, of each player."""

HASH_MIB = 4
PATIENCE = 60.0
"""Seconds after which an engine that does not answer is ended. 20,000 nodes take about 0.03 s."""


def find_stockfish() -> str:
    """Return the program's path. Debian puts it into `/usr/games`, which is not on every PATH.

    Raises:
        UserError: it is not installed.
    """
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/games"))
    path = shutil.which("stockfish", path=places)
    if path is None:
        raise UserError(
            "This player is Stockfish, which is not installed: apt-get install stockfish. Without it the game can be "
            "played against opponents='random' or a policy."
        )
    return path


class Engine:
    """One running program, with an event loop in a thread of its own (`chess.engine.SimpleEngine` has one that keeps
    Python from ending)."""

    def __init__(self) -> None:
        path = find_stockfish()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stockfish", daemon=True)
        self._thread.start()
        try:
            self._transport, self._protocol = self._wait(chess.engine.popen_uci(path, stderr=subprocess.DEVNULL))
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            raise
        self.pid: int = self._transport.get_pid()
        settings = {"Threads": 1, "Hash": HASH_MIB, "Use NNUE": False}
        self._wait(self._protocol.configure({k: v for k, v in settings.items() if k in self._protocol.options}))

    def play(self, board: chess.Board, nodes: int) -> chess.Move:
        """Return a legal move, found with an empty table.

        Raises:
            chess.engine.EngineError: the program ended, or answered something else.
            TimeoutError: it did not answer.
        """
        limit = chess.engine.Limit(nodes=nodes)
        move = self._wait(self._protocol.play(board, limit, game=object())).move  # another game each time: ucinewgame
        if move is None or not board.is_legal(move):
            raise chess.engine.EngineError(f"Stockfish answered {move} in {board.fen()}")
        return move

    def end(self) -> None:
        """End the program and the thread; nothing of either is left."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()
        self._wait(self._gone())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _gone(self) -> None:
        await asyncio.shield(self._protocol.returncode)
        self._transport.close()

    def _wait(self, doing: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(PATIENCE)


class Stockfish:
    """The engine of this process, and the games that use it.

    One thread, a table of `HASH_MIB` that is cleared before each search, and a fixed number of nodes: the same version
    of the engine gives the same answer for the same game so far. Where the engine has the choice (15.1 has), it
    evaluates by rules: those know what few men can do, and mate with fewer nodes than its network.
    """

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._parents: list[Engine] = []
        self.search = lru_cache(maxsize=20_000)(self._search)

    def choose(self, user: object, board: chess.Board, nodes: int) -> chess.Move:
        """Return the engine's move.

        Args:
            user: the game that asks; it says `leave` when it is closed.
            board: the position and the moves that led to it; somebody can move.
            nodes: positions to look at, at least 1.

        Raises:
            UserError: Stockfish is not installed.
            chess.engine.EngineError: it failed twice.
        """
        with self._lock:
            self._users.add(user)
            moves = tuple(move.uci() for move in board.move_stack)
            return self.search(board.root().fen(), moves, nodes)

    def leave(self, user: object) -> None:
        """Forget a game; end the engine where no other uses it."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self.end()

    def end(self) -> None:
        """End the engine, if it runs; the next question starts another."""
        with self._lock:
            engine, self.engine = self.engine, None
            if engine is not None:
                engine.end()

    def _search(self, root: str, moves: tuple[str, ...], nodes: int) -> chess.Move:
        board = chess.Board(root)
        for move in moves:
            board.push_uci(move)
        try:
            return self._start().play(board, nodes)
        except (chess.engine.EngineError, TimeoutError):  # it died or hangs: once more, with a fresh one
            self.end()
            return self._start().play(board, nodes)

    def _start(self) -> Engine:
        self.engine = self.engine or Engine()
        return self.engine

    def begin_in_child(self) -> None:
        """After a fork: the engine is the parent's. It is kept, as the garbage collector would end it."""
        if self.engine is not None:
            self._parents.append(self.engine)
        self.engine, self._users, self._lock = None, weakref.WeakSet(), threading.RLock()


STOCKFISH = Stockfish()
"""The engine of this process."""

atexit.register(STOCKFISH.end)
os.register_at_fork(after_in_child=STOCKFISH.begin_in_child)
