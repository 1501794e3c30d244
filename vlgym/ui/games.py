"""The games that are played on the page, each in a separate process (`vlgym.ui.game_process`).

A plugin's code runs there alone. A game that hangs, ends or writes nonsense ends with a message; the page goes on.
"""

from __future__ import annotations

import re
import secrets
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..env.rendering import encode_png
from ..env_groups.processes import ProcessLink
from ..env_groups.wire import NonsenseError, pack
from ..env_groups.workers import LIMIT, LostError
from ..errors import plain_line
from ..files import new_folder

MODULE = "vlgym.ui.game_process"
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
        link: to the process.
        now: what the process said last of a turn or an episode's end.
        oracle: what the oracle would write at this turn, where it was asked.
        count: how often the process went on; a form that was made before does not count.
    """

    key: str
    settings: dict[str, Any]
    link: ProcessLink
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
        try:
            return encode_png(self.now["pictures"][number])
        except (LookupError, TypeError, ValueError, AttributeError):
            return None


class Games:
    """Begins, keeps and ends games. May be used by several threads.

    Args:
        out: folder for their records.
        policies: that may hold other seats, in addition to those that need nothing but their name.
        command: what is run; a test may give another one.
        limit: seconds for an answer.
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
        frame = pack(settings)
        game = Game(secrets.token_hex(5), settings, ProcessLink(0, self.command))
        self.open[game.key] = game
        with game.lock:
            self._ask(game, frame)
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
            at_end = game.now.get("kind") == "episode"
            if not game.error and not game.over and count == game.count and at_end == ("next" in said):
                self._ask(game, pack(dict(said)))

    def close(self, game: Game) -> None:
        """End a game; what was finished is kept."""
        self.open.pop(game.key, None)
        game.link.finish()
        game.link.end()

    def close_all(self) -> None:
        """End all games."""
        games = list(self.open.values())
        for game in games:
            game.link.finish()
        for game in games:
            self.close(game)

    def _ask(self, game: Game, frame: bytes) -> None:
        """Tell the process something and take its next answer."""
        game.link.send(frame)
        try:
            answer = game.link.receive(self.limit)
            kind = answer["kind"]
        except (LostError, NonsenseError, LookupError, TypeError) as error:
            kind, answer = "error", {"line": f"The game's process is lost: {error}."}
        if kind == "oracle":
            game.oracle, game.asked_oracle = answer.get("reply"), True
        elif kind == "error":
            game.error = plain_line(str(answer.get("line")), 2000)
            game.link.end()
            with suppress(OSError):
                game.folder.rmdir()  # where nothing was played
        else:
            game.now, game.oracle, game.asked_oracle, game.count = answer, None, False, game.count + 1
            if kind == "episode":
                game.results.append(answer)
                game.over = len(game.results) == game.settings["episodes"]
