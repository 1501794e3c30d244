"""Check that a parser's time grows in proportion to the length of a reply.

A model may write anything, and one reply that takes seconds to read stops a whole batch. The strings that are tried
repeat each piece of the parser's own format between others, which is where pattern matching becomes slow. A parser that
is slow on other strings only is not found.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..env.seeding import episode_seed
from ..parsers import get_parser
from ..types import Parser
from .subject import CheckFailure, Subject

LENGTHS = (2_000, 4_000, 8_000, 16_000)
"""Lengths in characters."""

MOST_GROWTH = 9.0
"""Largest ratio of the times at a length and at a quarter of it: 4 for linear time, 16 for quadratic."""

WORTH_S = 0.02
"""Time below which a ratio says nothing."""

ENDLESS_S = 0.05
"""Time that no reply of at most 40 characters may take: it doubles with every few characters more."""

_PIECE = re.compile(r"</?\w+>|\w+|\s|[^\w\s]+")
_COMMON = (" ", "\n", "\t ", "a", "<", ">", "</", "{", "}", '"', "\\", "`", "~", "[", "(", ";", ",", "\u00e9")
_ENDS = ("", "`", "!", "\n!", ">", '"')


@dataclass(frozen=True)
class Slowest:
    """The string that took longest for its length.

    Attributes:
        shape: prefix, repeated piece and end.
        seconds: processor time at each of `LENGTHS`, as far as it was measured; one alone: at 40 characters at most.
    """

    shape: tuple[str, str, str]
    seconds: tuple[float, ...]

    @property
    def growth(self) -> float:
        """Largest ratio of the times at a length and at a quarter of it; 1 where all are too short to tell."""
        if len(self.seconds) < 2:
            return float("inf")
        pairs = zip(self.seconds[2:], self.seconds, strict=False)
        return max((long / max(short, 1e-6) for long, short in pairs if long > WORTH_S), default=1.0)

    @property
    def linear(self) -> bool:
        """True if the time grows in proportion to the length."""
        return self.growth <= MOST_GROWTH


def measure_parser(parser: Parser, legal: Sequence[str] = ()) -> Slowest:
    """Return the slowest of some hundred strings: one whose time grows too fast, where there is one, else any."""
    worst = Slowest(("", "", ""), (0.0,) * len(LENGTHS))
    for shape in write_shapes(parser, legal):
        if any(_time(parser, legal, shape, length) > ENDLESS_S for length in range(16, 44, 4)):
            return Slowest(shape, (ENDLESS_S,))
        if _time(parser, legal, shape, LENGTHS[1]) < WORTH_S / 16:  # even if quadratic, short enough at the longest
            continue
        seconds: list[float] = []
        for length in LENGTHS:
            # Twice, and the faster: the machine may have been busy.
            seconds.append(min(_time(parser, legal, shape, length) for _ in range(2)))
            if len(seconds) > 2 and not (found := Slowest(shape, tuple(seconds))).linear:
                return found
        worst = max(worst, Slowest(shape, tuple(seconds)), key=lambda one: one.seconds[-1])
    return worst


def write_shapes(parser: Parser, legal: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (prefix, piece to be repeated, end) for the pieces of the parser's own format and common characters."""
    reply = parser.format([legal[0]] if legal else [], "I think.")
    marks = list(dict.fromkeys(piece for piece in _PIECE.findall(reply) if not piece.isspace()))[:12]
    lines = [line for line in dict.fromkeys(reply.splitlines()) if line][:3]
    units = list(dict.fromkeys((*_COMMON, *marks, *(f"{mark}\n" for mark in marks), *(f"{line}\n" for line in lines))))
    prefixes = list(dict.fromkeys(("", *marks[:6], *(reply[: reply.find(mark) + len(mark)] for mark in marks[:6]))))
    yield from itertools.product(prefixes, units, _ENDS)


def write_string(shape: tuple[str, str, str], length: int) -> str:
    """Return the string of a shape with `length` characters."""
    prefix, piece, end = shape
    room = max(0, length - len(prefix) - len(end))
    return prefix + (piece * (room // len(piece) + 1))[:room] + end


def check_parser_time(subject: Subject) -> str:
    """Fail where a parser's time grows faster than a reply's length."""
    env = subject.make()
    env.reset(seed=episode_seed(subject.spec.id, "train", 0))
    legal = env.legal_actions()
    env.close()
    told = []
    for style in subject.spec.reply_styles:
        parser = get_parser(style)
        slowest = measure_parser(parser, legal)
        if not slowest.linear:
            raise CheckFailure(
                f"{style}: prefix, repeated piece and end {slowest.shape!r} took {slowest.seconds[-1]:.2f} s, "
                f"{slowest.growth:.0f} times as long as at a quarter of the length; a parser must be linear"
            )
        told.append(parser.name)
    return f"linear in the reply's length up to {LENGTHS[-1]:,} characters: {', '.join(told)}"


def _time(parser: Parser, legal: Sequence[str], shape: tuple[str, str, str], length: int) -> float:
    text = write_string(shape, length)
    begun = time.thread_time()
    parser.parse(text, legal)
    return time.thread_time() - begun
