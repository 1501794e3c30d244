"""The loop of games of several players: many tables at once, each policy asked once a round."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from ..play.policies import Policy
from ..play.rollout import add_outcome, check_replies, cut_reply, make_record
from ..types import Parsed, Reply, StepRecord, Turn
from .table import Reading, Table

Player = Policy | str  # or the name of one of the game's own players (`named_players`)
Key = TypeVar("Key", bound=Hashable)


@dataclass(eq=False)
class RunningGame:
    """One game that is being played at a table after its reset."""

    table: Table
    number: int  # of the game; its records' episode
    players: Sequence[Player]
    parts: Mapping[int, str]  # of the recorded seats: the `part` of their records
    records: dict[int, list[StepRecord]] = field(default_factory=dict)  # a turn's reward: until the seat's next one
    error: Exception | None = None  # of the game's own code, which ended it
    turns: dict[int, Turn] = field(default_factory=dict)  # of the policies that move now
    replies: dict[int, Reply] = field(default_factory=dict)

    def begin_round(self) -> None:
        """Write the prompts of the policies that move."""
        policies = [seat for seat in self.table.movers if not isinstance(self.players[seat], str)]
        self.turns, self.replies = {seat: self.table.turn(seat) for seat in policies}, {}

    def end_round(self) -> None:
        """Execute the moves, and book their pay."""
        table = self.table
        texts = {seat: reply.text for seat, reply in self.replies.items()}
        moved = {seat: table.picture(seat) for seat in self.turns if seat in self.parts}
        table.play(read_moves(table, table.movers, self.players, texts), texts)
        for seat, picture in moved.items():
            turn = replace(self.turns[seat], part=self.parts[seat])
            record = make_record(turn, self.replies[seat], self.number, np.asarray(picture))
            add_outcome(record, table.info(seat))
            self.records.setdefault(seat, []).append(record)

        # A seat's last turn is paid for others' moves, too, until its next one.
        for seat, records in self.records.items():
            last = records[-1]
            last.reward = table.earned[seat]
            if table.over:
                last.terminated, last.truncated = table.terminated, table.truncated
                last.success = table.success[seat]
                last.final_messages = table.turn(seat).messages if last.truncated else None


def play_games(tables: int, begin: Callable[[int], RunningGame | None]) -> Iterator[RunningGame]:
    """Play games at several tables at once; yield each that is over.

    A policy with `submit` is asked for each seat apart, and a table goes on as soon as its replies
    are there. Any other policy gets all its turns at once. `begin` begins a table's next game.
    """
    games = {index: game for index in range(tables) if (game := begin(index)) is not None}
    ready, waiting = list(games.values()), dict[Future[Reply], tuple[RunningGame, int]]()
    while games:
        # Every prompt goes out before an answer is waited for.
        for game in ready:
            _attempt(game, game.begin_round)
        together: dict[tuple[RunningGame, int], tuple[Any, Turn]] = {}
        for game in ready:
            for seat, turn in game.turns.items():
                player: Any = game.players[seat]
                if hasattr(player, "submit"):
                    waiting[player.submit(turn)] = (game, seat)
                else:
                    together[game, seat] = (player, turn)
        for (game, seat), reply in ask(together).items():
            game.replies[seat] = reply
        if waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                game, seat = waiting.pop(future)
                game.replies[seat] = cut_reply(future.result())

        # Tables with all replies go on; one that is over gets its next game.
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
    """Return the replies to turns: those of a policy with `submit` apart, else all in one call."""
    waiting, places = dict[Key, Future[Reply]](), defaultdict[int, list[Key]](list)
    for place, (policy, turn) in turns.items():
        if hasattr(policy, "submit"):
            waiting[place] = policy.submit(turn)
        else:
            places[id(policy)].append(place)

    # Policies without `submit` answer while the others work.
    replies: dict[Key, Reply] = {}
    for own in places.values():
        policy = turns[own[0]][0]
        answers = policy.reply([turns[place][1] for place in own])
        check_replies(answers, len(own), policy.name)
        replies |= dict(zip(own, answers, strict=True))
    replies |= {place: future.result() for place, future in waiting.items()}
    return {place: cut_reply(replies[place]) for place in turns}


def read_moves(
    table: Table, seats: Iterable[int], players: Sequence[Player], texts: Mapping[int, str]
) -> dict[int, Reading]:
    """Return the moves of seats: read replies, and moves of the game's own players."""
    readings = {}
    for seat in seats:
        player = players[seat]
        if not isinstance(player, str):
            readings[seat] = table.read(seat, texts[seat])
            continue
        action = table.game.ask_player(player, seat) or table.draw_move(seat, 2)
        readings[seat] = Reading(action, Parsed((action,)), None)
    return readings
