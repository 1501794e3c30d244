"""Table: all seats of one game, for a caller that drives every seat.

    table = vlgym.open_table("vlgym/TicTacToe-v0")
    table.reset(seed=0)
    while not table.over:
        table.step({seat: policies[seat].reply([table.turn(seat)])[0].text for seat in table.movers})
    print(table.returns)

It reads replies, replaces those that cannot be read, counts turns and keeps a log from which a
state is restored. It has no policy and is not a Gymnasium environment.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.seeding import np_random

from ..env.prompts import PastTurn, PromptBuilder
from ..env.reset_options import LEVEL, begin_level, plain_options
from ..env.seeding import split_of
from ..env.silence import draw_move, pay_stand_in, write_feedback
from ..env.spaces import ReplySpace, clean_text
from ..errors import UserError, check_reward
from ..parsers import list_actions, read_reply, write_reply
from ..types import Image, Parsed, Turn

WAIT = "wait"  # the one legal action of a seat that does not move now, where all must answer


@dataclass(frozen=True)
class Round:
    """Result of one round: one move of one seat, or one move of each seat that moves at once."""

    rewards: tuple[float, ...]  # of every seat, by its number
    terminated: bool = False
    truncated: bool = False  # by a limit of the game; the base class knows the turn limit
    feedback: str = ""  # one line for `info["vlgym"]["feedback"]`, with nothing that a seat may not know


@dataclass(frozen=True)
class Reading:
    """A read reply: the executed action, the parser's result, the failure code or `None`."""

    action: str
    parsed: Parsed
    failure: str | None


class Chair:
    """One seat as a policy sees it in `Turn.env`, as random and oracle policies need it."""

    def __init__(self, table: Table, seat: int) -> None:
        self.table, self.seat = table, seat
        self.parser, self.vlgym_spec = table.game.parser, table.game.vlgym_spec

    @property
    def unwrapped(self) -> Chair:
        return self

    @property
    def action_space(self) -> ReplySpace:
        return self.table.spaces[self.seat]

    def legal_actions(self) -> list[str]:
        return self.table.legal(self.seat)

    def match_action(self, wanted: str) -> str | None:
        return self.table.game.match_move(wanted, self.seat)

    def solve(self) -> str | None:
        return self.table.solve(self.seat)


