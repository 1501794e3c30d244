"""Play all pairs of some policies: each seed twice, with the seats swapped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..env.seeding import episode_seed
from ..errors import TrajectoryError, UserError
from ..files import seal, unseal, write_whole
from ..play.policies import Policy
from ..play.rollout import cut_reply
from ..play.trajectory import FORMAT, METADATA, TrajectoryWriter
from ..types import Reply, StepRecord, Turn
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
    players: tuple[str, str]
    returns: tuple[float, float]
    invalid: tuple[int, int]
    turns: int
    truncated: bool
    moves: str = ""

    def points(self, name: str) -> float:
        """Return a player's points: 1 for the larger return, 1/2 for equal ones, else 0."""
        own, other = self.returns if self.players[0] == name else self.returns[::-1]
        return 0.5 if abs(own - other) <= DRAW else float(own > other)

    def return_of(self, name: str) -> float:
        """A player's return."""
        return self.returns[self.players.index(name)]


class GamePlayer:
    """A player that a game brings itself, such as `search`, which is weaker than the oracle where a game has both."""

    def __init__(self, name: str = "search") -> None:
        self.name = name

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answer with the move of each game's player."""
        replies = []
        for turn in turns:
            chair: Any = turn.env
            game = chair.table.game
            action = game.ask_player(self.name, chair.seat) if self.name in game.named_players else None
            if action is None:
                raise UserError(f"{turn.env_id} has no player named {self.name}; its card says which it has.")
            replies.append(Reply(chair.parser.format([action])))
        return replies


