"""Claims: places in a reply that ask for an action. The first legal one is read, and ends it.

A claim of something else, such as a quoted placeholder, ends nothing. Where none is legal, the last
one is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from ..types import Match, Parsed

MOST_CLAIMS = 256  # of one form; more are no honest reply


class Claim(NamedTuple):
    """Words that may be actions, at `[start, end)`; the claim ends with its mark, at `stop`.

    Without words `actions` is `("",)`; for a number of no action it is `()`.
    """

    actions: tuple[str, ...]
    start: int
    end: int
    stop: int


def accept(legal: Sequence[str] | None, matches: Match | None) -> Callable[[str], bool]:
    """Return the test of words: the environment's match, else the list, else any words."""
    if matches is not None:
        return lambda word: matches(word) is not None
    if legal is not None:
        return lambda word: match_legal(word, legal) is not None
    return bool


def find_legal(claims: Iterable[Claim], accepts: Callable[[str], bool]) -> tuple[Claim | None, Claim | None]:
    """Return the first claim whose first action is accepted, and the last one looked at."""
    last = None
    for last in islice(claims, MOST_CLAIMS):
        if last.actions and last.actions[0] and accepts(last.actions[0]):
            return last, last
    return None, last


def read_claims(claims: Iterable[Claim], accepts: Callable[[str], bool], otherwise: str) -> Parsed:
    """Return the first legal claim's actions, else the last one's, else the failure `otherwise`."""
    _, claim = find_legal(claims, accepts)
    if claim is None:
        return Parsed(failure=otherwise)
    if not claim.actions or not claim.actions[0]:
        return Parsed(failure="empty_action" if claim.actions else "illegal_action")
    return Parsed(claim.actions, span=(claim.start, claim.end))


def find_stop(claims: Iterable[Claim], accepts: Callable[[str], bool]) -> int | None:
    """Return where the first legal claim ends, or `None`."""
    legal, _ = find_legal(claims, accepts)
    return None if legal is None else legal.stop


def match_legal(action: str, legal: Sequence[str]) -> str | None:
    """Return the legal action that `action` spells, or `None`.

    Case and runs of white space do not matter; everything else does (`cabinet 1` never matches
    `cabinet 10`).
    """
    if action in legal:
        return action
    wanted = " ".join(action.split()).casefold()
    for candidate in legal:
        if " ".join(candidate.split()).casefold() == wanted:
            return candidate
    return None