class Table:
    """All seats of one game.

    Args:
        game: its rules, a `MultiVLEnv` freshly built; the table owns it.
        alone: one player holds all seats: a round in which one of its replies has no action pays
            no seat a gain, and `MultiVLEnv` takes the penalties.

    Attributes:
        movers: the seats that move now; none when the game is over.
        terminated, truncated: true if the rules, or a limit, ended the game.
        earned: each seat's pay since its last move, that move's included, or since the beginning.
        success: of each seat, true after a win that no stand-in move brought.
        shares: pay every seat the mean of all seats' rewards.
        invalid: number of each seat's replies that were unreadable or illegal.
        failures: failure code of each seat's last reply, `None` where it had an action.
        log: each round's `moves`, `failures` and `replies` where there are any; `luck` of a reseed.
        remembers: the seats whose past turns stand in their prompts (`turn`).
        builder: the prompts' layout; by default the card's.
    """

    def __init__(self, game: Any, *, alone: bool = False) -> None:
        self.game, self.alone = game, alone
        self.shares, self._penalty = alone, 0.0 if alone else game.invalid_penalty
        self.spaces = [ReplySpace(game.parser) for _ in range(game.seats)]
        self.remembers: set[int] = set(range(game.seats))
        self.seed: int | None = None
        self.over, self.movers = True, tuple[int, ...]()
        self.builder = PromptBuilder.for_env(game)
        self._rng: np.random.Generator | None = None
        self._start: dict[str, Any] = {}

    @property
    def returns(self) -> list[float]:
        """Sum of each seat's rewards."""
        return [before + now for before, now in zip(self._booked, self.earned, strict=True)]

    # ---- playing

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a game. The same seed gives the same game in any process, after any history.

        An option that the game does not know is left out with a warning, for PettingZoo's tests.
        """
        options = plain_options(options)
        if unknown := [name for name in options if name not in self.game.reset_options]:
            names = ", ".join(unknown)
            warnings.warn(f"{self.game.title} has no reset option {names}; left out.", stacklevel=2)
            options = {name: value for name, value in options.items() if name not in unknown}

        # Without a seed the generator goes on, so games follow from the first seed.
        checked = self.game._read_options(options)
        if seed is not None or self._rng is None:
            self._rng, self.seed = np_random(seed)[0], seed
            self.game.seed_split = None if seed is None else split_of(seed)
        begin_level(self.game, self._rng, checked)
        self.begin(draw_seeds(self._rng, self.game.seats)[1], checked)
        self._start["options"] = options

    def begin(self, seeds: list[int], options: dict[str, Any]) -> None:
        """Begin a game from the seeds of `draw_seeds`."""
        game, seats = self.game, self.game.seats
        self._start = {"seeds": list(seeds), "options": {}, "split": game.seed_split}
        self._seeds, self._chance = list(seeds), np.random.default_rng(seeds[0])
        self.log: list[dict[str, Any]] = []
        self.history: dict[int, list[PastTurn]] = defaultdict(list)
        self.earned, self._booked, self._unpaid = ([0.0] * seats for _ in range(3))
        self._own: list[bool | None] = [None] * seats  # true: a seat's last move was its reply's
        self.success = [False] * seats
        self.failures: list[str | None] = [None] * seats
        self.turns, self.invalid = [0] * seats, [0] * seats
        self.readings: dict[int, Reading] = {}
        self.over = self.terminated = self.truncated = False
        game.deal(self._chance, options)
        self._open()

    def _open(self) -> None:
        """Write the instructions and settle a game that was dealt."""
        game, seats = self.game, self.game.seats
        self._instructions = [game._fill_instructions(game.goal(seat)) for seat in range(seats)]
        self._settle(Round((0.0,) * seats))

    @property
    def begun(self) -> bool:
        """True from the first reset on."""
        return bool(self._start)

    def step(self, replies: Mapping[int, str]) -> Round:
        """Execute one reply of every seat that moves now; other seats' replies do nothing.

        A reply that cannot be read, is illegal or missing becomes the game's idle action, else a
        random legal one; it is counted, costs its seat `invalid_penalty`, and earns nothing.

        Raises:
            gymnasium.error.ResetNeeded: the game is over, or none was begun.
            UserError: a reply is not a string, or is of a seat that does not exist.
        """
        if self.over:
            raise gymnasium.error.ResetNeeded("The game is over (or none was begun): call reset() first.")
        for seat, reply in replies.items():
            check_seat(self.game, seat)
            if not isinstance(reply, str):
                kind = f"{type(reply).__name__}: {reply!r:.80}"
                raise UserError(f"The reply of seat {seat} must be a string, not {kind}")
        texts = {seat: replies.get(seat, "") for seat in self.movers}
        return self.play({seat: self.read(seat, text) for seat, text in texts.items()}, texts)

    def read(self, seat: int, reply: str) -> Reading:
        """Read a reply of a seat that moves now; `stand_in` replaces one without a legal action."""
        game = self.game
        parsed = read_reply(game.parser, reply, self.legal(seat), lambda wanted: game.match_move(wanted, seat))
        if parsed.failure is None and len(parsed.actions) == 1:
            action = game.match_move(parsed.actions[0], seat)
            if action is not None:
                return Reading(action, parsed, None)
        return self.stand_in(seat, parsed, parsed.failure or "illegal_action")

    def stand_in(self, seat: int, parsed: Parsed, failure: str) -> Reading:
        """Return the move that stands for a reply: the idle action, or a random one."""
        idle = None if self.game.invalid_action in ("random", "published") else self.game.idle(seat)
        return Reading(self.draw_move(seat, 1) if idle is None else idle, parsed, failure)

    def draw_move(self, seat: int, use: int) -> str:
        """Return a random legal action by the seed at the place `use` of `draw_seeds`."""
        return draw_move(self.legal(seat), self._seeds[use], seat, self.turns[seat])

    def play(self, readings: Mapping[int, Reading], replies: Mapping[int, str] | None = None) -> Round:
        """Execute the move of every seat that moves now."""
        moves, failures, texts = {}, {}, {}
        for seat, reading in readings.items():
            moves[str(seat)] = reading.action
            if reading.failure:
                failures[str(seat)] = reading.failure
            if replies and seat in replies and seat in self.remembers:
                texts[str(seat)] = replies[seat]
        entry: dict[str, Any] = {"moves": moves}
        entry |= {name: row for name, row in (("failures", failures), ("replies", texts)) if row}
        self.log.append(entry)
        self.readings = dict(readings)
        return self._execute(entry)

    # ---- a seat's view

    def legal(self, seat: int) -> list[str]:
        """Return the legal actions of a seat: `wait` out of turn, none when the game is over."""
        if self.over:
            return []
        return self.game.moves(seat) if seat in self.movers else [WAIT]

    def listed(self, seat: int) -> list[str]:
        """Return the legal actions that a seat's text lists: none if the game has a `notation`."""
        legal = self.legal(seat)
        return legal if legal == [WAIT] or not self.game.notation else []

    def turn_text(self, seat: int) -> str:
        """Return the text of a seat's current turn."""
        game, legal = self.game, self.legal(seat)
        state = game.tell(seat) + ("It is not your turn. " if legal == [WAIT] else "")
        hidden = game.notation and legal not in ([], [WAIT])
        actions = [game.notation] if hidden else list_actions(game.parser, legal)
        text = game.prompt.write_turn(state=state, actions=actions, turn=self.turns[seat], max_turns=game.max_turns)
        return clean_text(game.add_words(text, partial(game.describe_view, seat), self.failures[seat]))

    def picture(self, seat: int) -> Image:
        """Return a seat's picture, drawn once between two moves; do not write to it."""
        if seat not in self._pictures:
            self._pictures[seat] = self.game.show(partial(self.game.draw, seat))
        return self._pictures[seat]

    def observe(self, seat: int) -> dict[str, Any]:
        """Return the usual observation of a seat: `{"image": [H, W, 3] uint8, "text": str}`."""
        text = clean_text(f"{self._instructions[seat]}\n\n{self.turn_text(seat)}")
        return {"image": self.game.show(partial(self.game.draw, seat)), "text": text}

    def info(self, seat: int) -> dict[str, Any]:
        """Return the usual info of a seat, about the round before."""
        reading = self.readings.get(seat)
        failure = reading and reading.failure
        info = {**self.game.details(seat), "success": self.success[seat], "seat": seat}
        info["invalid_action"] = failure is not None
        if (score := self.game.points(seat)) is not None:
            info["score"] = float(score)

        # The same keys as of an environment of one agent.
        info["vlgym"] = {
            "turn": self.turns[seat],
            "actions": [reading.action] if reading else [],
            "parse": failure or "ok",
            "span": reading.parsed.span if reading else None,
            "form": reading.parsed.form if reading and not failure else None,
            "point": None,
            "legal_actions": self.listed(seat),
            "feedback": write_feedback(failure, self.game.parser) if failure else self.feedback,
            "instructions": self._instructions[seat],
            "turn_text": self.turn_text(seat),
        }
        return info

    def credits(self, seat: int) -> bool:
        """True if a win is a seat's: its last move was its reply's, and no gain is unpaid."""
        return bool(self._own[seat]) and (self._unpaid[seat] <= 0 or self.returns[seat] > 0)

    def turn(self, seat: int) -> Turn:
        """Return a policy's input for a seat that moves: its prompt, with the builder's history."""
        instructions, text = self._instructions[seat], self.turn_text(seat)
        messages = self.builder.build(instructions, text, self.picture(seat), self.history[seat])
        return Turn(
            messages, Chair(self, seat), self.game.title, self.seed, self.turns[seat],
            text=clean_text(f"{instructions}\n\n{text}"), legal=tuple(self.listed(seat)),
        )  # fmt: skip

    def solve(self, seat: int) -> str | None:
        """Return the oracle's reply for a seat that moves now; `None` where there is none."""
        action = self.game.advise(seat) if seat in self.movers else None
        if action is None:
            return None
        thoughts = self.game.explain(seat, action)
        return write_reply(self.game.parser, [action], thoughts, self.legal(seat))

    def mirror(self) -> None:
        """Put the seats of a game that has just begun in reverse order; for the conformance kit."""
        self.game.mirror()
        self._open()

    def reseed(self, seed: int) -> None:
        """Begin the game's further chance, and its players' random moves, at a seed."""
        self.log.append({"luck": seed})
        self._seeds = draw_seeds(np.random.default_rng(seed), self.game.seats)[1]
        self._chance.bit_generator.state = np.random.default_rng(self._seeds[0]).bit_generator.state

    # ---- saving

    def save(self) -> dict[str, Any]:
        """Return JSON-able data of the position: seeds, moves, and the last ones' spans."""
        parses = {str(seat): reading.parsed for seat, reading in self.readings.items()}
        spans = {seat: (*parsed.span, parsed.form) for seat, parsed in parses.items() if parsed.span}
        return copy.deepcopy({**self._start, "log": self.log, "spans": spans})

    def load(self, saved: Mapping[str, Any], options: dict[str, Any] | None = None) -> None:
        """Play the moves of `save` again; by default with the options of its reset."""
        self.game.seed_split = saved["split"]
        checked = self.game._read_options(saved["options"]) if options is None else dict(options)
        checked.pop(LEVEL, None)
        self.begin(saved["seeds"], checked)
        self._start["options"] = copy.deepcopy(saved["options"])
        for entry in saved["log"]:
            if "luck" in entry:
                self.reseed(entry["luck"])
                continue
            self.log.append(copy.deepcopy(entry))
            self._execute(entry)

        # The last round's readings are those of `info`; earlier records have no form.
        rounds: list[dict[str, Any]] = [entry for entry in self.log if "moves" in entry]
        last = rounds[-1] if rounds else {"moves": {}}
        for seat, action in last["moves"].items():
            span = saved["spans"].get(seat)
            form = (*span, None)[2] if span else None
            parsed = Parsed((action,), span=span and (int(span[0]), int(span[1])), form=form)
            self.readings[int(seat)] = Reading(action, parsed, last.get("failures", {}).get(seat))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy or pickle arguments, moves and generators; see `VLEnv.__reduce_ex__`."""
        names = ("spaces", "remembers", "seed", "builder", "shares", "_penalty", "_rng")
        attributes = {name: getattr(self, name) for name in names}
        return _rebuild, (self.game, self.alone, attributes, self.save() if self.begun else None)

    # ---- private

    def _execute(self, entry: Mapping[str, Any]) -> Round:
        moves = {int(seat): action for seat, action in entry["moves"].items()}
        for name, reply in entry.get("replies", {}).items():
            past = PastTurn(self.picture(int(name)), self.turn_text(int(name)), reply)
            self.history[int(name)].append(past)
        failures = {int(seat): failure for seat, failure in entry.get("failures", {}).items()}
        for seat in moves:
            self.turns[seat] += 1
            self.invalid[seat] += seat in failures
            self.failures[seat] = failures.get(seat)

        # The rewards are checked, then booked by seat.
        done = self.game.make_moves(moves)
        if len(done.rewards) != self.game.seats:
            raise TypeError(f"make_moves() returned {len(done.rewards)} rewards for {self.game.seats} seats")
        for seat, paid in enumerate(done.rewards):
            check_reward(paid, f"{self.game.title}, seat {seat}")
        mean = [float(np.mean(done.rewards))] * len(done.rewards)
        moved = {*range(self.game.seats)} if self.alone else {*moves}
        failed = moved if self.alone and failures else {*failures}
        rewards = tuple(
            self.book(seat, float(paid), seat in moved, seat in failed)
            for seat, paid in enumerate(mean if self.shares else done.rewards)
        )
        ends = bool(done.terminated), bool(done.truncated)
        return self._settle(Round(rewards, *ends, done.feedback))

    def book(self, seat: int, earned: float, moved: bool, failed: bool) -> float:
        """Book a seat's gain of a round, and return its pay.

        From a move that stands for a reply without an action until the seat's next move, losses are
        paid and gains are not; if it is the seat's first, gains before it are taken back.
        """
        if moved:
            if self._own[seat] is not None:
                self._booked[seat] += self.earned[seat]
                self.earned[seat] = 0.0
            self._own[seat] = not failed or self.game.invalid_action == "published"

        # A stand-in move earns nothing until the seat's next move.
        paid = earned
        if self._own[seat] is False:
            cost = self.game.step_cost if moved else 0.0
            paid = pay_stand_in(earned, cost) - max(self.earned[seat], 0.0)
            self._unpaid[seat] += earned - paid
        paid -= self._penalty * failed
        self.earned[seat] += paid
        return paid

    def _settle(self, done: Round) -> Round:
        self._pictures: dict[int, Image] = {}
        movers = () if done.terminated or done.truncated else self.game.movers()
        spent = any(self.turns[seat] >= self.game.max_turns for seat in movers)
        truncated = not done.terminated and (done.truncated or spent)
        self.terminated, self.truncated = done.terminated, truncated
        self.over = done.terminated or truncated
        self.movers = () if self.over else movers
        self.feedback = done.feedback

        # Success and the legal actions of the position.
        for seat, before in enumerate(self.success):
            self.success[seat] = bool(self.game.won(seat)) and (before or self.credits(seat))
        for seat, space in enumerate(self.spaces):
            space.legal = tuple(self.legal(seat))
        return Round(done.rewards, done.terminated, truncated, done.feedback)


def _rebuild(game: Any, alone: bool, attributes: Mapping[str, Any], saved: Mapping[str, Any] | None) -> Table:
    table = Table(game, alone=alone)
    vars(table).update(attributes)
    if saved is not None:
        table.load(saved)
    return table


def draw_seeds(rng: np.random.Generator, seats: int) -> tuple[int, list[int]]:
    """Return one agent's seat, and the seeds of chance, of stand-in moves, of players' random moves."""
    return int(rng.integers(seats)), rng.integers(2**62, size=3).tolist()


def check_seat(game: Any, seat: Any, name: str = "seat") -> int:
    """Return a seat's number, if the game has it."""
    number = isinstance(seat, (int, np.integer)) and not isinstance(seat, bool)
    if not number or not 0 <= seat < game.seats:
        seats = ", ".join(map(str, range(game.seats)))
        raise UserError(f"{name}={seat!r}: {game.title} has the seats {seats}.")
    return int(seat)
