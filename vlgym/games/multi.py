"""MultiGame, an author's game of several agents, and MultiVLEnv, one seat of it as a `VLEnv`."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..env import VLEnv
from ..env.reset_options import LEVEL, read_reset_options
from ..errors import UserError, check_choice
from ..parsers import match_legal
from ..types import Image, Outcome, Parsed
from .loop import ask, read_moves
from .table import WAIT, Reading, Table, check_seat, draw_seeds
from .table import Round as Round

PLAYERS = ("random", "oracle", "search")  # of every game with an oracle
SELF = "self"  # the value of `opponents` with which one player holds all seats


class MultiGame:
    """The rules of one game, and what each seat sees of it. Seats are numbered from 0.

    Attributes:
        seats: number of agents: of the class, or set before `super().__init__()`.
        zero_sum: the rewards of every round add up to 0.
        symmetric: the rules are the same for every seat; `mirror` is defined.
        at_once: every seat moves in every round.
        hidden_information: a seat does not see all; `redeal` is defined.
        named_players: the game's own players; `ask_player` answers for them.
    """

    seats: int = 2
    zero_sum: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    at_once: ClassVar[bool] = False
    hidden_information: ClassVar[bool] = False
    named_players: ClassVar[tuple[str, ...]] = PLAYERS

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Begin a game with the values of the declared `reset_options`.

        Keep `rng` for chance during the game; there is no other source of it.
        """
        raise TypeError(f"{type(self).__name__} must define deal()")

    def movers(self) -> tuple[int, ...]:
        """Return the seats that move now, several at once; none when the game is over."""
        raise TypeError(f"{type(self).__name__} must define movers()")

    def moves(self, seat: int) -> list[str]:
        """Return the legal actions, at least one, of a seat that moves now, in its words."""
        raise TypeError(f"{type(self).__name__} must define moves()")

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        """Execute one legal action of every seat that moves now."""
        raise TypeError(f"{type(self).__name__} must define make_moves()")

    def draw(self, seat: int) -> Image:
        """Draw this seat's view: a fresh `[H, W, 3] uint8` array of `self.image_size`."""
        raise TypeError(f"{type(self).__name__} must define draw()")

    def goal(self, seat: int) -> str:
        """Return the rules and this seat's goal in words; the same in all of a game."""
        raise TypeError(f"{type(self).__name__} must define goal()")

    def tell(self, seat: int) -> str:
        """Return the part of this seat's turn text that the image does not show; may be empty."""
        return ""

    def describe_view(self, seat: int) -> str:
        """Return this seat's view in words, as `Game.describe`."""
        return ""

    def won(self, seat: int) -> bool:
        """True if this seat has succeeded, by the spec's success rule."""
        raise TypeError(f"{type(self).__name__} must define won()")

    def idle(self, seat: int) -> str | None:
        """Return the legal action that does nothing and replaces an unreadable reply, or `None`."""
        return None

    def advise(self, seat: int) -> str | None:
        """Return the oracle's action for a seat that moves now; one state has one answer."""
        return None

    def search(self, seat: int) -> str | None:
        """Return the action of a player that searches, where that is not the oracle."""
        return self.advise(seat)

    def ask_player(self, player: str, seat: int) -> str | None:
        """Return the action of one of `named_players` for a seat that moves; `None`: random.

        A game with further players answers for them and calls this for the others.
        """
        if player == "random":
            return None
        return self.advise(seat) if player == "oracle" else self.search(seat)

    def explain(self, seat: int, action: str) -> str:
        """Return the line of thoughts that the oracle writes before its action."""
        return ""

    def points(self, seat: int) -> float | None:
        """Return the game's own score of a seat so far, where one exists."""
        return None

    def details(self, seat: int) -> dict[str, Any]:
        """Return fresh plain values that are merged into this seat's `info`."""
        return {}

    def redeal(self, seat: int, rng: np.random.Generator) -> bool:
        """Change the hidden state into another that fits a seat's view; return true if it changed.

        Only the conformance kit calls it, and plays no further.
        """
        raise TypeError(f"{type(self).__name__} declares hidden_information and must define redeal()")

    def mirror(self) -> None:
        """Put the seats of a game that has just begun in reverse order, for the conformance kit."""
        raise TypeError(f"{type(self).__name__} declares symmetric and must define mirror()")


