"""The games that are played on the page: each in a process of its own, which is asked and answered by lines of JSON.

A plugin's code runs there alone. A game that hangs, ends or writes nonsense ends with a message; the page goes on.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..durable import new_folder
from ..errors import plain_line

MODULE = "vlgym.ui.game_process"
LIMIT = 120.0  # seconds for an answer: an engine or a browser may have to start
LARGEST = 64_000_000  # bytes of an answer


@dataclass
class Game:
    """One game, between two answers of its process.

    Attributes:
        key: in addresses.
        settings: what is played, as the process was told.
        now: what the process said last of a turn or an episode's end.
        oracle: what the oracle would write at this turn, where it was asked.
        count: how often the process went on; a form that was made before does not count.
    """

    key: str
    settings: dict[str, Any]
    process: subprocess.Popen[bytes]
    answers: queue.SimpleQueue[bytes]
    now: dict[str, Any] = field(default_factory=dict)
    oracle: str | None = None
    asked_oracle: bool = False
    count: int = 0
    error: str = ""
    over: bool = False
    results: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def folder(self) -> Path:
        """Where its records are."""
        return Path(self.settings["out"])

    def picture(self, number: int) -> bytes | None:
        """Return one of the pictures of the turn, or the last one of the episode; `None` where there is none."""
        held = self.now.get("pictures", [self.now.get("picture")])
        try:
            return base64.b64decode(held[number], validate=True)
        except (IndexError, TypeError, ValueError):
            return None


class Games:
    """Begins, keeps and ends games. May be used by several threads.

    Args:
        out: folder for their records.
        command: what is run; a test may give another one.
    """

    def __init__(
        self, out: Path, command: Sequence[str] = (sys.executable, "-m", MODULE), limit: float = LIMIT
    ) -> None:
        self.out, self.command, self.limit = out, tuple(command), limit
        self.open: dict[str, Game] = {}

    def begin(self, **settings: Any) -> Game:
        """Begin a game and wait for its first turn."""
        title = re.sub(r"[^\w-]", "-", settings["env_id"].split("/")[-1])
        settings["out"] = str(new_folder(self.out, title))
        process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(process, answers), daemon=True).start()
        game = Game(secrets.token_hex(5), settings, process, answers)
        self.open[game.key] = game
        with game.lock:
            self._tell(game, settings)
        return game

    def answer(self, game: Game, count: int, said: Mapping[str, Any]) -> None:
        """Pass on a reply (`{"reply": text}`, `{"action": number}`), ask the oracle (`{"oracle": True}`), or leave the
        end of an episode for the beginning of the next one (`{"next": True}`).

        Args:
            game: from `begin`.
            count: the game's `count` when the form was made; nothing happens where the game has gone on since.
            said: see above.
        """
        with game.lock:
            if game.error or game.over or count != game.count:
                return
            if game.now.get("kind") == "turn" and "next" not in said:
                self._tell(game, said)
            elif game.now.get("kind") == "episode" and "next" in said:
                self._hear(game)

    def close(self, game: Game) -> None:
        """End a game; what was finished is kept."""
        self.open.pop(game.key, None)
        _end(game.process)

    def close_all(self) -> None:
        """End all games."""
        for game in list(self.open.values()):
            self.close(game)

    def _tell(self, game: Game, said: Mapping[str, Any]) -> None:
        with suppress(OSError, ValueError):  # it has ended, or its pipe is closed; what it said last tells why
            pipe = cast(BinaryIO, game.process.stdin)
            pipe.write(json.dumps(dict(said)).encode() + b"\n")
            pipe.flush()
        self._hear(game)

    def _hear(self, game: Game) -> None:
        """Take the process's next answer."""
        try:
            line = game.answers.get(timeout=self.limit)
            said = json.loads(line) if line else {"kind": "error", "line": "The game's process has ended."}
            kind = said["kind"]
        except queue.Empty:
            return self._fail(game, f"The environment did not answer within {self.limit:g} s.")
        except (ValueError, KeyError, TypeError, RecursionError):
            return self._fail(game, "The game's process wrote something that is no answer.")
        if kind == "oracle":
            game.oracle, game.asked_oracle = said.get("reply"), True
        elif kind == "error":
            self._fail(game, str(said.get("line")))
        else:
            game.now, game.oracle, game.asked_oracle, game.count = said, None, False, game.count + 1
            if kind == "episode":
                game.results.append(said)
                if len(game.results) == game.settings["episodes"]:
                    game.over = True
        return None

    def _fail(self, game: Game, line: str) -> None:
        game.error = plain_line(line, 2000)
        _end(game.process)
        with suppress(OSError):
            game.folder.rmdir()  # where nothing was played


def _listen(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    """Pass on what a process writes, line by line; nothing at its end, or where a line is too long."""
    with cast(BinaryIO, process.stdout) as pipe:
        while (line := pipe.readline(LARGEST)).endswith(b"\n"):
            answers.put(line)
    answers.put(b"")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process: at once by itself where it can (it closes what it opened), else by force."""
    with suppress(OSError):
        cast(BinaryIO, process.stdin).close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # with what it started: a browser, an engine
    process.wait()
