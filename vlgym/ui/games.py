"""The games that are played on the page: each in a separate process, which is asked and answered by lines of JSON.

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
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from ..errors import plain_line
from ..files import new_folder

MODULE = "vlgym.ui.game_process"
LIMIT = 120.0  # seconds for an answer: an engine or a browser may have to start
LARGEST = 64_000_000  # bytes of an answer
HOT_SEAT = "me"
"""Stands for further people at the same screen, in place of a policy."""

Configured = Mapping[str, tuple[str, Mapping[str, Any]]]
"""Policies by name: each as `vlgym eval --policy` takes it, and its options."""


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
        """Folder of its records."""
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
        policies: that may hold other seats, in addition to those that need nothing but their name.
        command: what is run; a test may give another one.
    """

    def __init__(
        self,
        out: Path,
        policies: Configured | None = None,
        command: Sequence[str] = (sys.executable, "-m", MODULE),
        limit: float = LIMIT,
    ) -> None:
        self.out, self.policies, self.command, self.limit = out, dict(policies or {}), tuple(command), limit
        self.open: dict[str, Game] = {}

    def begin(self, **settings: Any) -> Game:
        """Begin a game and wait for its first turn."""
        title = re.sub(r"[^\w-]", "-", settings["env_id"].split("/")[-1])
        settings["out"] = str(new_folder(self.out, title))
        process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True, bufsize=0,
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
        _end([game.process])

    def close_all(self) -> None:
        """End all games at once."""
        _end([game.process for game in self.open.values()], grace=1)
        self.open.clear()

    def _tell(self, game: Game, said: Mapping[str, Any]) -> None:
        with suppress(OSError, ValueError):  # it has ended, or its pipe is closed; what it said last tells why
            data = memoryview(json.dumps(dict(said)).encode() + b"\n")
            while data:
                data = data[cast(BinaryIO, game.process.stdin).write(data) :]
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
        _end([game.process])
        with suppress(OSError):
            game.folder.rmdir()  # where nothing was played


def _listen(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    """Pass on what a process writes, line by line; nothing at its end, or where a line is too long."""
    with cast(BinaryIO, process.stdout) as pipe:
        while (line := pipe.readline(LARGEST)).endswith(b"\n"):
            answers.put(line)
    answers.put(b"")


def _end(processes: Sequence[subprocess.Popen[bytes]], grace: float = 5.0) -> None:
    """End processes: by themselves where they can within some seconds (they close what they opened), else by force."""
    for process in processes:
        with suppress(OSError):
            cast(BinaryIO, process.stdin).close()  # without a buffer: this waits for no writer
    until = time.monotonic() + grace
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, until - time.monotonic()))
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # with what it started: a browser, an engine
        process.wait()
