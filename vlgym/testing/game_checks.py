"""Checks of games of several agents: movers, hidden parts, and what the class declares."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..games.multi import MultiVLEnv
from ..games.table import Table
from ..registry.making import build
from .playing import GARBAGE, Deadline, digest_picture
from .subject import Subject, require

GAMES = 20  # random games of a check
PARTS = ("picture", "text", "legal actions", "info")  # of a seat's view
FEWEST_GAMES, SECONDS = 4, 6.0  # games that are played where the time is up, and the time


def check_seats(subject: Subject) -> str:
    """Games of random moves keep the rules of turns, rewards and restoring.

    Every mover has legal actions, and a game is over when no seat moves. An unreadable reply of one
    seat stalls no other. The oracle of every seat names a legal action, the same one twice. Asking
    changes nothing. A restored game says the same to every seat.

    Sees: all that in 20 random games with every fourth reply unreadable. Cannot see: what no random
    game reaches.
    """
    rounds, table, other = 0, _open(subject), _open(subject)
    seats, unsure = table.game.seats, np.random.default_rng(1)
    for index in _games(subject, table, 30):
        while not table.over:
            movers = table.movers
            known = len(set(movers)) == len(movers) and set(movers) <= set(range(seats))
            require(movers and known, f"the game is not over, and the seats that move are {movers!r}")

            # Asking a mover may change nothing.
            before = _views(table)
            for seat in movers:
                _ask(table, seat)
            require(_views(table) == before, "asking what the seats may do changes what they see")

            # Every fourth round one reply is unreadable, and may stall nobody.
            replies = _choose(table, unsure)
            if unsure.random() < 0.25:
                replies[movers[0]] = GARBAGE
            turns = sum(table.turns) + len(movers)
            paid = table.step(replies).rewards
            rounds += 1
            executed = sum(table.turns) == turns
            require(executed, "a round with an unreadable reply was not executed")
            require(all(map(math.isfinite, paid)), f"a round paid {paid!r:.80}")
        require(not table.terminated or not table.game.movers(), "the game is over, and yet a seat moves")

        # A few games are restored: it replays all their moves, which takes long.
        if index < 3:
            other.load(table.save())
            require(_views(other) == _views(table), "a restored game says something else to a seat")
    return f"{rounds} rounds of random games among {seats} seats"


def _ask(table: Table, seat: int) -> None:
    """Ask for a seat's legal actions, its oracle's advice, twice, and its idle action."""
    game, legal, who = table.game, table.legal(seat), f"seat {seat}"
    plain = all(isinstance(action, str) and action.strip() for action in legal)
    require(legal and plain, f"{who} moves and its legal actions are {legal!r:.80}")
    require(len(set(legal)) == len(legal), f"a legal action of {who} is listed twice")
    advice, idle = game.advise(seat), game.idle(seat)
    require(advice in (None, *legal), f"the oracle of {who} names {advice!r:.60}, not legal")
    require(advice == game.advise(seat), f"asked twice, the oracle of {who} says two things")
    require(idle in (None, *legal), f"the idle action {idle!r:.60} of {who} is not legal")


def check_zero_sum(subject: Subject) -> str:
    """The rewards of every round of a `zero_sum` game add up to 0.

    Sees: another sum in 20 random games. Cannot see: what no random game reaches.
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
    """A seat sees nothing of what is hidden from it. In a class with `hidden_information` its
    picture, text, legal actions and info stay the same when that changes.

    Sees: a hand that is drawn, told or listed to the wrong seat, in 20 random games. Cannot see:
    what `redeal` leaves as it is.
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

            # The hidden part changes in a copy of the game.
            if other.game.redeal(seat, rng):
                after = _views(other)
                for part, one, two in zip(PARTS, before[seat], after[seat], strict=True):
                    require(one == two, f"the {part} of seat {seat} tells what is hidden from it")
                redealt = f"redeal says that it changed what seat {seat} does not see"
                require(before != after, f"{redealt}; no seat sees it")
                changed += 1

            # The game itself goes on.
            if table.over:
                break
            table.step(_choose(table, rng))
    require(changed, f"nothing that is hidden could be changed in {states} states")
    return f"{changed} hidden changes in {states} states: nothing of them shows"


def check_at_once(subject: Subject) -> str:
    """Moves made at once do not show before all are made. The order in which they arrive does not
    matter. In a class with `at_once` every seat moves in every round.

    Sees: a reply that is acted on when it is read, rules that go by the order, and a seat that
    waits, in 20 random games. Cannot see: rules that favour a seat by its number.
    """
    table, other, rounds = _open(subject), _open(subject), 0
    for index in _games(subject, table, 120):
        rng = np.random.default_rng(index)
        while not table.over:
            movers, replies = table.movers, _choose(table, rng)
            every = len(movers) == table.game.seats or not table.game.at_once
            require(every, f"declared at_once, and only the seats {movers} move")
            if len(movers) == 1:
                table.step(replies)
                continue
            before = _views(table)
            readings = {seat: table.read(seat, replies[seat]) for seat in movers}
            require(_views(table) == before, "a seat's move shows before all have moved")

            # A second table gets the moves in reverse order.
            other.load(table.save())
            one, two = table.play(readings), other.play(dict(reversed(readings.items())))
            same = one == two and _views(table) == _views(other)
            require(same, f"the order in which moves arrive matters: {one.rewards} and {two.rewards}")
            rounds += 1
    return f"{rounds} rounds at once" if rounds else "seats move in turn: never two at once"


def check_symmetry(subject: Subject) -> str:
    """A `symmetric` game stays the same with its seats reversed. After `mirror` it asks, shows and
    pays the same in reverse.

    Sees: a rule, picture or text that depends on a seat's number, in 20 random games. Cannot see:
    what `mirror` hides.
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
            movers = f"mirrored, the seats {other.movers} move where {table.movers} do"
            require(set(table.movers) == {last - seat for seat in other.movers}, movers)

            # What a seat sees, apart from the info, which names the seat.
            for view, mirrored in zip(_views(table), reversed(_views(other)), strict=True):
                for part, one, two in zip(PARTS[:3], view, mirrored, strict=False):
                    require(one == two, f"mirrored, a seat has another {part}")
            if table.over:
                break

            # What a round pays.
            replies = _choose(table, rng)
            paid = table.step(replies).rewards
            reverse = other.step({last - seat: reply for seat, reply in replies.items()}).rewards
            alike = np.allclose(paid, reverse[::-1])
            require(alike, f"mirrored, a round that pays {paid} pays {reverse}")
            rounds += 1
    return f"{rounds} rounds are the same with the seats in reverse order"


def _open(subject: Subject) -> Table:
    game: Any = build(subject.spec, **subject.kwargs)
    require(isinstance(game, MultiVLEnv), f"{subject.spec.id} is a game of one agent")
    table = Table(game)
    table.remembers = set()
    return table


def _games(subject: Subject, table: Table, first: int, games: int = GAMES, seconds: float = SECONDS) -> Iterator[int]:
    """Begin `games` games of the train split, at least `FEWEST_GAMES` where the time is up."""
    deadline = Deadline(seconds)
    for index, seed in enumerate(subject.seeds(games, first)):
        if deadline.over and index >= FEWEST_GAMES:
            return
        table.reset(seed=seed)
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