class Tournament:
    """Games of every pair of policies, written down as they end.

    Args:
        env_id: a game of two agents.
        players: the policies by name; at least two.
        games: seeds of each pair; each is played twice, with the seats swapped.
        out: folder for results and records.
        split: `train`, `val` or `test`.
        arguments: of the game's constructor.
        resume: go on with the tournament that the folder holds.

    Raises:
        UserError: the id is no game of two, there are too few policies, or the folder holds something else.
    """

    def __init__(
        self,
        env_id: str,
        players: Mapping[str, Policy],
        games: int,
        out: Path,
        *,
        split: str = "test",
        arguments: Mapping[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        if len(players) < 2:
            raise UserError(f"A tournament needs two policies, there is {', '.join(players) or 'none'}.")
        self.table: Table = open_table(env_id, **(arguments or {}))
        if self.table.game.seats != 2:
            raise UserError(f"{env_id} has {self.table.game.seats} seats; a tournament plays games of two.")
        spec = self.table.game.vlgym_spec
        if split not in spec.splits:
            raise UserError(f"{env_id} has no split {split!r}; it has {', '.join(spec.splits)}.")
        self.env_id, self.players, self.games, self.out, self.split = env_id, dict(players), games, out, split
        self._header = {
            "format": FORMAT, "kind": "tournament", "title": f"tournament {env_id}", "env_id": env_id, "split": split,
            "games": games, "players": list(players), "arguments": self.table.game.arguments,
            "policies": {name: each.describe() for name, each in players.items() if hasattr(each, "describe")},
        }  # fmt: skip
        self.results = self._open(resume)

    @property
    def total(self) -> int:
        """Number of games in all."""
        return self.games * len(self.players) * (len(self.players) - 1)

    def play(self, on_game: Callable[[Result], object] = lambda result: None) -> list[Result]:
        """Play what is left; return all results."""
        writer = TrajectoryWriter(self.out / RECORDS, self._header)
        done = {(result.players, result.number) for result in self.results}
        for number, seats in self._plan():
            if (seats, number) not in done:
                result, episodes = self._play_game(number, seats)
                for episode in episodes:
                    writer.write(episode)
                self.results.append(result)
                lines = (json.dumps(seal(asdict(each))) + "\n" for each in self.results)
                write_whole(self.out / RESULTS, "".join(lines))
                on_game(result)
        writer.sync()
        return self.results

    def _plan(self) -> Iterator[tuple[int, tuple[str, str]]]:
        for number in range(self.games):
            for one, other in combinations(self.players, 2):
                yield number, (one, other)
                yield number, (other, one)

    def _play_game(self, number: int, names: tuple[str, str]) -> tuple[Result, list[list[StepRecord]]]:
        """Play one game; return its result and what each seat saw and said."""
        table, seed = self.table, episode_seed(self.env_id, self.split, number)
        table.reset(seed=seed)
        for seat, space in enumerate(table.spaces):
            space.seed((seed + seat) % 2**31)
        episodes: list[list[StepRecord]] = [[], []]
        while not table.over:
            turns = {seat: table.turn(seat) for seat in table.movers}
            pictures = {seat: table.game.draw(seat) for seat in turns}
            replies = {seat: cut_reply(reply) for seat, reply in self._ask(names, turns).items()}
            before = list(table.returns)
            table.step({seat: reply.text for seat, reply in replies.items()})
            for seat, turn in turns.items():
                episodes[seat].append(self._record(number, names, seat, turn, pictures[seat], replies[seat]))
            for seat, records in enumerate(episodes):
                if records:  # what a seat earns while the other moves belongs to its last reply
                    records[-1].reward += table.returns[seat] - before[seat]
        for seat, records in enumerate(episodes):
            if records:
                records[-1].terminated, records[-1].truncated = table.terminated, not table.terminated
                records[-1].success = bool(table.game.won(seat))
        result = Result(
            number, seed, names, (table.returns[0], table.returns[1]), (table.invalid[0], table.invalid[1]),
            sum(table.turns), not table.terminated, _digest([entry["moves"] for entry in table.log]),
        )  # fmt: skip
        return result, [records for records in episodes if records]

    def _ask(self, names: tuple[str, str], turns: Mapping[int, Turn]) -> dict[int, Reply]:
        """Ask each policy once, for all its seats that move."""
        replies: dict[int, Reply] = {}
        for name in dict.fromkeys(names):
            seats = [seat for seat in turns if names[seat] == name]
            if seats:
                answers = self.players[name].reply([turns[seat] for seat in seats])
                replies |= dict(zip(seats, answers, strict=True))
        return replies

    def _record(
        self, number: int, names: tuple[str, str], seat: int, turn: Turn, picture: Any, reply: Reply
    ) -> StepRecord:
        table = self.table
        info = table.info(seat)
        details = info["vlgym"]
        return StepRecord(
            env_id=self.env_id, episode=number, seed=turn.seed or 0, turn=turn.turn, messages=turn.messages,
            image=np.asarray(picture), text=turn.text, reply=reply.text, actions=tuple(details["actions"]),
            parse=details["parse"], reward=0.0, terminated=False, truncated=False, invalid=info["invalid_action"],
            success=False, span=details["span"], cut=reply.cut, refused=reply.refused, usage=reply.usage,
            part=name_seat(names, seat),
        )  # fmt: skip

    def _open(self, resume: bool) -> list[Result]:
        held = self.out / RESULTS
        if held.exists() and not resume:
            raise UserError(
                f"--out {self.out} holds a tournament already. Continue it with --resume, or choose another."
            )
        begun = held.exists()
        if not begun and self.out.exists() and any(self.out.iterdir()):
            raise UserError(f"--out {self.out} is not empty; choose another folder.")
        self.out.mkdir(parents=True, exist_ok=True)
        try:
            TrajectoryWriter(self.out / RECORDS, self._header)
        except TrajectoryError as error:
            raise UserError(f"--resume: {error}") from None
        if not begun:
            held.touch()
            return []
        found = read_results(self.out)
        self._drop_records(found)
        return found

    def _drop_records(self, kept: Sequence[Result]) -> None:
        """Leave out records of a game that has no result: a kill came between the two."""
        path = self.out / RECORDS / METADATA
        if not path.exists():
            return
        known = {(each.number, name_seat(each.players, seat)) for each in kept for seat in (0, 1)}

        def belongs(line: str) -> bool:
            try:
                row = json.loads(line)
                return (row["episode"], row["part"]) in known
            except (ValueError, KeyError, TypeError):  # half a line
                return False

        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        write_whole(path, "".join(line for line in lines if belongs(line)))


def _digest(moves: Any) -> str:
    return hashlib.sha256(json.dumps(moves, sort_keys=True).encode()).hexdigest()[:16]


def name_seat(names: tuple[str, str], seat: int) -> str:
    """Return what the records of a seat are called."""
    return f"{names[seat]} in seat {seat} against {names[1 - seat]}"


def read_results(folder: Path) -> list[Result]:
    """Return the results of a tournament's folder."""
    found = []
    try:
        with (folder / RESULTS).open(encoding="utf-8") as file:
            for line in file:
                row = unseal(json.loads(line))
                pairs: dict[str, Any] = {name: tuple(row.pop(name)) for name in ("players", "returns", "invalid")}
                found.append(Result(**row, **pairs))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrajectoryError(f"{folder / RESULTS} cannot be read: {error}") from None
    return found
