"""What can be won in ALFWorld without the picture: the list of admissible commands names what is there."""

from __future__ import annotations

import random
import re
from collections import Counter

from vlgym.blind import BlindPlayer

_TASK = re.compile(r"Your task is to: (.*)")
_TAKE = re.compile(r"take (\S+ \d+) from .+")
_PUT = re.compile(r"(?:move|put) (\S+ \d+) (?:to|in|on|in/on) (\S+) \d+")
TREATMENTS = {
    "clean": ({"clean"}, "sinkbasin"),
    "heat": ({"heat", "hot"}, "microwave"),
    "cool": ({"cool", "cold"}, "fridge"),
}
"""Command, the task's words that ask for it, and the furniture where it is done."""


class Searcher(BlindPlayer):
    """Goes round the furniture, opens it, takes what the task names as soon as a command names it, treats it where the
    task asks for that, and brings it where the task says."""

    name = "goes round"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._visits: Counter[str] = Counter()
        self._opened: set[str] = set()
        self._placed: set[str] = set()
        self._held = ""
        self._treated = False

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return the next command, and remember what it does."""
        found = _TASK.search(text)
        words = set(re.findall(r"[a-z]+", found[1].lower())) if found else set()
        command = self._work(words, legal) if self._held else self._fetch(words, legal)
        command = command or self._search(words, legal)
        if taken := _TAKE.fullmatch(command):
            self._held, self._treated = taken[1], False
        elif put := _PUT.fullmatch(command):
            self._held = ""
            self._placed.add(put[1])
        elif command.startswith("go to "):
            self._visits[command.removeprefix("go to ")] += 1
        elif command.startswith("open "):
            self._opened.add(command)
        elif command.startswith(tuple(TREATMENTS)):
            self._treated = True
        return command

    def _fetch(self, words: set[str], legal: tuple[str, ...]) -> str:
        """The command that takes something of the kind that the task names, other than what was placed."""
        taking = (match for match in map(_TAKE.fullmatch, legal) if match)
        return next((m[0] for m in taking if m[1].split()[0] in words and m[1] not in self._placed), "")

    def _work(self, words: set[str], legal: tuple[str, ...]) -> str:
        """The command that treats, puts down or looks at what is held, where one is possible here."""
        verb = self._missing(words)
        if verb:
            return next((command for command in legal if command.startswith(f"{verb} {self._held} ")), "")
        if words & {"look", "examine"}:
            return next((command for command in legal if command.startswith("use ")), "")
        putting = (match for match in map(_PUT.fullmatch, legal) if match)
        return next((match[0] for match in putting if match[1] == self._held and match[2] in words), "")

    def _search(self, words: set[str], legal: tuple[str, ...]) -> str:
        """Open what is closed here; else go where the next thing is to be done, or to what was visited least."""
        closed = [command for command in legal if command.startswith("open ") and command not in self._opened]
        if closed:
            return closed[0]
        places = [command.removeprefix("go to ") for command in legal if command.startswith("go to ")]
        verb = self._missing(words)
        kinds = {TREATMENTS[verb][1]} if verb else words
        aimed = [place for place in places if place.split()[0] in kinds] if self._held else []
        if not places:
            return legal[0] if legal else ""
        return f"go to {min(aimed or places, key=self._visits.__getitem__)}"

    def _missing(self, words: set[str]) -> str:
        """The treatment that the task asks for and that what is held lacks; empty if there is none."""
        asked = (verb for verb, (named, _) in TREATMENTS.items() if words & named)
        return "" if self._treated or not self._held else next(asked, "")
