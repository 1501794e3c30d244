"""Play all pairs of some players, each seed in every seating; one player alone holds all seats."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..env.seeding import episode_seed
from ..errors import TrajectoryError, UserError
from ..files import append_whole, is_cut, list_folder, make_folder, seal, unseal, write_whole
from ..play.trajectory import FORMAT, METADATA, TrajectoryWriter
from .loop import Game, Player, play_games
from .several import open_table
from .table import Table

RESULTS = "results.jsonl"
RECORDS = "games"
DRAW = 1e-9
"""Returns that differ by no more are equal."""


@dataclass(frozen=True)
class Result:
    """One game.

    Attributes:
        number: which seed of the split.
        seed: the seed itself.
        players: names of the policies, by seat.
        returns: of each seat.
        invalid: replies of each seat that could not be read or were illegal.
        turns: moves of all seats.
        truncated: whether a limit ended the game.
        moves: digest of all moves, which is the same for the same game.
    """

    number: int
    seed: int
    players: tuple[str, ...]
    returns: tuple[float, ...]
    invalid: tuple[int, ...]
    turns: int
    truncated: bool
    moves: str = ""

    def points(self, name: str) -> float:
        """Return a player's points: 1 if its seats earned more on average than the others, 1/2 if as much, else 0."""
        others = [paid for player, paid in zip(self.players, self.returns, strict=True) if player != name]
        gap = self.return_of(name) - float(np.mean(others)) if others else 0.0
        return 0.5 if abs(gap) <= DRAW else float(gap > 0)

    def return_of(self, name: str) -> float:
        """A player's mean return over its seats."""
        return float(np.mean([paid for player, paid in zip(self.players, self.returns, strict=True) if player == name]))


