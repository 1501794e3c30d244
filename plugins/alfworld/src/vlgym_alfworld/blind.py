"""Blind players of ALFWorld.

Listed admissible commands name things; with action templates the numbers of things must be guessed.
"""

import random
import re
from collections import Counter

from vlgym.sight.blind import BlindPlayer

_TASK = re.compile(r"Your task is to: (.*)")
_TAKE = re.compile(r"take (\S+ \d+) from .+")
_PUT = re.compile(r"(?:move|put) (\S+ \d+) (?:to|in|on|in/on) (\S+) \d+")
TREATMENTS = {  # command: the task's words that ask for it, the furniture where it is done
    "clean": ({"clean"}, "sinkbasin"),
    "heat": ({"heat", "hot"}, "microwave"),
    "cool": ({"cool", "cold"}, "fridge"),
}
NUMBERS = range(10, 100)  # among these the numbers of things are drawn with action templates
TURNS = 50
_BUDGET = re.compile(r"You have (\d+) turns")
_LIKELY = (  # where most things lie, the likeliest first; nearly all of it without doors
    "countertop", "diningtable", "sidetable", "desk", "bed",
    "coffeetable", "dresser", "shelf", "sofa", "cabinet",
)  # fmt: skip
_STANDS = ("desk", "sidetable", "dresser", "shelf", "coffeetable", "diningtable")
_FILLER_WORDS = (
    "put some a an the in on it and them two find look at under examine clean heat hot cool cold "
    "chilled heated cleaned to with of is that you your place into by light lit inside microwave "
    "fridge sinkbasin desklamp"
)
_FILLERS = frozenset(_FILLER_WORDS.split())


def _read_task(text: str) -> list[str]:
    match = _TASK.search(text)
    return re.findall(r"[a-z]+", match[1].lower()) if match else []


def _list_places(legal: tuple[str, ...]) -> list[str]:
    return [command.removeprefix("go to ") for command in legal if command.startswith("go to ")]


def _find_treatment(words: set[str]) -> str:
    return next((verb for verb, (named, _) in TREATMENTS.items() if words & named), "")


class Searcher(BlindPlayer):
    """Goes round the furniture and opens it, until a command names a thing of the task.

    It takes the thing, treats it where the task asks for that, and brings it where the task says.
    """

    name = "goes round"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._visits: Counter[str] = Counter()
        self._opened: set[str] = set()
        self._placed: set[str] = set()
        self._held = ""
        self._treated = False

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        words = set(_read_task(text))
        command = self._work(words, legal) if self._held else self._fetch(words, legal)
        command = command or self._search(words, legal)

        # No answer tells what a command did, so each is taken to have worked.
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
        """Return the command that takes an object of the task's kind, other than those placed."""
        taking = (match for match in map(_TAKE.fullmatch, legal) if match)
        return next((m[0] for m in taking if m[1].split()[0] in words and m[1] not in self._placed), "")

    def _work(self, words: set[str], legal: tuple[str, ...]) -> str:
        """Return the command that treats, puts down or lights the load, where one is possible here."""
        verb, looks = self._missing(words), words & {"look", "examine"}
        if verb or looks:
            start = f"{verb} {self._held} " if verb else "use "
            return next((command for command in legal if command.startswith(start)), "")
        putting = (match for match in map(_PUT.fullmatch, legal) if match)
        own = (match for match in putting if match[1] == self._held)
        return next((match[0] for match in own if match[2] in words), "")

    def _search(self, words: set[str], legal: tuple[str, ...]) -> str:
        """Open closed furniture here; else go to the task's next place, or where it was least."""
        doors = [command for command in legal if command.startswith("open ")]
        if closed := [command for command in doors if command not in self._opened]:
            return closed[0]
        places = _list_places(legal)
        verb = self._missing(words)
        kinds = {TREATMENTS[verb][1]} if verb else words
        aimed = [place for place in places if place.split()[0] in kinds] if self._held else []
        if not places:
            return legal[0] if legal else ""
        return f"go to {min(aimed or places, key=self._visits.__getitem__)}"

    def _missing(self, words: set[str]) -> str:
        """Return the treatment that the task asks for and that the load lacks, if any."""
        return "" if self._treated or not self._held else _find_treatment(words)


class Guesser(BlindPlayer):
    """Goes where the task's thing may lie, guesses its number again and again, treats and brings it.

    It cannot know which guess was right, so every guess is repeated at each place of the way.
    """

    name = "guesses numbers"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._plan: list[str] | None = None

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        if self._plan is None:
            self._plan = self._make_plan(text, _list_places(legal))
        return self._plan.pop(0) if self._plan else next(iter(legal), "look")

    def _make_plan(self, text: str, places: list[str]) -> list[str]:
        words, budget = _read_task(text), _BUDGET.search(text)
        kinds = {place.split()[0] for place in places}
        thing = next((word for word in words if word not in _FILLERS and word not in kinds), "")
        parent = next((place for place in places if place.split()[0] in words), "")
        verb = _find_treatment(set(words))

        # Stages: where to take it from, where to treat it, where to bring it.
        source = self._pick([place for place in places if place.split()[0] not in words], _LIKELY)
        stages = [(source, "take {} from {}")]
        if verb:
            stages.append((self._pick(places, (TREATMENTS[verb][1],)), f"{verb} {{}} with {{}}"))
        if {"look", "examine"} & set(words):
            stages.append((self._pick(places, _STANDS), "use desklamp #{number}"))
        else:
            stages.append((parent, "move {} to {}"))

        # As many guesses at each stage as the turns allow.
        turns = int(budget[1]) if budget else TURNS
        guesses = self.rng.sample(NUMBERS, min(len(NUMBERS), max(1, turns // len(stages) - 2)))
        plan = []
        for place, form in stages:
            plan.append(f"go to {place}")
            if place and place == parent:
                plan.append(f"open {place}")
            plan += [form.format(f"{thing} #{number}", place, number=number) for number in guesses]
        return plan

    def _pick(self, places: list[str], kinds: tuple[str, ...]) -> str:
        """Return a place of the first of these kinds that exists; any place if none does."""
        ranked = [place for kind in kinds for place in places if place.split()[0] == kind]
        return next(iter(ranked or places), "")
