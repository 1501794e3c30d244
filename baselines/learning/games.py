"""Self-play: whole games in which the model holds one seat or all of them, and every turn of its seats is data.

An update plays its games to the end, so no game is open between updates, and every seat's turns are one trajectory,
paid as one seat's view of the game pays them (`vlgym.MultiVLEnv`): what a seat earns while others move belongs to its
last turn, and a gain of a move that stood for an unreadable reply is not paid.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vlgym.env_failures import EnvFailures, close_env
from vlgym.errors import UserError
from vlgym.multi import MultiVLEnv
from vlgym.seeding import episode_seed
from vlgym.several import open_table
from vlgym.table import Reading, Table
from vlgym.types import Parsed, Reply, StepRecord, Turn

from ..engine.engine import ModelPolicy
from .environments import Environments
from .pool import Past, Pool
from .recording import EpisodeRecorder
from .rewards import RewardShaper

MODEL = -1
"""Holder of a seat that learns."""

Place = tuple[int, int]
"""A table and a seat at it."""

ONE_SEAT = ("seat", "opponents")
"""Arguments of an environment that are of one seat's view; at a table every seat is open."""


@dataclass
class Game:
    """One game that is being played.

    Attributes:
        number: of the game in the run; its seed follows from it.
        players: who holds each seat: `MODEL`, the update of a past model, or the name of a player of the game.
        records: turns of each seat that learns.
        early: what a seat earned before its first turn.
    """

    number: int
    players: list[int | str]
    records: dict[int, list[StepRecord]] = field(default_factory=dict)
    early: dict[int, float] = field(default_factory=dict)