class Tournament:
    """Games of every pair of players, written down as they end.

    In a game of N seats one of a pair holds one seat and the other the rest: each holds each seat once. One player
    alone holds every seat.

    Args:
        env_id: a game of several agents.
        players: by name: policies, or names of the game's own players.
        games: seeds of each pair; each is played in every seating.
        out: folder for results and records.
        split: `train`, `val` or `test`.
        arguments: of the game's constructor.
        resume: go on with the tournament that the folder holds.

    Raises:
        UserError: the id is no game of several agents, it has no such player, or the folder holds something else.
    """

    def __init__(
        self,
        env_id: str,
        players: Mapping[str, Player],
        games: int,
        out: Path,
        *,
        split: str = "test",
        arguments: Mapping[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        self.table: Table = open_table(env_id, **(arguments or {}))
        spec = self.table.game.vlgym_spec
        for name, player in players.items():
            self.table.game.check_player(f"player {name}", player)
        if split not in spec.splits:
            raise UserError(f"{env_id} has no split {split!r}; it has {', '.join(spec.splits)}.")
        self.env_id, self.players, self.games, self.out, self.split = env_id, dict(players), games, out, split
        self.arguments = dict(arguments or {})
        self.seatings = list_seatings(list(players), self.table.game.seats)
        self._header = {
            "format": FORMAT, "kind": "tournament", "title": f"tournament {env_id}", "env_id": env_id, "split": split,
            "games": games, "players": list(players), "arguments": self.table.game.arguments,
            "policies": {name: each.describe() for name, each in players.items() if hasattr(each, "describe")},
        }  # fmt: skip
        self.results = self._open(resume)

    @property
    def total(self) -> int:
        """Number of games in all."""
        return self.games * len(self.seatings)

    def play(self, on_game: Callable[[Result], object] = lambda result: None) -> list[Result]:
        """Play the games that are left; return all results.

        Twice as many are open as the players answer turns at once (`concurrency`), at least 8: a player with free
        places then has games to answer, up to the last ones.
        """
        done = {(result.players, result.number) for result in self.results}
        left = iter([(n, names) for n in range(self.games) for names in self.seatings if (names, n) not in done])
        at_once = max(8, 2 * sum(getattr(player, "concurrency", 0) for player in self.players.values()))
        tables = [self.table]
        seats: dict[Game, tuple[str, ...]] = {}

        def begin(index: int) -> Game | None:
            number, names = next(left, (0, None))
            if names is None:
                return None
            if index == len(tables):
                tables.append(open_table(self.env_id, **self.arguments))
            game = self._begin(tables[index], number, names)
            seats[game] = names
            return game

        writer = TrajectoryWriter(self.out / RECORDS, self._header)
        for game in play_games(min(at_once, self.total), begin):
            if game.error is not None:
                raise game.error
            for seat in sorted(game.records):
                writer.write(game.records[seat])
            self.results.append(_result(game, seats.pop(game)))
            append_whole(self.out / RESULTS, json.dumps(seal(asdict(self.results[-1]))) + "\n")
            on_game(self.results[-1])
        writer.sync()
        return in_order(self.results)

    def _begin(self, table: Table, number: int, names: tuple[str, ...]) -> Game:
        seed = episode_seed(self.env_id, self.split, number)
        table.reset(seed=seed)
        for seat, space in enumerate(table.spaces):
            space.seed((seed + seat) % 2**31)
        players = [self.players[name] for name in names]
        parts = {seat: name_seat(names, seat) for seat in range(len(names))}
        return Game(table, number, players, parts, np.random.default_rng([seed, 1]))

    def _open(self, resume: bool) -> list[Result]:
        held = self.out / RESULTS
        if held.exists() and not resume:
            raise UserError(
                f"--out {self.out} holds a tournament already. Continue it with --resume, or choose another."
            )
        begun = held.exists()
        if not begun and list_folder(self.out):
            raise UserError(f"--out {self.out} is not empty; choose another folder.")
        self.out.mkdir(parents=True, exist_ok=True)
        try:
            make_folder(self.out / RECORDS)
            TrajectoryWriter(self.out / RECORDS, self._header)
        except TrajectoryError as error:
            raise UserError(f"--resume: {error}") from None
        if not begun:
            append_whole(held, "")
            return []
        found = read_results(self.out)
        write_whole(held, "".join(json.dumps(seal(asdict(each))) + "\n" for each in found))  # without half a line
        self._drop_records(found)
        return found

    def _drop_records(self, kept: Sequence[Result]) -> None:
        """Leave out records of a game that has no result: a kill came between the two."""
        path = self.out / RECORDS / METADATA
        if not path.exists():
            return
        known = {(each.number, name_seat(each.players, seat)) for each in kept for seat in range(len(each.players))}

        def belongs(line: str) -> bool:
            try:
                row = json.loads(line)
                return (row["episode"], row["part"]) in known
            except (ValueError, KeyError, TypeError):  # half a line
                return False

        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        write_whole(path, "".join(line for line in lines if belongs(line)))


def list_seatings(names: Sequence[str], seats: int) -> list[tuple[str, ...]]:
    """Return who holds each seat, for all the games of a seed.

    >>> list_seatings(["a", "b"], 2)
    [('a', 'b'), ('b', 'a')]
    """
    if len(names) == 1:
        return [(names[0],) * seats]
    found = [
        tuple(one if seat == own else other for seat in range(seats))
        for pair in combinations(names, 2)
        for one, other in (pair, pair[::-1])
        for own in range(seats)
    ]
    return list(dict.fromkeys(found))


def name_seat(names: Sequence[str], seat: int) -> str:
    """Return what the records of a seat are called."""
    return f"{names[seat]} in seat {seat} against {', '.join([*names[:seat], *names[seat + 1 :]])}"


def _result(game: Game, names: tuple[str, ...]) -> Result:
    table = game.table
    moves = json.dumps([entry["moves"] for entry in table.log], sort_keys=True)
    return Result(
        game.number, table.seed or 0, names, tuple(table.returns), tuple(table.invalid), sum(table.turns),
        not table.terminated, hashlib.sha256(moves.encode()).hexdigest()[:16],
    )  # fmt: skip


def read_results(folder: Path) -> list[Result]:
    """Return the results of a tournament's folder; the beginning of a line that a kill left is left out."""
    found = []
    try:
        with (folder / RESULTS).open("rb") as file:
            for line in file:
                if is_cut(line):
                    break
                row = unseal(json.loads(line))
                lists: dict[str, Any] = {name: tuple(row.pop(name)) for name in ("players", "returns", "invalid")}
                found.append(Result(**row, **lists))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrajectoryError(f"{folder / RESULTS} cannot be read: {error}") from None
    return in_order(found)


def in_order(results: Sequence[Result]) -> list[Result]:
    """Return results by seed and seating; they are written in the order in which games end."""
    return sorted(results, key=lambda each: (each.number, each.players))
