"""Play all pairs of some players, each seed in every seating; one player alone holds all seats."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..env.seeding import episode_seed
from ..errors import TrajectoryError, UserError
from ..evaluation import changes_bounds
from ..files import LOCK, append_whole, is_cut, list_folder, lock_folder, make_folder, seal, unseal, write_whole
from ..play.trajectory import FORMAT, METADATA, TrajectoryWriter, check_record_values, read_numbered
from .loop import Player, RunningGame, play_games
from .several import open_table
from .table import Table

RESULTS, RECORDS = "results.jsonl", "games"
DRAW = 1e-9  # returns that differ by no more are equal


@dataclass(frozen=True)
class Result:
    """One game; lists are by seat."""

    number: int  # of its seed in the split
    seed: int
    players: tuple[str, ...]
    returns: tuple[float, ...]
    invalid: tuple[int, ...]  # number of replies that were unreadable or illegal
    turns: int
    truncated: bool
    moves: str = ""  # digest of all moves
    uncredited: tuple[int, ...] = ()  # seats that have nothing better than a loss (`Table.credits`)

    def points(self, name: str) -> float:
        """Return 1 if a player's seats earned more on average than the others, 1/2 if as much.

        With an uncredited seat it has 0 against one that has none.
        """
        others = {player for player in self.players if player != name}
        silent = {self.players[seat] == name for seat in self.uncredited}
        if others and len(silent) == 1:
            return float(silent == {False})
        gap = self.return_of(name) - self.return_of(*others) if others else 0.0
        return 0.5 if abs(gap) <= DRAW else float(gap > 0)

    def return_of(self, name: str) -> float:
        """Return a player's mean return over its seats."""
        rows = zip(self.players, self.returns, strict=True)
        return float(np.mean([paid for player, paid in rows if player == name]))


class Tournament:
    """Games of every pair of players, written down as they end.

    One of a pair holds each seat once, the other the rest. One player alone holds every seat.

    Args:
        env_id: a game of several agents.
        players: by name: policies, or names of the game's own players.
        games: seeds of each pair; each is played in every seating.

    Raises:
        UserError: the id is no game of several agents, it has no such player, the folder holds
            something else, or another process is at work in it.
        TrajectoryError: a result is none of this tournament's, or stands there twice.
    """

    def __init__(
        self, env_id: str, players: Mapping[str, Player], games: int, out: Path, *, split: str = "test",
        arguments: Mapping[str, Any] | None = None, resume: bool = False,
    ) -> None:  # fmt: skip
        self.table: Table = open_table(env_id, **(arguments or {}))
        for name, player in players.items():
            self.table.game.check_player(f"player {name}", player)
        self.table.game.vlgym_spec.check_split(split)
        self.env_id, self.players, self.games = env_id, dict(players), games
        self.out, self.split, self.arguments = out, split, dict(arguments or {})
        self.seatings = list_seatings(list(players), self.table.game.seats)

        # The records' header decides whether a folder can be continued.
        self._header = {
            "format": FORMAT, "kind": "tournament", "title": f"tournament {env_id}", "env_id": env_id,
            "split": split, "games": games, "players": list(players),
            "arguments": self.table.game.arguments, "policies": {
                name: each.describe() for name, each in players.items() if hasattr(each, "describe")
            },
        }  # fmt: skip
        self._done: set[tuple[tuple[str, ...], int]] = set()
        self.results = self._open(resume)

    @property
    def total(self) -> int:
        return self.games * len(self.seatings)

    def play(self, on_game: Callable[[Result], object] = lambda result: None) -> list[Result]:
        """Play the games that are left; return all results."""
        games = [(names, number) for number in range(self.games) for names in self.seatings]
        left = iter([game for game in games if game not in self._done])
        tables = [self.table]
        seats: dict[RunningGame, tuple[str, ...]] = {}

        def begin(index: int) -> RunningGame | None:
            names, number = next(left, (None, 0))
            if names is None:
                return None
            if index == len(tables):
                tables.append(open_table(self.env_id, **self.arguments))
            game = self._begin(tables[index], number, names)
            seats[game] = names
            return game

        # Twice as many games are open as the players answer turns at once: no free place waits.
        places = sum(getattr(player, "concurrency", 0) for player in self.players.values())
        at_once = max(8, 2 * places)

        # A game's records are written before its result: a kill between the two is found at resume.
        writer = TrajectoryWriter(self.out / RECORDS, self._header)
        with self._lock:
            for game in play_games(min(at_once, self.total), begin):
                if game.error is not None:
                    raise game.error
                for seat in sorted(game.records):
                    writer.write(game.records[seat])
                self.results.append(self._check(_result(game, seats.pop(game))))
                append_whole(self.out / RESULTS, json.dumps(seal(asdict(self.results[-1]))) + "\n")
                on_game(self.results[-1])
        writer.sync()
        return in_order(self.results)

    def _begin(self, table: Table, number: int, names: tuple[str, ...]) -> RunningGame:
        seed = episode_seed(self.env_id, self.split, number)
        table.reset(seed=seed)
        for seat, space in enumerate(table.spaces):
            space.seed((seed + seat) % 2**31)
        players = [self.players[name] for name in names]
        parts = {seat: name_seat(names, seat) for seat in range(len(names))}
        return RunningGame(table, number, players, parts)

    def _open(self, resume: bool) -> list[Result]:
        path = self.out / RESULTS
        if path.exists() and not resume:
            raise UserError(
                f"--out {self.out} holds a tournament already. Continue it with --resume, or choose another."
            )
        if not path.exists() and any(each.name != LOCK for each in list_folder(self.out)):
            raise UserError(f"--out {self.out} is not empty; choose another folder.")
        self.out.mkdir(parents=True, exist_ok=True)

        # Under the lock: half a line and records without a result are the traces of a kill.
        with ExitStack() as stack:
            stack.enter_context(lock_folder(self.out))
            make_folder(self.out / RECORDS)
            try:
                TrajectoryWriter(self.out / RECORDS, self._header)
            except TrajectoryError as error:
                raise UserError(f"--resume: {error}") from None
            append_whole(path, "")
            results = [self._check(each) for each in read_results(self.out)]
            lines = [json.dumps(seal(asdict(each))) + "\n" for each in results]
            write_whole(path, "".join(lines))
            self._drop_records(results)
            self._lock = stack.pop_all()
            return results

    def _check(self, result: Result) -> Result:
        """Return a result that a game of this tournament can have had, once, or raise."""
        seats, most = len(result.players), result.turns + 1  # a seat may earn before its first turn
        low, high = self.table.game.vlgym_spec.reward_range
        if changes_bounds(self.env_id, self.arguments):
            low, high = -math.inf, math.inf
        low, high = most * min(low, 0.0) - DRAW, most * max(high, 0.0) + DRAW

        # The first value that no game can have is named.
        game, number = (result.players, result.number), result.number
        invalid, returns = result.invalid, result.returns
        fine = {
            "players": result.players in self.seatings,
            "number": 0 <= number < self.games and game not in self._done,
            "seed": result.seed == episode_seed(self.env_id, self.split, max(number, 0)),
            "turns": 0 <= result.turns <= seats * self.table.game.max_turns,
            "invalid": len(invalid) == seats and all(0 <= count <= result.turns for count in invalid),
            "uncredited": set(result.uncredited) <= set(range(seats)),
            "returns": len(returns) == seats and all(low <= paid <= high for paid in returns),
        }
        if wrong := [name for name, good in fine.items() if not good]:
            raise TrajectoryError(
                f"{self.out / RESULTS}: game {number} of {', '.join(result.players)} has {wrong[0]} "
                f"{getattr(result, wrong[0])!r}: no game of this tournament can, or it is there twice. "
                "Start a new tournament in another --out."
            )
        self._done.add(game)
        return result

    def _drop_records(self, results: Sequence[Result]) -> None:
        """Leave out records of games without a result; refuse missing and doubled turns."""
        path = self.out / RECORDS / METADATA
        append_whole(path, "")
        data, begin = path.read_bytes(), 0

        # The lines of each seat of a game: all its turns, once and in order.
        lines: dict[tuple[int, str], bytes] = {}
        for end, records in read_numbered(path.parent, images=False, unfinished=False):
            number, part = seat = (records[0].episode, records[0].part)
            places = [(each.episode, each.part, each.turn) for each in records]
            if seat in lines or places != [(*seat, turn) for turn in range(len(records))]:
                raise TrajectoryError(f"{path}: a turn of game {number}, {part}, is missing or recorded twice.")
            begin, lines[seat] = end, data[begin:end]

        # As many turns as each result says; moves of the game's own players are not recorded.
        known: set[tuple[int, str]] = set()
        for each in results:
            seats = [(each.number, name_seat(each.players, seat)) for seat in range(len(each.players))]
            turns = sum(lines.get(seat, b"").count(b"\n") for seat in seats)
            own = any(isinstance(self.players[name], str) for name in each.players)
            if not own and turns != each.turns:
                raise TrajectoryError(f"{path}: turns of game {each.number}, {each.players}, are missing.")
            known.update(seats)
        write_whole(path, b"".join(text for seat, text in lines.items() if seat in known))


