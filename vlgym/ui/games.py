"""Games on the page: each is an evaluation of the policy `human` in a worker process.

A plugin's code runs there alone. A lost worker is replaced, and its episode goes on; where that
fails, the game ends with a message and the page goes on.
"""

import re
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..env_groups import EnvGroup, open_group
from ..errors import UserError, plain_line
from ..evaluation.episodes import end_reply
from ..evaluation.folder import EvaluationFolder, describe_evaluation
from ..evaluation.plan import Part, plan_ids
from ..evaluation.run import Prices
from ..files import new_folder
from ..play.controls import list_pictures
from ..play.human import HumanPolicy, complete_reply
from ..play.policies import OraclePolicy
from ..play.rollout import Runner
from ..registry.making import unwrap
from ..reports.turns import ShownTurn
from ..types import Image, Reply, StepRecord, Turn


class PageGame:
    """One game, between two replies. Its methods are called with its `lock`.

    Attributes:
        turn: the policy's input; `None` at the end of an episode.
        format: how a reply is read.
        pictures: of the prompt; at the end of an episode its last one.
        oracle: the oracle's reply at this turn, once it was asked.
        count: moves so far; a form that was made before the last one does not count.
        records: of the episode that is open, or has just ended.
    """

    def __init__(self, key: str, part: Part, out: Path, group: EnvGroup) -> None:
        self.key, self.part, self.out = key, part, out
        self.turn: Turn | None = None
        self.info: dict[str, Any] = {}
        self.legal: list[str] = []
        self.pictures: list[Image] = []
        self.records: list[StepRecord] = []
        self.wins: list[bool] = []
        self.oracle, self.count, self.error, self.format, self.clicks = "", 0, "", "", False
        self.lock = threading.Lock()
        self._group, self._resources = group, ExitStack()

    @property
    def over(self) -> bool:
        return len(self.wins) == self.part.episodes

    @property
    def before(self) -> ShownTurn | None:
        return ShownTurn(len(self.records) - 1, self.records[-1]) if self.records else None

    def begin(self) -> None:
        """Open the folder of the records, and begin the first episode."""
        plan, policy = [self.part], HumanPolicy(self.out)
        run = describe_evaluation(plan, policy, builders={}, prices=Prices().to_dict(), group=self._group)
        session = {"command": "vlgym ui", "started": datetime.now(UTC).isoformat(timespec="seconds")}
        folder = EvaluationFolder(self.out, run, session=session, resume=False)
        self._folder = self._resources.enter_context(folder)
        self._env = self.part.make(group=self._group)
        self._resources.callback(self._env.close)
        self.begin_episode()

    def begin_episode(self) -> None:
        split, key = self.part.split, self.part.key
        self._runner = Runner([self._env], split=split, first_episode=len(self.wins), episodes=1, part=key)
        self.records = []
        self._look()

    def click(self, x: int, y: int) -> None:
        """Step with a click on the newest picture, in its pixels."""
        height, width = self.pictures[-1].shape[:2]
        env = unwrap(self._env)
        action = env.point_action(min(x, width - 1) / width, min(y, height - 1) / height)
        if action is not None:
            self.answer(env.parser.format([action]))

    def answer(self, move: str | int) -> None:
        """Step with a reply, or with the number of a legal action."""
        env: Any = unwrap(self._env)
        text = env.parser.format([self.legal[move]]) if isinstance(move, int) else complete_reply(env, move)
        reply, after = end_reply(env, Reply(text))
        (record,) = self._runner.advance([self.turn], [reply], HumanPolicy.name)  # type: ignore[list-item]
        record.after, record.final_messages = after, None
        self.records.append(record)
        if self._runner.done:
            self._folder.write(self.records)
            self.wins.append(record.success)
        self._look()

    def ask_oracle(self) -> None:
        if self.turn is not None and not self.oracle:
            self.oracle = OraclePolicy(fallback=True).reply([self.turn])[0].text

    def end(self) -> None:
        """End the worker and close the folder; what was finished is kept."""
        self._group.close()
        self._resources.close()
        with suppress(OSError):
            self.out.rmdir()  # where nothing was played

    def _look(self) -> None:
        (slot,), env = self._runner.slots, unwrap(self._env)
        self.turn, self.oracle, self.count = next(iter(self._runner.turns()), None), "", self.count + 1
        self.info, self.format = slot.info, env.parser.describe()
        self.legal, self.pictures, self.clicks = [], [slot.observation["image"]], False
        if self.turn is not None:
            self.legal, self.pictures = env.legal_actions(), list_pictures(self.turn.messages)
            self.clicks = env.point_action(0.0, 0.0) is not None


class PageGames:
    """Begins, keeps and ends games, each in a group of one worker. Several threads may use it."""

    def __init__(self, out: Path, workers: Callable[[], EnvGroup] = lambda: open_group("processes:1")) -> None:
        self.out, self.workers = out, workers
        self.open: dict[str, PageGame] = {}

    def begin(self, env_id: str, arguments: Mapping[str, Any], **plan: Any) -> PageGame:
        """Begin a game and wait for its first turn; `UserError` for a split that its card lacks."""
        (part,) = plan_ids([env_id], arguments=arguments, **plan)
        folder = new_folder(self.out, re.sub(r"[^\w-]", "-", env_id.split("/")[-1]))
        game = PageGame(secrets.token_hex(5), part, folder, self.workers())
        self.open[game.key] = game
        self.go_on(game, game.count, PageGame.begin)
        return game

    def go_on(self, game: PageGame, count: int, do: Callable[..., None], *arguments: Any) -> None:
        """Let a method of a game act, unless it has gone on since the form of `count`."""
        with game.lock:
            if game.error or count != game.count:
                return
            try:
                do(game, *arguments)
            except Exception as error:  # an environment may raise anything; the page shows it
                line = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                game.error = plain_line(line, 2000)
                game.end()

    def close(self, game: PageGame) -> None:
        """End a game, whatever it waits for."""
        self.open.pop(game.key, None)
        game.end()

    def close_all(self) -> None:
        for game in list(self.open.values()):
            self.close(game)
