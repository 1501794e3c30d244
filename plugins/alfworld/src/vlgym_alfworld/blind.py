"""Blind players of ALFWorld. Listed admissible commands name what is there; with action templates the numbers of
things must be guessed.
"""

from __future__ import annotations

import random
import re
from collections import Counter

from vlgym.sight.blind import BlindPlayer

_TASK = re.compile(r"Your task is to: (.*)")
_TAKE = re.compile(r"take (\S+ \d+) from .+")
_PUT = re.compile(r"(?:move|put) (\S+ \d+) (?:to|in|on|in/on) (\S+) \d+")
TREATMENTS = {
    "clean": ({"clean"}, "sinkbasin"),
    "heat": ({"heat", "hot"}, "microwave"),
    "cool": ({"cool", "cold"}, "fridge"),
}
"""Command, the task's words that ask for it, and the furniture where it is done."""

NUMBERS = range(10, 100)
"""Among these the numbers of things are drawn with action templates."""

TURNS = 50
_BUDGET = re.compile(r"You have (\d+) turns")
_LIKELY = (
    "countertop", "diningtable", "sidetable", "desk", "bed", "coffeetable", "dresser", "shelf", "sofa", "cabinet",
)  # fmt: skip
"""Furniture where most things lie, the likeliest first; nearly all of it without doors."""

_STANDS = ("desk", "sidetable", "dresser", "shelf", "coffeetable", "diningtable")
_FILLER_WORDS = (
    "put some a an the in on it and them two find look at under examine clean heat hot cool cold chilled heated "
    "cleaned to with of is that you your place into by light lit inside microwave fridge sinkbasin desklamp"
)
_FILLERS = frozenset(_FILLER_WORDS.split())


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
        match = _TASK.search(text)
        words = set(re.findall(r"[a-z]+", match[1].lower())) if match else set()
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
        verbs = (verb for verb, (named, _) in TREATMENTS.items() if words & named)
        return "" if self._treated or not self._held else next(verbs, "")


class Guesser(BlindPlayer):
    """Goes where the task's thing may well lie, guesses its number again and again, and then treats and brings all that
    it may hold by now. It cannot know which guess was right, so every guess is repeated at each place of the way."""

    name = "guesses numbers"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._plan: list[str] | None = None

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return the next command of the plan; when it is done, go anywhere."""
        if self._plan is None:
            self._plan = self._make_plan(text, [c.removeprefix("go to ") for c in legal if c.startswith("go to ")])
        return self._plan.pop(0) if self._plan else next(iter(legal), "look")

    def _make_plan(self, text: str, places: list[str]) -> list[str]:
        match, budget = _TASK.search(text), _BUDGET.search(text)
        words = re.findall(r"[a-z]+", match[1].lower()) if match else []
        kinds = {place.split()[0] for place in places}
        thing = next((word for word in words if word not in _FILLERS and word not in kinds), "")
        parent = next((place for place in places if place.split()[0] in words), "")
        verb = next((verb for verb, (named, _) in TREATMENTS.items() if named & set(words)), "")
        source = self._pick([place for place in places if place.split()[0] not in words], _LIKELY)
        stages = [(source, "take {} from {}")]
        if verb:
            stages.append((self._pick(places, (TREATMENTS[verb][1],)), f"{verb} {{}} with {{}}"))
        if {"look", "examine"} & set(words):
            stages.append((self._pick(places, _STANDS), "use desklamp #{number}"))
        else:
            stages.append((parent, "move {} to {}"))
        turns = int(budget[1]) if budget else TURNS
        guesses = self.rng.sample(NUMBERS, min(len(NUMBERS), max(1, turns // len(stages) - 2)))
        plan = []
        for place, form in stages:
            plan += [f"go to {place}", *([f"open {place}"] if place and place == parent else [])]
            plan += [form.format(f"{thing} #{number}", place, number=number) for number in guesses]
        return plan

    def _pick(self, places: list[str], kinds: tuple[str, ...]) -> str:
        """Return a place of the first of these kinds that exists; any place if none does."""
        ranked = [place for kind in kinds for place in places if place.split()[0] == kind]
        return next(iter(ranked or places), "")
