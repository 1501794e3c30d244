"""Whole games for self-play, in which the model holds one seat or all of them.

An update plays its games to the end, so no game is open between updates. Every seat's turns are one
trajectory, paid as one seat's view of the game pays them (`vlgym.games.table.Table`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlgym.env.seeding import episode_seed
from vlgym.errors import UserError, check_options
from vlgym.files import make_folder
from vlgym.games.loop import Player, RunningGame, play_games
from vlgym.games.multi import MultiVLEnv
from vlgym.games.ratings import rate
from vlgym.games.several import open_table
from vlgym.games.standings import is_cooperative, write_tables
from vlgym.games.table import Table
from vlgym.games.tournament import Tournament
from vlgym.play.env_failures import EnvFailures, close_env
from vlgym.play.policies import OraclePolicy, RandomPolicy
from vlgym.types import Reply, StepRecord, Turn

from ..engine.engine import ModelPolicy
from ..runs.folder import load_tensors, save_tensors
from .collect import Environments, Followed, RewardOptions, Rows
from .state import Weights

MEMBERS = 5  # past models that are rated, at equal distances; all pairs play, so more take long
POOL_FOLDER = "pool"
CHECKPOINTS = 2  # that a run keeps (`save_checkpoint`)
OWN = {"random": RandomPolicy, "oracle": OraclePolicy}
ONE_SEAT = ("seat", "opponents")  # arguments of one seat's view; at a table every seat is open


def rate_pool(run: Any, games: GameCollector) -> None:
    """Let the model, past ones and the game's own players meet, and write tables to `rating/`.
    Games of more than two seats are left out. A rating that was stopped goes on."""
    config = run.config
    if not config.pool.rating_games:
        return
    seats = {table.game.title: table.game.seats for table in games.tables}
    for env_id in seats:
        if seats[env_id] != 2:
            run.log.say(f"rating: {env_id} is not a game of two, so its pool is not rated")
            continue

        # The players: the model now, at earlier updates, and those that the game brings.
        generator = torch.Generator().manual_seed(config.seed)
        policy = ModelPolicy(run.weights.engine, generator, name="rated")
        updates = [member["update"] for member in games.pool.members]
        steps = min(MEMBERS, len(updates))
        places = sorted({round(i * (len(updates) - 1) / max(1, steps - 1)) for i in range(steps)})
        members = [Past(games.pool, at, policy) for at in (None, *(updates[place] for place in places))]
        players: dict[str, Player] = {each.name: each for each in members}
        for name in ("random", *config.pool.names()):
            players[name] = OWN[name]() if name in OWN else name
        folder = run.out / "rating" / f"update-{run.state.update:06d}" / env_id.split("/")[-1]
        tournament = Tournament(
            env_id, players, config.pool.rating_games, folder, arguments=games.arguments,
            resume=(folder / "results.jsonl").exists(),
        )  # fmt: skip

        with run.log.counting(f"rating {env_id.split('/')[-1]}", tournament.total) as advance:
            results = tournament.play(lambda _: advance())
        ratings = rate(results)
        write_tables(folder, f"{run.title}: rating", results, ratings)
        scores = "both seats are paid the same; mean returns of the pairs:"
        if not is_cooperative(results):
            each = (f"{rating.name} {rating.rating:+.0f} [{rating.interval}]" for rating in ratings)
            scores = f"{', '.join(each)};"
        run.log.say(f"rating: {scores} {folder / 'table.md'}")


@dataclass(frozen=True)
class PoolOptions:
    """Opponents of self-play; if none is drawn, the current model holds every seat."""

    past: float = 0.3
    """Share of games in which one seat learns and a past model holds the others."""
    fixed: float = 0.2
    """Share of games in which one seat learns and a player of the game holds the others."""
    players: str = "random"
    """The game's players for that: random, oracle, search or others, with commas between."""
    every: int = 10
    """Updates between the models that join the pool; the first joins before the first update."""
    size: int = 10
    """Models that the pool holds. Beyond it the oldest leaves, but not the first."""
    share_reward: bool = False
    """Pay every seat the mean of all seats' rewards, for games that are to be played together."""
    rating_games: int = 5
    """Seeds of each pair, each played from both seats, in the final rating; 0 for no rating."""

    def validate(self) -> None:
        """Raise `UserError` for a value out of its range."""
        check_options(self, "past", "fixed", group="pool.", least=0, most=1)
        if self.past + self.fixed > 1:
            shares = f"--pool.past {self.past:g} and --pool.fixed {self.fixed:g}"
            raise UserError(f"{shares} are shares of the same games; together they may be 1 at most.")
        check_options(self, "every", group="pool.", least=1, most=10**9)
        check_options(self, "size", group="pool.", least=1, most=1000)
        check_options(self, "rating_games", group="pool.", least=0, most=10**6)

    def names(self) -> list[str]:
        """The game's players."""
        return [name.strip() for name in self.players.split(",")]


