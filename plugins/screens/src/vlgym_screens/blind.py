"""A blind player that knows where buttons usually are."""

import re

from vlgym.sight.blind import BlindPlayer

CELLS = {
    "button": (75, 300),
    "checkbox": (75, 425),
    "choice": (75, 525),
    "field": (75, 300),
    "icon at": (25, 25),
    "icon of": (175, 750),
    "list": (75, 400),
    "minus button": (725, 275),
    "plus button": (875, 400),
    "row": (275, 525),
    "slider": (525, 750),
    "switch": (75, 725),
    "tab": (375, 100),
}
"""Kind of element -> the place that hits it most often in train, by `tests/players.py`."""
_ICON = re.compile(r"icon (?:of|at)")
_KIND = re.compile(r"the (row|tab|button|switch|checkbox|choice|slider|minus button|plus button|list|field) ")


def find_kind(sentence: str) -> str:
    """Return the kind of element that a sentence names; empty where it names none."""
    match = _ICON.search(sentence) or _KIND.search(sentence)
    return match.group(match.lastindex or 0) if match else ""


class Habit(BlindPlayer):
    """Clicks where elements of the named kind mostly stand; without one on rows, or goes back."""

    name = "habit"

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return a click, or `back()`."""
        kind = find_kind(text)
        if kind in CELLS:
            x, y = CELLS[kind]
            return f"click({x}, {y})"
        return "back()" if self.rng.random() < 0.2 else f"click(500, {self.rng.randrange(120, 950)})"