class Games:
    """Plays whole games at several tables, for a learner with a critic.

    Args:
        envs: the run's environments; each is a game of several agents.
        policy: the model being trained.
        pool: opponents.
        gamma: discount of the return by whose deviation rewards are normalised, where that is asked for.

    Attributes:
        recorder: is shown every record, where there is one.

    Raises:
        UserError: an environment is for one agent, or an argument is wrong.
    """

    recorder: EpisodeRecorder | None = None

    def __init__(
        self,
        envs: Environments,
        policy: ModelPolicy,
        pool: Pool,
        *,
        gamma: float,
    ) -> None:
        if envs.world.size > 1:
            raise UserError("self-play runs in one process; start it without torchrun.")
        self.envs, self.policy, self.pool = envs, policy, pool
        self.tables = [self._open(index) for index in range(envs.count)]
        for table in self.tables:
            for name in pool.options.names():
                table.game.check_player("--pool.players", name)
        self.seats = max(table.game.seats for table in self.tables)
        self.shaper = RewardShaper(envs.config.reward, 1, gamma)
        self.rng = np.random.default_rng([envs.config.seed, 3])
        self.next = 0  # number of the next game
        self._failures = EnvFailures(envs.failures.append)

    def _open(self, index: int) -> Table:
        kwargs = {name: value for name, value in self.envs.kwargs.items() if name not in ONE_SEAT}
        table = open_table(self.envs.ids[index % len(self.envs.ids)], **kwargs)
        table.builder = self.envs.builder or table.builder
        return table

    # ---- playing -----------------------------------------------------------------------------------------------------

    def play(self, update: int, steps: int) -> list[list[StepRecord]]:
        """Play whole games, at each table until `steps` turns have been taken there by seats that learn.

        Args:
            update: number of the update, from 1.
            steps: turns.

        Returns:
            the turns of each game's seats that learn, each in its order; the last ends the game.
        """
        self.pool.see(update)
        past = self.pool.members[int(self.rng.integers(len(self.pool.members)))]["update"]
        share = self.pool.options.past_share(update)
        done: list[list[StepRecord]] = []
        taken = [0] * len(self.tables)
        games = {index: self._begin(index, past, share) for index in range(len(self.tables))}
        while games:
            for index in self._play_round(games, past):
                ended = games.pop(index)
                for seat, records in ended.records.items():
                    done.append(records)
                    taken[index] += len(records)
                    if self.recorder is not None:
                        for record in records:
                            self.recorder.see([(index * self.seats + seat, record)])
                if taken[index] < steps:
                    games[index] = self._begin(index, past, share)
        return done

    def _begin(self, index: int, past: int, share: float) -> Game:
        """Begin a table's next game; one that cannot begin is left for the next."""
        while True:
            table, number = self.tables[index], self.next
            self.next += 1
            env_id = table.game.title
            seed = episode_seed(env_id, "train", number)
            players = self._seat_players(table.game, past, share)
            try:
                table.remembers = {seat for seat, player in enumerate(players) if isinstance(player, int)}
                table.reset(seed=seed)
                return Game(number, players)
            except Exception as error:
                self._replace(index, error, number, seed)

    def _seat_players(self, game: MultiVLEnv, past: int, share: float) -> list[int | str]:
        """Draw who plays: the model on every seat, or on one of them."""
        draw, own = float(self.rng.random()), int(self.rng.integers(game.seats))
        name = self.pool.options.names()[int(self.rng.integers(len(self.pool.options.names())))]
        other: int | str = past if draw < share else name if draw < share + self.pool.options.fixed else MODEL
        return [MODEL if seat == own else other for seat in range(game.seats)]

    def _play_round(self, games: Mapping[int, Game], past: int) -> list[int]:
        """One round at every table; return the tables whose game is over."""
        turns: dict[Place, Turn] = {}
        over = []
        for index, game in games.items():
            try:
                asked = [seat for seat in self.tables[index].movers if isinstance(game.players[seat], int)]
                turns |= {(index, seat): self.tables[index].turn(seat) for seat in asked}
            except Exception as error:
                over.append(self._give_up(index, game, error))
        turns = {place: turn for place, turn in turns.items() if place[0] not in over}
        replies = self._ask(Past(self.pool, None, self.policy), MODEL, games, turns)
        replies |= self._ask(Past(self.pool, past, self.policy), past, games, turns)
        for index, game in games.items():
            if index in over:
                continue
            try:
                if self._step(index, game, turns, replies):
                    over.append(index)
                    self._failures.end_row(index)
            except Exception as error:
                over.append(self._give_up(index, game, error))
        return over

    def _ask(
        self, policy: Past, player: int, games: Mapping[int, Game], turns: Mapping[Place, Turn]
    ) -> dict[Place, Reply]:
        """Ask one player for all its seats at once."""
        places = [(index, seat) for index, seat in turns if games[index].players[seat] == player]
        return dict(zip(places, policy.reply([turns[place] for place in places]), strict=True)) if places else {}

    def _step(self, index: int, game: Game, turns: Mapping[Place, Turn], replies: Mapping[Place, Reply]) -> bool:
        """One round of one game; return whether it is over."""
        table = self.tables[index]
        said = {seat: replies[index, seat].text for seat in table.movers if (index, seat) in replies}
        readings = {
            seat: table.read(seat, said[seat]) if seat in said else self._move(table, seat, str(game.players[seat]))
            for seat in table.movers
        }
        pictures = {seat: table.game.draw(seat) for seat in said if game.players[seat] == MODEL}
        paid = list(table.play(readings, said).rewards)
        if self.pool.options.share_reward:
            paid = [float(np.mean(paid))] * len(paid)
        for seat, picture in pictures.items():
            record = make_record(table, game, seat, turns[index, seat], picture, replies[index, seat])
            record.reward = game.early.pop(seat, 0.0)
            game.records.setdefault(seat, []).append(record)
        for seat, earned in enumerate(paid):
            if seat not in game.records:
                game.early[seat] = game.early.get(seat, 0.0) + earned
                continue
            record = game.records[seat][-1]
            forced = seat in pictures and record.invalid
            record.reward += min(earned, -table.game.invalid_penalty) if forced else earned
        if table.over:
            for seat, records in game.records.items():
                last = records[-1]
                last.terminated, last.truncated = table.terminated, table.truncated
                last.success = bool(table.game.won(seat)) and not (seat in pictures and last.invalid)
                last.final_messages = table.turn(seat).messages if last.truncated else None
        return table.over

    def _move(self, table: Table, seat: int, player: str) -> Reading:
        """The move of a player of the game."""
        action = table.game.ask_player(player, seat)
        if action is None:
            legal = table.game.moves(seat)
            action = legal[int(self.rng.integers(len(legal)))]
        return Reading(action, Parsed((action,)), None)

    def _give_up(self, index: int, game: Game, error: Exception) -> int:
        """Leave a game that failed, with its turns; return its table, which is new."""
        self._replace(index, error, game.number, self.tables[index].seed or 0)
        game.records.clear()
        return index

    def _replace(self, index: int, error: Exception, number: int, seed: int) -> None:
        game = self.tables[index].game
        self._failures.note(index, error, game, env_id=game.title, episode=number, seed=seed)
        self.tables[index] = self._open(index)

    def rewards(self, games: Sequence[Sequence[StepRecord]]) -> list[float]:
        """Rewards as training sees them, of one trajectory after the other. Call it once per rollout."""
        shaped: list[float] = []
        for game in games:
            for record in game:
                shaped += self.shaper.shape([record], [len(record.extra.ids)], [0])
        return shaped

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """JSON-able state; between updates no game is open."""
        return {
            "next": self.next,
            "rng": copy.deepcopy(self.rng.bit_generator.state),
            "pool": self.pool.get_state(),
            "shaper": self.shaper.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        self.next = state["next"]
        self.rng.bit_generator.state = copy.deepcopy(state["rng"])
        self.pool.set_state(state["pool"])
        self.shaper.set_state(state["shaper"])

    def close(self) -> None:
        """Close every game."""
        for table in self.tables:
            close_env(table.game)


def make_record(table: Table, game: Game, seat: int, turn: Turn, picture: Any, reply: Reply) -> StepRecord:
    """A turn that a seat has just taken; its reward is added later."""
    info = table.info(seat)
    details = info["vlgym"]
    others = [player for other, player in enumerate(game.players) if other != seat]
    kind = "fixed" if isinstance(others[0], str) else "itself" if others[0] == MODEL else "past"
    return StepRecord(
        env_id=table.game.title, episode=game.number, seed=turn.seed, turn=turn.turn, messages=turn.messages,
        image=np.asarray(picture), text=turn.text, reply=reply.text, actions=tuple(details["actions"]),
        parse=details["parse"], reward=0.0, terminated=False, truncated=False, invalid=info["invalid_action"],
        success=False, score=info.get("score"), cut=reply.cut, part=f"{kind}, seat {seat}", extra=reply.extra,
        span=details["span"],
    )  # fmt: skip
