"""MultiVLEnv, the base class of games of several agents: one seat's view, a `VLEnv`. `Table` drives all seats."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..env import VLEnv
from ..env.reset_options import LEVEL, read_reset_options
from ..errors import UserError, check_choice
from ..parsers import match_legal
from ..types import Image, Outcome, Parsed
from .loop import ask, read_moves
from .multi_game import PLAYERS as PLAYERS
from .multi_game import MultiGame
from .multi_game import Round as Round
from .table import WAIT, Reading, Table, check_seat, draw_seeds

SELF = "self"  # the value of `opponents` with which one player holds all seats


class MultiVLEnv(MultiGame, VLEnv):
    """One seat's view of a game, by an author's methods of `MultiGame`; `opponents` play the others.

    No game waits for a readable reply: the game's idle action, else a random legal one, replaces an
    invalid one. `Table` plays and pays it by the rule of docs/games.md, on every path.

    `info` also holds `seat`, the seat of this episode.

    Args:
        seat: the seat that this environment plays; `None` draws one for each episode from its seed.
        opponents: the players of the other seats: `random`, `oracle`, `search` or another one of the
            game's `named_players`, a policy, or a dict that gives each of the other seats one of these.
            `self`: each step is the move of the next seat, so one player holds all seats. A round pays
            the mean of the seats' rewards with its last move; it pays no gain if one of its replies was
            unreadable.
        invalid_action: as of `VLEnv`; by default `noop` (the idle action) where the game has one, else
            `random`. In a game without an idle action `noop` spends a turn, and the game waits.
        **kwargs: of `VLEnv`.

    Raises:
        UserError: an argument is out of its range.
    """

    def __init__(
        self, *, seat: int | None = None, opponents: Any = "random", invalid_action: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if invalid_action is None:
            invalid_action = "random" if type(self).idle is MultiGame.idle else "noop"
        super().__init__(invalid_action=invalid_action, **kwargs)
        self.seat = None if seat is None else check_seat(self, seat)
        self.opponents = opponents
        self._alone = isinstance(opponents, str) and opponents == SELF
        if self._alone and (self.zero_sum or seat is not None):
            why = "its seats play against each other" if self.zero_sum else f"leave out seat={seat}"
            raise UserError(f"opponents='self' gives one player all seats of {self.title}: {why}.")
        self._table = Table(self, alone=self._alone)
        self._players = [] if self._alone else self._read_opponents(opponents)
        policies = {s for s, player in enumerate(self._players) if not isinstance(player, str)}
        self._table.remembers = policies
        self._seat_now = self.seat or 0
        self._readings: dict[int, Reading] = {}

    @property
    def title(self) -> str:
        """The id, or the class's name without a card."""
        return self._title()

    @property
    def seat_now(self) -> int:
        return self._seat_now

    def match_move(self, wanted: str, seat: int) -> str | None:
        """Return the legal action of a seat that the parser's candidate means, or `None`."""
        return match_legal(wanted, self.moves(seat))

    def match_action(self, wanted: str) -> str | None:
        if self._seat_now in self._table.movers:
            return self.match_move(wanted, self._seat_now)
        return match_legal(wanted, self.legal_actions())

    def resolve_arguments(self) -> dict[str, Any]:
        """Return the opponents by their names, and the effect of an unreadable reply."""
        if self._alone:
            return {"opponents": SELF, "invalid_action": self.invalid_action}
        names = [each if isinstance(each, str) else each.name for each in self._players]
        others: Any = names[0]
        if isinstance(self.opponents, Mapping):
            others = {str(seat): name for seat, name in enumerate(names) if seat != self.seat}
        return {"opponents": others, "invalid_action": self.invalid_action}

    def reseed(self, seed: int) -> None:
        """Begin the game's chance and the others' random moves at a seed."""
        super().reseed(seed)
        self._table.reseed(seed)

    # ---- VLEnv's game, for one seat

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Draw the seat, deal, and let the others move until it is this seat's turn."""
        drawn, seeds = draw_seeds(rng, self.seats)
        self._seat_now = drawn if self.seat is None else self.seat
        self._table.seed = self.reset_seed
        self._table.begin(seeds, options)
        self._readings = {}
        if self._alone:
            self._seat_now = next(iter(self._table.movers), self._seat_now)
        else:
            self._let_others_move()

    def act(self, action: str) -> Outcome:
        """Move, and let the others move until this seat's next turn; pay its gains meanwhile."""
        return self._move(Reading(action, Parsed((action,)), None))

    def _move(self, reading: Reading) -> Outcome:
        table = self._table
        if self._alone:
            return self._hold(reading)
        if not table.over:
            self._play_round({self._seat_now: reading})
            self._let_others_move()
        return Outcome(table.earned[self._seat_now], table.terminated, table.truncated, table.feedback)

    def _fail(self, failure: str, executed: list[str], reward: float) -> tuple[list[str], Outcome, str]:
        seat = self._seat_now
        effect = self.invalid_action
        waits = effect == "terminate" or (effect == "noop" and self.idle(seat) is None)
        if waits or seat not in self._table.movers:
            return super()._fail(failure, executed, reward)
        reading = self._table.stand_in(seat, Parsed(), failure)
        outcome = self._move(reading)
        self.turn += 1
        outcome = replace(outcome, reward=reward + outcome.reward, feedback="")
        return [*executed, reading.action], outcome, failure

    def image(self) -> Image:
        return self.draw(self._seat_now)

    def describe(self) -> str:
        return self.describe_view(self._seat_now)

    def task(self) -> str:
        return self.goal(self._seat_now)

    def state_text(self) -> str:
        """Return this seat's part of the turn text."""
        return self.tell(self._seat_now)

    def legal_actions(self) -> list[str]:
        """Return this seat's legal actions; `wait` if the game ended before its first move."""
        if self._table.over:
            return [] if self._ended else [WAIT]
        return self._table.legal(self._seat_now)

    def success(self) -> bool:
        return self._table.success[self._seat_now]

    def oracle(self) -> str | None:
        return self.advise(self._seat_now) if self._seat_now in self._table.movers else None

    def think(self, action: str) -> str:
        return self.explain(self._seat_now, action)

    def score(self) -> float | None:
        return self.points(self._seat_now)

    def extra_info(self) -> dict[str, Any]:
        """Return the seat, and the game's details of it."""
        return {**self.details(self._seat_now), "seat": self._seat_now}

    def save(self) -> dict[str, Any] | None:
        """Return the moves of all seats: a restore asks no opponent again."""
        if self._start is None:
            return None
        saved = {"options": copy.deepcopy(self._start["options"]), "seat": self._seat_now}
        saved["table"] = self._table.save()
        if self._alone:
            readings = self._readings.items()
            saved["held"] = {str(seat): [each.action, each.failure] for seat, each in readings}
        return saved

    def load(self, state: dict[str, Any]) -> None:
        options = read_reset_options(self, state["options"])
        options.pop(LEVEL, None)
        self._seat_now = check_seat(self, state["seat"])
        self._table.seed = self.reset_seed
        self._table.load(state["table"], options)
        self._readings = {
            check_seat(self, int(seat)): Reading(str(action), Parsed(), failure)
            for seat, (action, failure) in state.get("held", {}).items()
        }

    # ---- one player for all seats

    def _hold(self, reading: Reading) -> Outcome:
        """Keep a seat's move until all that move now have one, then execute them."""
        table, reward = self._table, -self.invalid_penalty if reading.failure else 0.0
        self._readings[self._seat_now] = reading
        if self._readings.keys() >= set(table.movers):
            moves, self._readings = self._readings, {}
            reward += table.play(moves).rewards[0]
        left = [seat for seat in table.movers if seat not in self._readings]
        self._seat_now = left[0] if left else self._seat_now
        self._failure = table.failures[self._seat_now]
        self._write_instructions()
        return Outcome(reward, table.terminated, table.truncated, table.feedback)

    def _turn_limit(self) -> int:
        return self.max_turns * self.seats if self._alone else self.max_turns

    def _turn_number(self) -> int:
        return self._table.turns[self._seat_now] if self._alone else self.turn

    # ---- the others

    def _let_others_move(self) -> None:
        while not self._table.over and self._seat_now not in self._table.movers:
            self._play_round({})

    def _play_round(self, own: dict[int, Reading]) -> None:
        """Ask the others who move now, before anybody's move is executed."""
        table, players = self._table, self._players
        others = [seat for seat in table.movers if seat not in own]
        policies = [seat for seat in others if not isinstance(players[seat], str)]
        turns = {seat: (players[seat], table.turn(seat)) for seat in policies}
        texts = {seat: reply.text for seat, reply in ask(turns).items()}
        table.play(own | read_moves(table, others, players, texts), texts)

    def _read_opponents(self, opponents: Any) -> list[Any]:
        """Return a player for each seat: a name of `named_players`, or a policy."""
        if not isinstance(opponents, Mapping):
            return [self.check_player("opponents", opponents)] * self.seats
        if self.seat is None:
            choices = f"seat=0 to seat={self.seats - 1}"
            raise UserError(f"opponents={{...}} names seats, so say which is yours: {choices}.")

        # A dict has one player for each seat but the own one; in JSON its keys are strings.
        players: dict[int, Any] = {}
        for key, player in opponents.items():
            number = int(key) if isinstance(key, str) and key.isdigit() else key
            seat = check_seat(self, number, "opponents: seat")
            if seat == self.seat:
                why = "which is yours; leave it out"
                raise UserError(f"opponents gives a player to seat {seat}, {why}.")
            players[seat] = self.check_player(f"opponents[{seat}]", player)
        missing = [str(seat) for seat in range(self.seats) if seat not in {self.seat, *players}]
        if missing:
            seats = ", ".join(missing)
            raise UserError(f"opponents has no player for seat {seats}; give one, such as 'random'.")
        return [players.get(seat, "random") for seat in range(self.seats)]

    def check_player(self, name: str, player: Any) -> Any:
        """Return a player, one of `named_players` or a policy; the argument's name is for the error.

        Raises:
            UserError: the game has no such player, or it is no policy.
        """
        if isinstance(player, str):
            check_choice(name, player, self.named_players)
            silent = type(self).advise is MultiGame.advise
            passive = silent and type(self).search is MultiGame.search
            if (silent and player == "oracle") or (passive and player == "search"):
                raise UserError(f"{name}={player!r}: {self.title} has no such player; it has random.")
            return player
        named = isinstance(getattr(player, "name", None), str)
        if not named or not callable(getattr(player, "reply", None)):
            choices = f"{', '.join(self.named_players)} or a policy (name and reply(turns))"
            raise UserError(f"{name}={player!r:.80} must be {choices}.")
        return player
