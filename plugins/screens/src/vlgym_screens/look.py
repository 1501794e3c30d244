"""ScreensLook: what is asked is too small to read, and each look closer costs."""

import json
from typing import Any, ClassVar

from vlgym.types import Outcome

from .app import Builder, State, Widget
from .layout import Element
from .screens import ZOOM, ScreenEnv
from .words import Draws

_COLUMNS = 3
_REACH = (10, 5)
"""Half of the width and of the height of a tiny code, in pixels."""


class ScreensLook(ScreenEnv):
    """ScreensLook: read codes that are too small, with as few looks as needed.

    Goal: answer the code under a name, or the codes under two names, in the order in which they are
        asked for.
    Observation: a sheet of names, each with a code below, 448 x 896 pixels (`device="desktop"`:
        1120 x 672). Some codes have letters of 4 pixels; `zoom` shows a quarter of width and height
        round a place, four times as large.
    Actions: `zoom(x, y)`, 0 to 1000 over the picture (`coordinates="pixels"`: pixels),
        `zoom_out()`, `answer("words")`.
    Reward: 1 for the right answer, -0.01 a turn, and -0.05 for each look. Looking itself is never
        paid.
    Endings: terminated by the answer; truncated after 10 turns.
    Success: the answer is right, case and white space aside.
    Info: `looks`, `needed`: looks taken and needed.
    Splits: train, val and test differ by seed; seeds share no app.
    Oracle: exact: one look where one part shows all that is asked.
    References: Zheng et al., DeepEyes, 2025; Wu and Xie, V*, CVPR 2024.

    Options of `reset`: `level`, 0 to 4.

    Attributes:
        lines: lines of names on the sheet, three names each.
        asked: how many codes are asked for.
        large: share of codes that can be read without a look.
        twins: names that differ from another one in the last word only.
    """

    verbs = ("zoom", "zoom_out", "answer")
    size = "medium"
    look_cost = 0.05
    lines: int = 5
    asked: int = 1
    large: float = 0.3
    level_arguments: ClassVar = (
        {"lines": 4, "asked": 1, "large": 0.5, "twins": 0},
        {"lines": 4, "asked": 1, "large": 0.0, "twins": 0},
        {"lines": 6, "asked": 1, "large": 0.0, "twins": 0},
        {"lines": 6, "asked": 2, "large": 0.0, "twins": 0},
        {"lines": 6, "asked": 2, "large": 0.0, "twins": 8},
    )

    def build(self, draws: Draws, builder: Builder) -> None:
        screen = builder.add_screen(self.app.name)
        count = self.lines * _COLUMNS
        names = draws.people(count - self.twins)
        for name in names[: self.twins]:
            first = name.split()[0]
            people = (other for other in draws.people(1600) if other.split()[0] == first)
            names.append(next(other for other in people if other not in names))

        # The sheet; what does not fit without scrolling is left out.
        cells = [
            Widget("cell", name, draws.code(), sets=int(draws.chance(self.large)))
            for name in draws.sample(names, len(names))
        ]
        lines = [tuple(cells[at : at + _COLUMNS]) for at in range(0, len(cells), _COLUMNS)]
        self.app.screens[screen].blocks = list(lines)
        builder.decorate(screen)
        self.layout.cut(screen)

        # Right and wrong answers look alike.
        shown = [each for each in self.layout.place(State()) if each.widget.kind == "cell"]
        self.chosen = draws.sample(shown, self.asked)
        self.code = " ".join(each.widget.detail for each in self.chosen)
        others = [each.widget.detail for each in shown if each not in self.chosen]
        others += [draws.code() for _ in range(24)]
        answers = {self.code}
        while len(answers) < 24:
            answers.add(" ".join(draws.sample(others, self.asked)))
        self.spelled = sorted(answers)
        self.looks, self.read = 0, [bool(each.widget.sets) for each in self.chosen]

    def act(self, action: str) -> Outcome:
        if action.startswith("answer("):
            answer = "".join(json.loads(action[len("answer(") : -1]).replace(",", " ").split())
            self.solved = answer.casefold() == self.code.replace(" ", "").casefold()
            return Outcome(float(self.solved) - self.step_cost, terminated=True)
        if action == "zoom_out()":
            self.zoomed = None
            return Outcome(-self.step_cost)
        point = self.find_point(action)
        self.zoomed = self.part_round(*(self.read_point(action) or (0, 0)))
        self.looks += 1
        self.read = [done or self._shows(each) for done, each in zip(self.read, self.chosen, strict=True)]
        return Outcome(-self.step_cost - self.look_cost, point=point)

    def part_round(self, x: float, y: float) -> tuple[int, int]:
        """Return the upper left corner of the part that a look at a place shows."""
        width, height = self.layout.width // ZOOM, self.layout.height // ZOOM
        left = min(self.layout.width - width, max(0, round(x - width / 2)))
        return left, min(self.layout.height - height, max(0, round(y - height / 2)))

    def legal_actions(self) -> list[str]:
        shares = [(2 * at + 1) / (2 * ZOOM) for at in range(ZOOM)]
        places = [(self.layout.width * x, self.layout.height * y) for y in shares for x in shares]
        looks = [self.write_point("zoom", *place) for place in places if self.part_round(*place) != self.zoomed]
        looks += ["zoom_out()"] * (self.zoomed is not None)
        return looks + [f"answer({json.dumps(word)})" for word in self.words()]

    def words(self) -> list[str]:
        return self.spelled

    def oracle(self) -> str | None:
        if self._ended:
            return None
        left = [each for each, done in zip(self.chosen, self.read, strict=True) if not done]
        if not left:
            return f"answer({json.dumps(self.code)})"
        centre = _middle(left) if len(left) > 1 and self._fit(left) else _middle(left[:1])
        return self.write_point("zoom", *centre)

    def explain(self, action: str) -> str:
        if action.startswith("answer"):
            return "I have read what is asked"
        left = next(each for each, done in zip(self.chosen, self.read, strict=True) if not done)
        return f'the code under "{left.widget.label}" is too small to read'

    def shortest(self) -> int:
        return self.needed() + 1

    def needed(self) -> int:
        """Return the number of looks that show all that is asked."""
        small = [each for each in self.chosen if not each.widget.sets]
        return 1 if len(small) > 1 and self._fit(small) else len(small)

    def _fit(self, cells: list[Element]) -> bool:
        """True if one part shows all of some cells."""
        part = self.part_round(*_middle(cells))
        return all(self._shows(each, part) for each in cells)

    def _shows(self, element: Element, part: tuple[int, int] | None = None) -> bool:
        """True if name and code of a cell lie in a part, by default in the one that is shown."""
        left, top = part or self.zoomed or (-self.layout.width, 0)
        x, y = _code_place(element)
        right, bottom = left + self.layout.width // ZOOM, top + self.layout.height // ZOOM
        name = top <= element.box[1] + 26 < bottom
        wide, high = _REACH
        return name and left + wide <= x < right - wide and top + high <= y < bottom - high

    def _visible(self, element: Element) -> bool:
        return self.zoomed is None or (element.widget.kind == "cell" and self._shows(element))

    def task(self) -> str:
        names = " and then under ".join(f'"{each.widget.label}"' for each in self.chosen)
        form = "the two codes, in this order" if self.asked > 1 else "the code"
        price = "A look closer costs, so take as few as needed."
        return f"Which code stands under {names}? Answer {form}. {price}"

    def extra_info(self) -> dict[str, Any]:
        return {"looks": self.looks, "needed": self.needed()}


def _code_place(element: Element) -> tuple[float, float]:
    return (element.box[0] + element.box[2]) / 2, element.box[1] + 60


def _middle(cells: list[Element]) -> tuple[float, float]:
    """Return the middle between names and codes of some cells."""
    xs = [_code_place(each)[0] for each in cells]
    ys = [y for each in cells for y in (each.box[1] + 26, each.box[1] + 60)]
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
