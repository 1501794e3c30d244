"""ScreensClick: click the element that a sentence names."""

import math
from typing import Any, ClassVar

from vlgym.types import Outcome

from .app import Block, Builder, State, Widget, name_widget
from .layout import Element, hit
from .screens import COORDINATES, ScreenEnv
from .search import Move
from .words import Draws

SENTENCES = ("Click {}.", "Press {}.", "Find {} and click it.", "Where is {}? Click it.")


class ScreensClick(ScreenEnv):
    """ScreensClick: click the element that a sentence names (the form of ScreenSpot).

    Goal: click inside the element.
    Observation: one screen of a drawn app, 448 x 896 pixels (`device="desktop"`: 1120 x 672). The
        text names the element, and lists neither elements nor places. The tree of `modality="text"`
        lists both.
    Actions: `click(x, y)`, 0 to 1000 over the picture (`coordinates="pixels"`: pixels; `"grid"`: 0
        to 9); `marks=True`: `click 7`.
    Reward: 0.99 in the box, edges included, else -0.01.
    Endings: terminated by the click; an unreadable reply is the one turn there is, and truncates.
    Success: the topmost element at the place is the one that is named.
    Info: `distance` to the box in pixels of the picture, `in_box`, `hit` (the element), and
        `error`: `none`, `nothing`, `twin`, `wrong row`, `wrong column`, `right kind`, `wrong kind`.
    Splits: train, val and test differ by seed; seeds share no app.
    Oracle: exact.
    References: Li et al., ScreenSpot-Pro, 2025; Cheng et al., SeeClick, ACL 2024.

    Options of `reset`: `level`, 0 to 4.

    Attributes:
        controls: settings on the screen.
        tabs: share of screens that have tabs.
    """

    systems = COORDINATES
    rows, icons, twins, size = 6, 2, 2, "medium"
    controls: int = 5
    tabs: float = 0.7
    level_arguments: ClassVar = (
        {"rows": 10, "icons": 0, "twins": 0, "size": "medium", "controls": 6, "tabs": 0.0},
        {"rows": 10, "icons": 2, "twins": 0, "size": "medium", "controls": 6, "tabs": 0.7},
        {"rows": 10, "icons": 2, "twins": 5, "size": "medium", "controls": 6, "tabs": 0.7},
        {"rows": 13, "icons": 2, "twins": 5, "size": "small", "controls": 4, "tabs": 0.7},
        {"rows": 14, "icons": 3, "twins": 8, "size": "small", "controls": 4, "tabs": 0.7},
    )

    def build(self, draws: Draws, builder: Builder) -> None:
        # The parts of the screen stand in any order.
        screen = builder.add_screen(self.app.name)
        rows, settings = builder.list_rows(self.rows), builder.settings(self.controls)
        parts: list[list[Block]] = [rows, settings, [builder.buttons()]]
        self.app.screens[screen].blocks = [block for part in draws.sample(parts, 3) for block in part]
        builder.decorate(screen, builder.make_tabs() if draws.chance(self.tabs) else ())
        self.layout.cut(screen)

        # A sentence names one element only, by its small print where it has a twin.
        state = State(values=tuple(self.app.values))
        elements = [each for each in self.layout.place(state) if each.live]
        plain = [name_widget(each.widget) for each in elements]
        exact = [name_widget(each.widget, plain.count(name) > 1) for each, name in zip(elements, plain, strict=True)]
        choices = [at for at, name in enumerate(exact) if exact.count(name) == 1 and self._in_reach(elements, at)]
        at = draws.pick(choices)
        widget = elements[at].widget
        if widget.kind == "tab" or (widget.kind == "icon" and not widget.of):
            at = draws.pick(choices)  # their places vary least, so they are asked for less often
        self.aim, self.sentence = elements[at], draws.pick(SENTENCES).format(exact[at])
        self.point: tuple[float, float] | None = None
        self.clicked: Element | None = None

    def _in_reach(self, elements: list[Element], at: int) -> bool:
        """True if a click can hit an element: small ones lie between the middles of a grid's cells."""
        if self.coordinates != "grid":
            return True
        place = self.read_point(self.write_point("click", *elements[at].centre))
        return place is not None and hit(elements, *place) == elements[at]

    def act(self, action: str) -> Outcome:
        self.point = self.read_point(action)
        self.clicked = hit(self.layout.place(self.state), *self.point) if self.point else None
        self.solved = self.clicked == self.aim
        return Outcome(
            float(self.solved) - self.step_cost,
            terminated=True,
            feedback="" if self.solved else self.error() or "",
            point=self.find_point(action),
        )

    def task(self) -> str:
        return self.sentence

    def shortest(self) -> int:
        return 1

    def plan(self) -> Move:
        return Move(self.aim)

    def explain(self, action: str) -> str:
        return "it is what the sentence names"

    def extra_info(self) -> dict[str, Any]:
        distance = None
        if self.point:
            (x, y), (x1, y1, x2, y2) = self.point, self.aim.box
            ratio = self.image_size[1] / self.layout.width
            distance = round(math.hypot(max(x1 - x, 0, x - x2), max(y1 - y, 0, y - y2)) * ratio, 2)
        named = None if self.clicked is None else name_widget(self.clicked.widget, twin=True)
        return {
            "distance": distance,
            "in_box": self.solved if self.point else None,
            "hit": named,
            "error": self.error(),
        }

    def error(self) -> str | None:
        """Return the kind of the mistake; `None` before the click."""
        if self.point is None:
            return None
        if self.clicked is None or self.solved:
            return "none" if self.solved else "nothing"

        # The nearest mistake is the one that is named.
        aim, target = self.aim.widget, self.clicked.widget
        same_kind = aim.kind == target.kind and (aim.kind != "icon" or aim.label == target.label)
        if name_widget(aim) == name_widget(target):
            return "twin"
        if _row(aim) == _row(target) and _row(aim) is not None:
            return "wrong column"
        if same_kind and aim.of:
            return "wrong row"
        return "right kind" if aim.kind == target.kind else "wrong kind"


def _row(widget: Widget) -> tuple[str, str] | None:
    """Return the row that a widget is a part of."""
    if widget.kind == "row":
        return widget.label, widget.detail
    return (widget.of, widget.detail) if widget.of and widget.kind != "radio" else None
