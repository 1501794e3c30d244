"""Checks of games of several agents: who moves, what a seat must not see, and what the class declares of itself.

One function for each property: it returns its evidence in a line, or raises `CheckFailure`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..env.seeding import episode_seed
from ..games.multi import MultiVLEnv
from ..games.table import Table
from ..registry.making import build
from .playing import GARBAGE, Deadline, digest_picture
from .subject import Subject, require

GAMES = 20
"""Games that are played at random for a check; fewer, and at least `FEWEST_GAMES`, where the time is up."""

FEWEST_GAMES = 4
SECONDS = 6.0


def check_seats(subject: Subject) -> str:
    """Games of random moves keep the rules of turns, rewards and restoring.

    Every mover has legal actions. A game is over when no seat moves. Every round pays every seat. An unreadable reply
    of one seat stalls no other. The oracle of every seat names a legal action, the same one twice. Asking for a seat's
    actions or observation changes nothing. A restored game says the same to every seat.

    Sees: all that in 20 random games with every fourth reply unreadable. Cannot see: what no random game reaches.
    """
    rounds, table, other = 0, _open(subject), _open(subject)
    seats, unsure = table.game.seats, np.random.default_rng(1)
    for index in _games(subject, table, 30):
        while not table.over:
            movers = table.movers
            known = len(set(movers)) == len(movers) and set(movers) <= set(range(seats))
            require(movers and known, f"the game is not over, and the seats that move are {movers!r}")
            before = _views(table)

            # Each mover is asked everything twice: asking may change nothing.
            for seat in movers:
                legal = table.legal(seat)
                plain = all(isinstance(action, str) and action.strip() for action in legal)
                require(legal and plain, f"seat {seat} moves and its legal actions are {legal!r:.80}")
                require(len(set(legal)) == len(legal), f"a legal action of seat {seat} is listed twice")
                advice = table.game.advise(seat)
                require(advice is None or advice in legal, f"the oracle of seat {seat} names {advice!r:.60}, not legal")
                require(advice == table.game.advise(seat), f"asked twice, the oracle of seat {seat} says two things")
                idle = table.game.idle(seat)
                require(idle is None or idle in legal, f"the idle action {idle!r:.60} of seat {seat} is not legal")
            require(_views(table) == before, "asking what the seats may do changes what they see")

            # Every fourth round one reply is unreadable, and may stall nobody.
            replies = _choose(table, unsure)
            if unsure.random() < 0.25:
                replies[movers[0]] = GARBAGE
            turns = sum(table.turns)
            done = table.step(replies)
            rounds += 1
            require(sum(table.turns) == turns + len(movers), "a round with an unreadable reply was not executed")
            paid = done.rewards
            require(all(math.isfinite(reward) for reward in paid), f"a round paid {paid!r:.80}")
        require(not table.terminated or not table.game.movers(), "the game is over, and yet a seat moves")

        # A few games are restored: it replays all their moves, which takes long.
        if index < 3:
            other.load(table.save())
            require(_views(other) == _views(table), "a restored game says something else to a seat")
    return f"{rounds} rounds of random games among {seats} seats"


def check_zero_sum(subject: Subject) -> str:
    """The rewards of every round of a `zero_sum` game add up to 0.

    Sees: a round of 20 random games that pays out more or less. Cannot see: what no random game reaches.
    """
    table, rounds = _open(subject), 0
    if not table.game.zero_sum:
        return "not declared"
    for index in _games(subject, table, 60):
        rng = np.random.default_rng(index)
        while not table.over:
            rewards, rounds = table.step(_choose(table, rng)).rewards, rounds + 1
            require(abs(sum(rewards)) < 1e-9, f"a round paid {rewards}, which does not add up to 0")
    return f"{rounds} rounds add up to 0"


def check_hidden(subject: Subject) -> str:
    """A seat sees nothing of what is hidden from it. In a class with `hidden_information`, a change of what is hidden
    from a seat shows nothing of itself to that seat.

    Its picture, its text, its legal actions and its info (feedback, success, score) stay the same, in every state of 20
    random games. Another seat sees the change.

    Sees: a hand that is drawn, told or listed to the wrong seat. Cannot see: what `redeal` leaves as it is.
    """
    return find_leaks(subject, GAMES, SECONDS)


def find_leaks(subject: Subject, games: int, seconds: float = math.inf) -> str:
    """Run `check_hidden` over `games` games; a plugin's own test may play more."""
    table, other = _open(subject), _open(subject)
    if not table.game.hidden_information:
        return "not declared: every seat sees all"
    states = changed = 0
    for index in _games(subject, table, 90, games, seconds):
        rng = np.random.default_rng(index)
        while True:
            seat = int(rng.integers(table.game.seats))
            other.load(table.save())
            before = _views(table)
            require(_views(other) == before, "a restored game says something else to a seat")
            states += 1
            if other.game.redeal(seat, rng):
                after = _views(other)
                parts = ("picture", "text", "legal actions", "info")
                for part, one, two in zip(parts, before[seat], after[seat], strict=True):
                    require(one == two, f"the {part} of seat {seat} tells what is hidden from it")
                require(before != after, f"redeal says that it changed what seat {seat} does not see; no seat sees it")
                changed += 1
            if table.over:
                break
            table.step(_choose(table, rng))
    require(changed, f"nothing that is hidden could be changed in {states} states")
    return f"{changed} hidden changes in {states} states: nothing of them shows"


