"""Base of the family: an app an episode, actions with coordinates or marks, pictures, and the tree."""

import json
import re
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.errors import check_choice
from vlgym.types import Outcome

from .app import KINDS, App, Builder, State, Value, Widget, has_dialog, name_widget, press
from .drawing import Painter
from .layout import SIZES, Element, Layout, Theme, hit
from .screen_parser import ScreenParser
from .search import Move, Node, find_path, make_move, see
from .words import Draws

COORDINATES = ("thousand", "pixels", "grid")
GRID = 10
"""Columns and rows of the grid."""
ZOOM = 4
"""How much larger a part of the picture is shown."""

_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_READER = ScreenParser()


class ScreenEnv(VLEnv):
    """An app that is used by clicks.

    Args:
        device: `phone` (448 x 896) or `desktop` (1120 x 672).
        coordinates: `thousand`, 0 to 1000 over width and height; `pixels` of the picture that is
            seen; or, where the class has it, `grid`, column and row of ten, from 0: the middle of
            that cell is clicked.
        marks: whether elements carry numbers, and are clicked by `click 7` instead of coordinates.

    Attributes:
        verbs, systems: of the class: the actions and the coordinates that there are.
        rows, icons, twins: of the lists (see `Builder`).
        size: of rows: `large`, `medium` or `small`.
        app, layout: of this episode.
        state: the situation now.
        zoomed: the upper left corner of the part that is shown, in pixels of the design; `None`:
            all is shown.
        facts: what must be read: the number of a page, and a label.
        wanted: value -> what it must be at the end, for all that the task states or that must stay.
    """

    verbs: ClassVar[tuple[str, ...]] = ("click",)
    systems: ClassVar[tuple[str, ...]] = COORDINATES[:2]
    prompt = PromptTemplate(
        version=1,
        instructions="You use an app by what you see of its screen. {task}\n{format}",
        turn="{state}Actions: {actions}",
    )
    step_cost = 0.01
    rows: int = 8
    icons: int = 0
    twins: int = 0
    size: str = "large"
    dialogs: int = 0

    def __init__(
        self, *, device: str = "phone", coordinates: str = "thousand", marks: bool = False, **kwargs: Any
    ) -> None:
        check_choice("device", device, SIZES)
        check_choice("coordinates", coordinates, self.systems)
        check_choice("marks", marks, (False, True))
        self.device, self.coordinates, self.marks = device, coordinates, marks
        # The core asks whether there is a notation; the size of the picture is known afterwards.
        self.notation = "-"  # type: ignore[misc]
        super().__init__(**kwargs)
        self.notation = self._write_notation()  # type: ignore[misc]

        # Of an episode.
        self.app: App
        self.layout: Layout
        self.state = State()
        self.zoomed: tuple[int, int] | None = None
        self.facts: list[tuple[int, str]] = []
        self.wanted: dict[int, Value] = {}
        self.target = -1
        self.seen, self.solved = 0, False
        self._path: dict[Node, Move] = {}
        self._shortest: int | None = None
        self._first: Node = (self.state, 0)
        self._drawn: tuple[Any, NDArray[np.uint8]] | None = None

    def natural_size(self) -> tuple[int, int]:
        return SIZES[self.device]

    # ---- an episode ----

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        draws = Draws(rng)
        builder = Builder(draws, self.rows, self.icons, self.twins, sliders=not self.marks)
        self.app = builder.app
        self.layout = Layout(self.app, Theme(draws, self.device, self.size), self.device)
        self.zoomed, self.seen, self.solved, self.target = None, 0, False, -1
        self.facts, self.wanted, self._path, self._shortest, self._drawn = [], {}, {}, None, None
        self.build(draws, builder)
        self.state = State(values=tuple(self.app.values))
        self.seen = see(self.layout, self.state, 0, self.facts)
        self._first = self.state, self.seen

    def build(self, draws: Draws, builder: Builder) -> None:
        """Make the screens and the task."""
        raise TypeError(f"{type(self).__name__} must define build()")

    def done(self, state: State, seen: int) -> bool:
        """True if the task is solved in a state, apart from an answer that is due."""
        raise TypeError(f"{type(self).__name__} must define done()")

    def point_action(self, x: float, y: float) -> str | None:
        """Return a click at a place of the picture, or a look closer where there are no clicks."""
        if self.zoomed:
            return "zoom_out()"  # places count over the whole picture
        place = x * self.layout.width, y * self.layout.height
        if self.marks and "click" in self.verbs:
            element = hit(self.layout.place(self.state), *place)
            live = self.live()
            return f"click {live.index(element) + 1}" if element in live else None
        return self.write_point("click" if "click" in self.verbs else "zoom", *place)

    def find_point(self, action: str) -> tuple[float, float] | None:
        """Return the place of an action as shares of width and height; `None` where it is not shown."""
        if self.zoomed or not action.startswith(("click", "zoom(")):
            return None
        place = self.read_point(action)
        return place and (place[0] / self.layout.width, place[1] / self.layout.height)

    def judge(self, action: str, feedback: str) -> Outcome:
        """Return the outcome of an action: by default the end at the goal."""
        self.solved = self.done(self.state, self.seen)
        return Outcome(float(self.solved) - self.step_cost, terminated=self.solved, feedback=feedback)

    def act(self, action: str) -> Outcome:
        call = _CALL.fullmatch(action)
        verb, words = (call[1], call[2]) if call else ("click", "")
        feedback, point = "", self.find_point(action)

        # A click presses what it hits; the other actions are moves.
        if verb == "click":
            place = self.read_point(action)
            element = None if place is None else hit(self.layout.place(self.state), *place)
            if element is None or place is None:
                feedback = "there is nothing to click"
            else:
                stop = element.stop(place[0]) if element.widget.kind == "slider" else -1
                self.state, feedback = press(self.app, self.state, element.widget, stop)
        elif verb in ("type", "scroll", "back"):
            written = json.loads(words) if verb == "type" else words
            self.state, feedback = make_move(self.layout, self.state, Move(verb=verb, words=written))

        self.seen = see(self.layout, self.state, self.seen, self.facts)
        return replace(self.judge(action, feedback), point=point)

    def success(self) -> bool:
        return self.solved

    def score(self) -> float:
        """The share of the shortest path in the path taken, once the task is solved."""
        return self.shortest() / max(self.turn, self.shortest()) if self.solved else 0.0

    # ---- actions ----

    def legal_actions(self) -> list[str]:
        """A click on each element, and all other actions; more clicks are legal than these."""
        actions = [self.write_click(each, number) for number, each in enumerate(self.live(), 1)]
        actions += ["scroll(up)", "scroll(down)"] if "scroll" in self.verbs else []
        actions += ["back()"] if "back" in self.verbs else []
        if "type" in self.verbs and self.state.focus >= 0:
            actions += [f"type({json.dumps(word)})" for word in self.words()]
        if "answer" in self.verbs:
            actions += [f"answer({json.dumps(word)})" for word in self.words()]
        return actions

    def words(self) -> list[str]:
        """Words that are worth typing or answering; the right ones are among them."""
        return []

    def live(self) -> list[Element]:
        return [each for each in self.layout.place(self.state) if each.live]

    def match_action(self, wanted: str) -> str | None:
        """Return an action in its one spelling, or `None` for another text."""
        # The parser reads it whole, as one of this class's actions.
        wanted = wanted.strip()
        read = _READER.parse(wanted)
        if read.failure or read.span != (0, len(wanted)):
            return None
        action = read.actions[0]
        verb = action.split("(")[0].split(" ")[0]
        if verb not in self.verbs:
            return None

        # Marks take numbers, and coordinates take points.
        if verb == "click" and self.marks is action.startswith("click("):
            return None
        if self.marks and verb == "click" and not 1 <= int(action.split()[1]) <= len(self.live()):
            return None
        return action

    def write_click(self, element: Element, number: int, stop: int = -1) -> str:
        """Return the action that clicks an element, which carries this number."""
        if self.marks:
            return f"click {number}"
        x, y = element.centre
        if element.widget.kind == "slider" and stop >= 0:
            left, right = element.track
            x = round(left + (right - left) * stop / 9)
        return self.write_point("click", x, y)

    def write_point(self, verb: str, x: float, y: float) -> str:
        """Return an action at a place of the picture, which is given in pixels of the design."""
        width, height = self._scale()
        if self.coordinates == "grid":
            return f"{verb}({int(x * width)}, {int(y * height)})"
        return f"{verb}({round((x + 0.5) * width)}, {round((y + 0.5) * height)})"

    def read_point(self, action: str) -> tuple[float, float] | None:
        """Return the place of an action in pixels of the design, moved to the picture's edge if outside."""
        if not (call := _CALL.fullmatch(action)):
            live = self.live()
            number = int(action.split()[1])
            return live[number - 1].centre if number <= len(live) else None
        width, height = self._scale()
        x, y = (float(number) for number in call[2].split(","))
        if self.coordinates == "grid":
            x, y = (min(max(0, int(each)), GRID - 1) + 0.5 for each in (x, y))
            return x / width, y / height
        x, y = max(0.0, x / width - 0.5), max(0.0, y / height - 0.5)
        return min(self.layout.width - 1, x), min(self.layout.height - 1, y)

    def _scale(self) -> tuple[float, float]:
        """Return how many units of the coordinates a pixel of the design has."""
        if self.coordinates == "thousand":
            return 1000 / self.layout.width, 1000 / self.layout.height
        if self.coordinates == "grid":
            return GRID / self.layout.width, GRID / self.layout.height
        return self.image_size[1] / self.layout.width, self.image_size[0] / self.layout.height

    def _write_notation(self) -> str:
        height, width = self.image_size
        forms = {
            "click": "click N, where N is the number at an element" if self.marks else "click(x, y)",
            "type": 'type("words"), which replaces what the field with the caret holds',
            "scroll": "scroll(up), scroll(down), which shows what is lower",
            "zoom": f"zoom(x, y), which shows the part round a place {ZOOM} times as large",
        }
        plain = {"back": "back()", "zoom_out": "zoom_out()", "answer": 'answer("words")'}
        notation = "; ".join({**forms, **plain}[verb] for verb in self.verbs)

        # Only places need a unit.
        if self.marks and "zoom" not in self.verbs:
            return notation + "."
        shown = "screen" if self.modality == "text" else "picture"
        unit = f"from 0 to 1000 over the whole {shown}"
        if self.coordinates == "pixels":
            unit = f"in pixels of the {shown} you see, which is {width} wide and {height} high"
        if self.coordinates == "grid":
            unit = f"from 0 to {GRID - 1} in a grid of {GRID} columns and {GRID} rows over the whole {shown}"
        return f"{notation}. x counts from the left and y from the top, {unit}."

    # ---- oracle ----

    def plan(self) -> Move | None:
        """Return the next move of a shortest path to `done`; `None` at its end, or without one."""
        node = self.state, self.seen
        if node not in self._path:
            path = find_path(self.layout, node, self.done, self.wanted, self.facts) or []
            self._path.update(path)
        return self._path.get(node)

    def shortest(self) -> int:
        """Return the number of actions of a shortest path from the start."""
        if self._shortest is None:
            path = find_path(self.layout, self._first, self.done, self.wanted, self.facts)
            self._shortest = max(1, len(path or ()) + self.extra_turns())
        return self._shortest

    def extra_turns(self) -> int:
        """Return the number of actions that are due at the end of the path."""
        return 0

    def oracle(self) -> str | None:
        if self._ended:
            return None
        move = self.plan()
        return None if move is None else self.write_move(move)

    def write_move(self, move: Move) -> str:
        if move.element is not None:
            return self.write_click(move.element, self.live().index(move.element) + 1, move.stop)
        moves = {"type": f"type({json.dumps(move.words)})", "scroll": f"scroll({move.words})"}
        return moves.get(move.verb, "back()")

    def think(self, action: str) -> str:
        if not action.startswith("click"):
            return self.explain(action)
        place = self.read_point(action)
        element = hit(self.layout.place(self.state), *place) if place else None
        return "" if element is None else f"I see {name_widget(element.widget)}; {self.explain(action)}"

    def explain(self, action: str) -> str:
        """Return the oracle's reason for an action."""
        if action.startswith("click"):
            return "it brings me closer to the goal"
        return "what I need is not on this part"

    # ---- looks ----

    def image(self) -> NDArray[np.uint8]:
        key = self.state, self.zoomed
        if self._drawn is None or self._drawn[0] != key:
            painter = Painter(self.layout, ZOOM if self.zoomed else 1, self.zoomed or (0, 0))
            title = self.app.screens[self.state.screen].title
            painter.paint(self.state, title, self.marks and not self.zoomed)
            self._drawn = key, painter.finish(self.image_size)
        return self._drawn[1].copy()

    def describe(self) -> str:
        """Return the accessibility tree of the elements that are shown."""
        screen = self.app.screens[self.state.screen]
        lines = [f'screen "{screen.title}"']
        number = 0
        covered = has_dialog(self.app, self.state)
        for each in self.layout.place(self.state):
            number += each.live
            if self._visible(each):
                lines.append(self._tell(each, number, covered))

        # What the picture shows by its scroll bar and its size.
        pages = len(self.layout.pages(self.state.screen))
        if pages > 1:
            lines.append(f"scrolled to part {self.state.page + 1} of {pages}")
        if self.zoomed:
            lines.append("a part, enlarged")
        return "\n".join(lines)

    def _visible(self, element: Element) -> bool:
        return True

    def _tell(self, element: Element, number: int, covered: bool) -> str:
        widget: Widget = element.widget
        words = f'{KINDS.get(widget.kind, widget.kind)} "{widget.label}"'
        words += f' of "{widget.of}"' if widget.of and widget.kind != "fact" else ""
        if widget.detail:
            tiny = widget.kind == "cell" and not (widget.sets or self.zoomed)
            words += ", too small to read" if tiny else f', "{widget.detail}"'

        # Its value, where it shows one.
        if widget.value >= 0 and widget.kind not in ("minus", "plus", "option"):
            value = self.state.values[widget.value]
            if widget.kind in ("toggle", "check", "radio"):
                on = value == widget.sets if widget.kind == "radio" else bool(value)
                words += ", on" if on else ", off"
            else:
                words += f', "{widget.options[int(value)] if widget.options else value}"'
                caret = widget.kind == "field" and self.state.focus == widget.value
                words += ", with the caret" if caret else ""

        # Its place, or why it cannot be clicked.
        if element.live:
            place = self.write_point("at ", *element.centre)
            return f"[{number}] {words}" if self.marks else f"{words} {place}"
        plain = widget.kind in ("dialog", "heading", "banner")
        return f"{words}, covered" if covered and not plain else words