class Pool:
    """Models of earlier updates."""

    def __init__(self, folder: Path, weights: Weights, options: PoolOptions, device: str) -> None:
        self.folder, self.weights, self.options, self.device = folder, weights, options, device
        self.members: list[dict[str, Any]] = []  # update, file's size and checksum; oldest first
        self._left: dict[int, int] = {}  # who left -> checkpoints since then
        self._loaded: dict[int, dict[str, Tensor]] = {}
        named = {id(parameter): name for name, parameter in weights.family.model.named_parameters()}
        self._own = {named[id(parameter)]: parameter for parameter in weights.parameters}

    def see(self, update: int) -> None:
        """Take the model in before an update (from 1), if it is its turn."""
        if (update - 1) % self.options.every:
            return

        make_folder(self.folder)
        tensors = {name: parameter.detach().clone().cpu() for name, parameter in self._own.items()}
        file = save_tensors(self._file(update - 1), tensors)
        self.members.append({"update": update - 1, "file": file})
        if len(self.members) > self.options.size:
            self._left[self.members.pop(min(1, len(self.members) - 2))["update"]] = 0

        # A checkpoint may name a member that left since; when none does, its file goes.
        for update, saves in list(self._left.items()):
            if saves >= CHECKPOINTS:
                self._file(update).unlink(missing_ok=True)
                del self._left[update]

    @contextmanager
    def playing(self, update: int) -> Iterator[None]:
        """Give the run's engines a member's weights while the block runs."""
        (member,) = [each for each in self.members if each["update"] == update]
        if update not in self._loaded:
            self._loaded = dict(list(self._loaded.items())[-1:])  # a game of two swaps them
            self._loaded[update] = load_tensors(self._file(update), member["file"], self.device)
        now = {name: parameter.detach().clone() for name, parameter in self._own.items()}
        self._put(self._loaded[update])
        try:
            yield
        finally:
            self._put(now)

    @torch.no_grad()
    def _put(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self._own.items():
            parameter.copy_(tensors[name])

    def _file(self, update: int) -> Path:
        return self.folder / f"update-{update:06d}.safetensors"

    def get_state(self) -> list[dict[str, Any]]:
        """Return its members as JSON-able data, for a checkpoint."""
        self._left = {update: saves + 1 for update, saves in self._left.items()}
        return [dict(member) for member in self.members]

    def set_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore `get_state`; files of a future that was lost are deleted."""
        self.members = [dict(member) for member in state]
        known = {self._file(member["update"]) for member in self.members}
        for path in self.folder.glob("update-*.safetensors"):
            if path not in known:
                path.unlink()


class Past:
    """A member of the pool as a policy: the model after `update` updates, None for it now."""

    def __init__(self, pool: Pool, update: int | None, policy: ModelPolicy) -> None:
        self.pool, self.update, self.policy = pool, update, policy
        self.name = "the model" if update is None else f"after {update} updates"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer each prompt."""
        if self.update is None:
            return self.policy.reply(turns)
        with self.pool.playing(self.update):
            return self.policy.reply(turns)


class GameCollector(Followed):
    """Plays whole games at several tables; a `UserError` where an environment is for one agent."""

    def __init__(
        self, envs: Environments, policy: ModelPolicy, pool: Pool, *, shaping: RewardOptions, seed: int
    ) -> None:
        if envs.world.size > 1:
            raise UserError("self-play runs in one process; start it without torchrun.")
        self.envs, self.policy, self.pool = envs, policy, pool
        self.arguments = {name: x for name, x in envs.kwargs.items() if name not in ONE_SEAT}
        self.tables = [self._open(index) for index in range(envs.count)]
        for table in self.tables:
            for name in pool.options.names():
                table.game.check_player("--pool.players", name)
        self.seats = max(table.game.seats for table in self.tables)
        self.shaping = shaping
        self.rng = np.random.default_rng([seed, 3])
        self.next = 0  # number of the next game
        self._failures = EnvFailures(envs.failures.append)

    def _open(self, index: int) -> Table:
        table = open_table(self.envs.ids[index % len(self.envs.ids)], **self.arguments)
        table.builder = self.envs.builder or table.builder
        table.shares = self.pool.options.share_reward
        return table

    def play(self, update: int, steps: int) -> list[list[StepRecord]]:
        """Play games until each table has `steps` turns of learning seats; return those by seat."""
        self.pool.see(update)
        member = self.pool.members[int(self.rng.integers(len(self.pool.members)))]["update"]
        now, past = Past(self.pool, None, self.policy), Past(self.pool, member, self.policy)
        done: list[list[StepRecord]] = []
        taken = [0] * len(self.tables)

        def begin(index: int) -> RunningGame | None:
            return self._begin(index, now, past) if taken[index] < steps else None

        for game in play_games(len(self.tables), begin):
            index = self.tables.index(game.table)
            if game.error is not None:
                self._replace(index, game.error, game.number, game.table.seed or 0)
                continue
            self._failures.end_row(index)
            for seat, records in game.records.items():
                done.append(records)
                taken[index] += len(records)
                if self.recorder is not None:
                    for record in records:
                        self.recorder.see([(index * self.seats + seat, record)])
        return done

    def _begin(self, index: int, now: Past, past: Past) -> RunningGame:
        """Begin a table's next game; one that cannot begin is left for the next."""
        while True:
            table, number = self.tables[index], self.next
            self.next += 1
            seed = episode_seed(table.game.title, "train", number)
            players, kind = self._seat_players(table.game, now, past)
            learning = [seat for seat, player in enumerate(players) if player is now]
            try:
                table.remembers = {at for at, player in enumerate(players) if not isinstance(player, str)}
                table.reset(seed=seed)
            except Exception as error:
                self._replace(index, error, number, seed)
                continue
            parts = {seat: f"{kind}, seat {seat}" for seat in learning}
            return RunningGame(table, number, players, parts)

    def _seat_players(self, game: MultiVLEnv, now: Past, past: Past) -> tuple[list[Player], str]:
        """Draw who plays, and name the kind of the model's opponents."""
        draw, own = float(self.rng.random()), int(self.rng.integers(game.seats))
        options = self.pool.options
        name = options.names()[int(self.rng.integers(len(options.names())))]
        other: Player
        other, kind = now, "itself"
        if draw < options.past:
            other, kind = past, "past"
        elif draw < options.past + options.fixed:
            other, kind = name, "fixed"
        return [now if seat == own else other for seat in range(game.seats)], kind

    def _replace(self, index: int, error: Exception, number: int, seed: int) -> None:
        game = self.tables[index].game
        self._failures.note(index, error, game, env_id=game.title, episode=number, seed=seed)
        self.tables[index] = self._open(index)

    def values_after(self, rows: Rows, value: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """As `Followed` does; between games no observation waits, so its value is 0."""
        _, final = super().values_after(rows, value)
        return final.new_zeros(1), final

    def get_state(self) -> dict[str, Any]:
        """JSON-able state; between updates no game is open."""
        return {"next": self.next, "rng": self.rng.bit_generator.state, "pool": self.pool.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore `get_state`."""
        self.next = state["next"]
        self.rng.bit_generator.state = state["rng"]
        self.pool.set_state(state["pool"])

    def close(self) -> None:
        """Close every game."""
        for table in self.tables:
            close_env(table.game)
