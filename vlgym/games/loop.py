"""The loop of all games of several players: many tables at once, each policy asked once a round for all its seats."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from ..play.policies import Policy
from ..play.rollout import add_outcome, check_replies, cut_reply, make_record
from ..types import Parsed, Reply, StepRecord, Turn
from .table import Reading, Table

Player = Policy | str
"""Who holds a seat: a policy, or the name of one of the game's own players (`named_players`)."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(eq=False)
class RunningGame:
    """One game that is being played.

    Attributes:
        table: after its reset.
        number: of the game; its records' episode.
        players: who holds each seat.
        parts: the seats that are recorded, and what each seat's records are called.
        records: turns of each recorded seat; a turn's reward is what its seat was paid until its next turn.
        error: the exception of the game's own code that ended it.
        turns: prompts of the policies that move, by seat.
    """

    table: Table
    number: int
    players: Sequence[Player]
    parts: Mapping[int, str]
    records: dict[int, list[StepRecord]] = field(default_factory=dict)
    error: Exception | None = None
    turns: dict[int, Turn] = field(default_factory=dict)
    replies: dict[int, Reply] = field(default_factory=dict)

    def begin_round(self) -> None:
        """Write the prompts of the policies that move."""
        policies = [seat for seat in self.table.movers if not isinstance(self.players[seat], str)]
        self.turns, self.replies = {seat: self.table.turn(seat) for seat in policies}, {}

    def end_round(self) -> None:
        """Execute the moves, and book what they paid."""
        table = self.table
        texts = {seat: reply.text for seat, reply in self.replies.items()}
        moved = {seat: table.picture(seat) for seat in self.turns if seat in self.parts}
        table.play(read_moves(table, table.movers, self.players, texts), texts)
        for seat, picture in moved.items():
            record = _record(self, seat, self.turns[seat], picture, self.replies[seat])
            self.records.setdefault(seat, []).append(record)
        for seat, records in self.records.items():
            last = records[-1]
            last.reward = table.earned[seat]
            if table.over:
                last.terminated, last.truncated = table.terminated, table.truncated
                last.success = table.success[seat]
                last.final_messages = table.turn(seat).messages if last.truncated else None


def play_games(tables: int, begin: Callable[[int], RunningGame | None]) -> Iterator[RunningGame]:
    """Play games at several tables at once; yield each that is over.

    A policy with `submit` is asked for each seat apart, and a table goes on as soon as its replies are there. Any other
    policy gets all its turns at once.

    Args:
        begin: begins the next game at a table; `None` where no game is left for it.
    """
    games = {index: game for index in range(tables) if (game := begin(index)) is not None}
    ready, waiting = list(games.values()), dict[Future[Reply], tuple[RunningGame, int]]()
    while games:
        for game in ready:
            _attempt(game, game.begin_round)
        places = [(game, seat, game.players[seat]) for game in ready for seat in game.turns]
        for game, seat, player in places:
            if hasattr(player, "submit"):
                waiting[player.submit(game.turns[seat])] = (game, seat)
        together = [(game, seat, player) for game, seat, player in places if not hasattr(player, "submit")]
        turns = {(game, seat): (player, game.turns[seat]) for game, seat, player in together}
        for (game, seat), reply in ask(turns).items():
            game.replies[seat] = reply
        if waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                game, seat = waiting.pop(future)
                game.replies[seat] = cut_reply(future.result())
        ready = []
        for index, game in list(games.items()):
            if len(game.replies) < len(game.turns):
                continue
            _attempt(game, game.end_round)
            if not game.table.over and game.error is None:
                ready.append(game)
                continue
            del games[index]
            yield game
            if (following := begin(index)) is not None:
                games[index] = following
                ready.append(following)


def _attempt(game: RunningGame, act: Callable[[], None]) -> None:
    """Do a part of a round; an error of the game's own code ends this game and no other."""
    try:
        if game.error is None:
            act()
    except Exception as error:
        game.error = error
        game.turns, game.replies = {}, {}


def ask(turns: Mapping[Key, tuple[Any, Turn]]) -> dict[Key, Reply]:
    """Return the replies to turns.

    A policy gets all its turns in one `reply` call. Those with `submit` answer at the same time as each other.

    Args:
        turns: policy and prompt of each place.
    """
    places: dict[int, list[Key]] = {}
    for place, (policy, _) in turns.items():
        places.setdefault(id(policy), []).append(place)
    waiting = {place: policy.submit(turn) for place, (policy, turn) in turns.items() if hasattr(policy, "submit")}
    replies: dict[Key, Reply] = {}
    for own in places.values():
        policy = turns[own[0]][0]
        if not hasattr(policy, "submit"):
            answers = policy.reply([turns[place][1] for place in own])
            check_replies(answers, len(own), policy.name)
            replies |= dict(zip(own, answers, strict=True))
    replies |= {place: future.result() for place, future in waiting.items()}
    return {place: cut_reply(replies[place]) for place in turns}


def read_moves(
    table: Table, seats: Iterable[int], players: Sequence[Player], texts: Mapping[int, str]
) -> dict[int, Reading]:
    """Return the moves of seats: replies that are read, and moves of the game's own players."""
    readings = {}
    for seat in seats:
        player = players[seat]
        if not isinstance(player, str):
            readings[seat] = table.read(seat, texts[seat])
            continue
        action = table.game.ask_player(player, seat) or table.draw_move(seat, 2)
        readings[seat] = Reading(action, Parsed((action,)), None)
    return readings


def _record(game: RunningGame, seat: int, turn: Turn, picture: Any, reply: Reply) -> StepRecord:
    """Return a turn that a seat has just taken; its reward is added later."""
    record = make_record(replace(turn, part=game.parts[seat]), reply, game.number, np.asarray(picture))
    add_outcome(record, game.table.info(seat))
    return record
