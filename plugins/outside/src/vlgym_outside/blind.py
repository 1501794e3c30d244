"""A blind player of BabyAI."""

import random

from vlgym.sight.blind import BlindPlayer

_DEEDS = {"pick": ("pick up",), "open": ("toggle",), "put": ("pick up", "drop")}


class Rover(BlindPlayer):
    """Turns, goes straight on, and repeats; after every move it does what the mission's verb asks."""

    name = "rover"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._plan: list[str] = []

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        if not self._plan:
            verb = text.partition("Your mission: ")[2].partition(" ")[0]
            turns = [self.rng.choice(("turn left", "turn right"))] * self.rng.randint(1, 2)
            for move in (*turns, *["go forward"] * self.rng.randint(1, 5)):
                self._plan.append(move)
                if verb in _DEEDS:
                    self._plan.append(self.rng.choice(_DEEDS[verb]))
        return self._plan.pop(0)
