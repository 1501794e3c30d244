"""Blind players of MiniWorld: a wanderer, and a circler."""

import random
import re

from vlgym.sight.blind import BlindPlayer

_DEGREES = re.compile(r"(\d+)(?:\.\d+)? degrees")
_METRES = re.compile(r"takes you (?:about )?(\d+(?:\.\d+)?) m\b")


class Wanderer(BlindPlayer):
    """Goes straight on for a while, turns by 30 to 150 degrees, and goes on; picks up now and then."""

    name = "wanderer"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._plan: list[str] = []

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        if not self._plan:
            self._plan = self._make_leg(text, legal)
        return self._plan.pop(0)

    def _make_leg(self, text: str, legal: tuple[str, ...]) -> list[str]:
        degrees = _DEGREES.search(text)
        step = max(1, int(degrees[1])) if degrees else 15
        turn = self.rng.choice(("turn left", "turn right"))
        turns = max(1, round(self.rng.uniform(30, 150) / step))
        ahead = self.rng.randint(3, 10) * max(1, 30 // step)
        leg = [turn] * turns + ["move forward"] * ahead
        if "pick up" in legal:
            for place in reversed(range(4, len(leg) + 1, 4)):
                leg.insert(place, "pick up")
        return leg


class Circler(Wanderer):
    """Goes straight on for about 4 m, turns by 45 to 90 degrees to its one side, and repeats."""

    name = "circler"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._side = rng.choice(("turn left", "turn right"))

    def _make_leg(self, text: str, legal: tuple[str, ...]) -> list[str]:
        degrees, metres = _DEGREES.search(text), _METRES.search(text)
        turn = float(degrees[1]) if degrees else 15.0
        step = float(metres[1]) if metres else 0.15
        turns = max(1, round(self.rng.uniform(45, 90) / max(1.0, turn)))
        ahead = max(1, round(self.rng.uniform(3.2, 4.8) / max(0.01, step)))
        return [self._side] * turns + ["move forward"] * ahead
