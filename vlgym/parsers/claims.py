"""Claims: places in a reply that ask for an action. The first legal one is read, and ends it.

A claim of something else, such as a quoted placeholder, ends nothing.
"""

from collections.abc import Callable, Iterator, Sequence
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


class ClaimParser:
    """Reads the first legal claim; where none is legal, it reports the last one."""

    matching = True

    def parse(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> Parsed:
        """Return the claim's actions, or a failure code."""
        accepts, claim = _accept(legal, matches), None
        for claim in islice(self.list_claims(text, legal or ()), MOST_CLAIMS):
            if accepts(claim):
                break
        if claim is None:
            return Parsed(failure=self._name_failure(text))
        if not claim.actions or not claim.actions[0]:
            return Parsed(failure="empty_action" if claim.actions else "illegal_action")
        return Parsed(claim.actions, span=(claim.start, claim.end))

    def end(self, text: str, legal: Sequence[str] | None = None, matches: Match | None = None) -> int | None:
        """Return the length of `text` up to its first legal claim, or `None`."""
        claims = islice(self.list_claims(text, legal or ()), MOST_CLAIMS)
        return next((claim.stop for claim in filter(_accept(legal, matches), claims)), None)

    def list_claims(self, text: str, legal: Sequence[str]) -> Iterator[Claim]:
        """Yield the claims of a text, in order."""
        raise NotImplementedError

    def _name_failure(self, text: str) -> str:
        """Return the failure of a text without a claim."""
        return "no_action"


def _accept(legal: Sequence[str] | None, matches: Match | None) -> Callable[[Claim], bool]:
    """Return the test of a claim: the environment's match, else the list, else any words."""

    def accepts(claim: Claim) -> bool:
        word = claim.actions[0] if claim.actions else ""
        if matches is not None:
            return bool(word) and matches(word) is not None
        return bool(word) and (legal is None or match_legal(word, legal) is not None)

    return accepts


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