def check_at_once(subject: Subject) -> str:
    """Moves made at once do not show before all are made.

    Reading one seat's reply changes nothing for another, and the order in which the moves arrive does not matter. In a
    class with `at_once` every seat moves in every round.

    Sees: a reply that is acted on when it is read, rules that go by the order, and a seat that waits, in 20 random
    games. Cannot see: rules that favour a seat by its number.
    """
    table, other, rounds = _open(subject), _open(subject), 0
    for index in _games(subject, table, 120):
        rng = np.random.default_rng(index)
        while not table.over:
            movers, replies = table.movers, _choose(table, rng)
            every = len(movers) == table.game.seats or not table.game.at_once
            require(every, f"declared at_once, and only the seats {movers} move")
            if len(movers) > 1:
                before = _views(table)
                readings = {seat: table.read(seat, replies[seat]) for seat in movers}
                require(_views(table) == before, "a seat's move shows before all have moved")
                other.load(table.save())
                one = table.play(readings)
                two = other.play(dict(reversed(readings.items())))
                same = one == two and _views(table) == _views(other)
                require(same, f"the order in which moves arrive matters: {one.rewards} and {two.rewards}")
                rounds += 1
            else:
                table.step(replies)
    return f"{rounds} rounds at once" if rounds else "seats move in turn: never two at once"


def check_symmetry(subject: Subject) -> str:
    """A `symmetric` game stays the same with its seats reversed. With its seats in reverse order (`mirror`) it asks,
    shows and pays the same in reverse.

    Sees: a rule, picture or text that depends on a seat's number, in 20 random games. Cannot see: what `mirror` hides.
    """
    table, other, rounds = _open(subject), _open(subject), 0
    if not table.game.symmetric:
        return "not declared"
    last = table.game.seats - 1
    for index in _games(subject, table, 150):
        other.reset(seed=table.seed)
        other.mirror()
        rng = np.random.default_rng(index)
        while True:
            require(
                set(table.movers) == {last - seat for seat in other.movers},
                f"mirrored, the seats {other.movers} move where {table.movers} do",
            )

            # What a seat sees, then what a round pays: both in reverse.
            for part, one, two in zip(
                ("picture", "text", "legal actions"),
                zip(*_views(table), strict=True),
                zip(*reversed(_views(other)), strict=True),
                strict=False,  # the info names the seat
            ):
                require(one == two, f"mirrored, a seat has another {part}")
            if table.over:
                break
            replies = _choose(table, rng)
            done = table.step(replies)
            mirrored = other.step({last - seat: reply for seat, reply in replies.items()})
            require(
                np.allclose(done.rewards, mirrored.rewards[::-1]),
                f"mirrored, a round that pays {done.rewards} pays {mirrored.rewards}",
            )
            rounds += 1
    return f"{rounds} rounds are the same with the seats in reverse order"


def _open(subject: Subject) -> Table:
    game: Any = build(subject.spec, **subject.kwargs)
    require(isinstance(game, MultiVLEnv), f"{subject.spec.id} is a game of one agent")
    table = Table(game)
    table.remembers = set()
    return table


def _games(subject: Subject, table: Table, first: int, games: int = GAMES, seconds: float = SECONDS) -> Iterator[int]:
    """Begin `games` games of the train split one after the other."""
    deadline = Deadline(seconds)
    for index in range(games):
        if deadline.over and index >= FEWEST_GAMES:
            return
        table.reset(seed=episode_seed(subject.spec.id, "train", first + index))
        yield index


def _choose(table: Table, rng: np.random.Generator) -> dict[int, str]:
    chosen = {}
    for seat in table.movers:
        legal = table.legal(seat)
        chosen[seat] = table.game.parser.format([legal[int(rng.integers(len(legal)))]])
    return chosen


def _views(table: Table) -> list[tuple[str, str, tuple[str, ...], str]]:
    """Picture, whole text, legal actions and info of each seat."""
    views = []
    for seat in range(table.game.seats):
        shown, info = table.observe(seat), json.dumps(table.info(seat), sort_keys=True, default=repr)
        views.append((digest_picture(shown["image"]), shown["text"], tuple(table.legal(seat)), info))
    return views