def list_seatings(names: Sequence[str], seats: int) -> list[tuple[str, ...]]:
    """Return the players by seat, for all the games of a seed.

    >>> list_seatings(["a", "b"], 2)
    [('a', 'b'), ('b', 'a')]
    """
    if len(names) == 1:
        return [(names[0],) * seats]
    seatings = [
        tuple(one if seat == own else other for seat in range(seats))
        for pair in combinations(names, 2)
        for one, other in (pair, pair[::-1])
        for own in range(seats)
    ]
    return list(dict.fromkeys(seatings))


def name_seat(names: Sequence[str], seat: int) -> str:
    """Return the `part` of a seat's records."""
    others = ", ".join([*names[:seat], *names[seat + 1 :]])
    return f"{names[seat]} in seat {seat} against {others}"


def _result(game: RunningGame, names: tuple[str, ...]) -> Result:
    table = game.table
    moves = json.dumps([entry["moves"] for entry in table.log], sort_keys=True)
    uncredited = [seat for seat, turns in enumerate(table.turns) if turns and not table.credits(seat)]
    return Result(
        game.number, table.seed or 0, names, tuple(table.returns), tuple(table.invalid),
        sum(table.turns), not table.terminated, hashlib.sha256(moves.encode()).hexdigest()[:16],
        tuple(uncredited),
    )  # fmt: skip


def read_results(folder: Path) -> list[Result]:
    """Return the results of a tournament's folder, without the half of a line that a kill left."""
    results = []
    try:
        with (folder / RESULTS).open("rb") as file:
            for line in file:
                if is_cut(line):
                    break
                row = {"uncredited": (), **unseal(json.loads(line))}
                for name in ("players", "returns", "invalid", "uncredited"):
                    row[name] = tuple(row[name])
                results.append(Result(**row))
                check_record_values(vars(results[-1]), Result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrajectoryError(f"{folder / RESULTS} cannot be read: {error}") from None
    return in_order(results)


def in_order(results: Sequence[Result]) -> list[Result]:
    """Return results by seed and seating; they are written in the order of the games' ends."""
    return sorted(results, key=lambda each: (each.number, each.players))