class MultiVLEnv(MultiGame, VLEnv):
    """One seat's view of a game of an author's `MultiGame`; `opponents` play the others.

    No game waits for a readable reply: the game's idle action, else a random legal one, replaces an
    invalid one. `Table` plays and pays it by the rule of docs/games.md. `info` also holds `seat`.

    Args:
        seat: the seat that this environment plays; `None` draws one for each episode from its seed.
        opponents: the other seats' players: one of the game's `named_players` (`random`, `oracle`,
            `search`), a policy, or a dict that gives each other seat one of these. `self`: one
            player holds all seats, each step is the move of the next one. A round pays the mean of
            the seats' rewards with its last move, and no gain if one of its replies was unreadable.
        invalid_action: as of `VLEnv`; by default `noop` (the idle action) where the game has one,
            else `random`. Without an idle action `noop` spends a turn, and the game waits.
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

        # One player cannot hold seats that play against each other.
        self._alone = isinstance(opponents, str) and opponents == SELF
        if self._alone and (self.zero_sum or seat is not None):
            why = "its seats play against each other" if self.zero_sum else f"leave out seat={seat}"
            raise UserError(f"opponents='self' gives one player all seats of {self.title}: {why}.")

        # Past turns are stored for policies; the game's own players need none.
        self._table = Table(self, alone=self._alone)
        self._players = [] if self._alone else self._read_opponents(opponents)
        self._table.remembers = {s for s, player in enumerate(self._players) if not isinstance(player, str)}
        self.seat_now = self.seat or 0  # of this episode, or of the next step with `opponents="self"`
        self._readings: dict[int, Reading] = {}

    @property
    def title(self) -> str:
        """The id, or the class's name without a card."""
        return self._title()

    def match_move(self, wanted: str, seat: int) -> str | None:
        """Return the legal action of a seat that the parser's candidate means, or `None`."""
        return match_legal(wanted, self.moves(seat))

    def match_action(self, wanted: str) -> str | None:
        if self.seat_now in self._table.movers:
            return self.match_move(wanted, self.seat_now)
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
        drawn, seeds = draw_seeds(rng, self.seats)
        self.seat_now = drawn if self.seat is None else self.seat
        self._table.seed = self.reset_seed
        self._table.begin(seeds, options)
        self._readings = {}
        if self._alone:
            self.seat_now = next(iter(self._table.movers), self.seat_now)
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
            self._play_round({self.seat_now: reading})
            self._let_others_move()
        return Outcome(table.earned[self.seat_now], table.terminated, table.truncated, table.feedback)

    def _fail(self, failure: str, executed: list[str], reward: float) -> tuple[list[str], Outcome, str]:
        seat = self.seat_now
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
        return self.draw(self.seat_now)

    def describe(self) -> str:
        return self.describe_view(self.seat_now)

    def task(self) -> str:
        return self.goal(self.seat_now)

    def state_text(self) -> str:
        return self.tell(self.seat_now)

    def legal_actions(self) -> list[str]:
        """Return this seat's legal actions; `wait` if the game ended before its first move."""
        if self._table.over:
            return [] if self._ended else [WAIT]
        return self._table.legal(self.seat_now)

    def success(self) -> bool:
        return self._table.success[self.seat_now]

    def oracle(self) -> str | None:
        return self.advise(self.seat_now) if self.seat_now in self._table.movers else None

    def think(self, action: str) -> str:
        return self.explain(self.seat_now, action)

    def score(self) -> float | None:
        return self.points(self.seat_now)

    def extra_info(self) -> dict[str, Any]:
        return {**self.details(self.seat_now), "seat": self.seat_now}

    def save(self) -> dict[str, Any] | None:
        """Return the moves of all seats: a restore asks no opponent again."""
        if self._start is None:
            return None
        options = copy.deepcopy(self._start["options"])
        saved = {"options": options, "seat": self.seat_now, "table": self._table.save()}
        if self._alone:
            readings = self._readings.items()
            saved["held"] = {str(seat): [each.action, each.failure] for seat, each in readings}
        return saved

    def load(self, state: dict[str, Any]) -> None:
        options = read_reset_options(self, state["options"])
        options.pop(LEVEL, None)
        self.seat_now = check_seat(self, state["seat"])
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
        self._readings[self.seat_now] = reading
        if self._readings.keys() >= set(table.movers):
            moves, self._readings = self._readings, {}
            reward += table.play(moves).rewards[0]
        left = [seat for seat in table.movers if seat not in self._readings]
        self.seat_now = left[0] if left else self.seat_now
        self._failure = table.failures[self.seat_now]
        self._write_instructions()
        return Outcome(reward, table.terminated, table.truncated, table.feedback)

    def _turn_limit(self) -> int:
        return self.max_turns * self.seats if self._alone else self.max_turns

    def _turn_number(self) -> int:
        return self._table.turns[self.seat_now] if self._alone else self.turn

    # ---- the others

    def _let_others_move(self) -> None:
        while not self._table.over and self.seat_now not in self._table.movers:
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
            raise UserError(f"opponents={{...}} names seats, so say which is yours: seat=0 to seat={self.seats - 1}.")

        # A dict has one player for each seat but the own one; in JSON its keys are strings.
        players: dict[int, Any] = {}
        for key, player in opponents.items():
            number = int(key) if isinstance(key, str) and key.isdigit() else key
            seat = check_seat(self, number, "opponents: seat")
            if seat == self.seat:
                raise UserError(f"opponents gives a player to seat {seat}, which is yours; leave it out.")
            players[seat] = self.check_player(f"opponents[{seat}]", player)
        if missing := [str(seat) for seat in range(self.seats) if seat not in {self.seat, *players}]:
            raise UserError(f"opponents has no player for seat {', '.join(missing)}; give one, such as 'random'.")
        return [players.get(seat, "random") for seat in range(self.seats)]

    def check_player(self, name: str, player: Any) -> Any:
        """Return a player, one of `named_players` or a policy; `name` is of the argument.

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
