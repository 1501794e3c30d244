"""The model of an app: screens of widgets, and what a click changes. Nothing here knows pixels."""

from dataclasses import dataclass, field
from typing import NamedTuple

from .words import DOMAINS, HEADER_ICONS, ICONS, WORDS, Domain, Draws

Value = int | str

CONTROLS = ("toggle", "check", "radio", "slider", "stepper", "dropdown", "field")
SILENT = ("heading", "banner", "fact", "cell", "value", "toast")
"""Kinds of widgets that cannot be clicked."""
MOST = 9
"""Largest number of a stepper and of a slider; the smallest is 0."""


class Widget(NamedTuple):
    """One thing on a screen.

    Attributes:
        kind: `row`, `icon`, `tab`, `button`, `toggle`, `check`, `radio`, `slider`, `minus`, `plus`,
            `dropdown`, `option`, `field`, or one of `SILENT`.
        label: its name; of an icon the name of its shape.
        detail: small print.
        of: label of the row or setting that it belongs to.
        leads: number of the screen that a click opens; -1: none.
        value: number of the value that it shows or changes; -1: none.
        options: of a dropdown.
        sets: the value that a click on a radio button or an option sets; -1: none.
        saves: whether a click saves.
    """

    kind: str
    label: str
    detail: str = ""
    of: str = ""
    leads: int = -1
    value: int = -1
    options: tuple[str, ...] = ()
    sets: int = -1
    saves: bool = False


# Widgets side by side: the main one, then those at its edge; or some of equal width, such as tabs.
Block = tuple[Widget, ...]


@dataclass
class Screen:
    """One screen.

    Attributes:
        title: its name, at its top.
        parent: the screen that `back()` leads to; -1: none.
        blocks: content from top to bottom.
        header: icons at its top.
        tabs: of the whole app; empty where there are none.
        dialog: title, text and two button labels of what lies over it at the first visit.
    """

    title: str
    parent: int = -1
    blocks: list[Block] = field(default_factory=list)
    header: Block = ()
    tabs: Block = ()
    dialog: tuple[str, ...] = ()


@dataclass
class App:
    """An app: a domain, screens, and the values at the start."""

    name: str
    domain: Domain
    screens: list[Screen] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def route(self, screen: int, itself: bool = False) -> list[str]:
        """Return the titles of the screens above a screen, the nearest first, without the first one."""
        titles, at = [], screen if itself else self.screens[screen].parent
        while at > 0:
            titles.append(self.screens[at].title)
            at = self.screens[at].parent
        return titles

    def find(self, value: int) -> tuple[int, Widget]:
        """Return the screen and the widget of a value."""
        for number, screen in enumerate(self.screens):
            for block in screen.blocks:
                for widget in block:
                    if widget.value == value:
                        return number, widget
        raise ValueError(f"no widget has the value {value}")


class State(NamedTuple):
    """The situation of an app.

    Attributes:
        screen: number of the screen that is shown.
        page: how far it is scrolled.
        values: of all settings and fields.
        focus: the value whose field has the caret; -1: none.
        menu: the value whose options are open; -1: none.
        asked: screens whose dialog was answered.
        saved: whether a Save button was pressed.
    """

    screen: int = 0
    page: int = 0
    values: tuple[Value, ...] = ()
    focus: int = -1
    menu: int = -1
    asked: frozenset[int] = frozenset()
    saved: bool = False


def has_dialog(app: App, state: State) -> bool:
    return bool(app.screens[state.screen].dialog) and state.screen not in state.asked


def press(app: App, state: State, widget: Widget, stop: int = -1) -> tuple[State, str]:
    """Return the state after a click on a widget, and what happened in words.

    Args:
        app: the app.
        state: the state before.
        widget: what is clicked.
        stop: of a slider, the number that the click stands at.
    """
    # What lies over the screen takes the click.
    if widget.kind == "option":
        if widget.value >= 0:
            chosen = _set(state, widget.value, widget.sets)
            return chosen._replace(menu=-1), f"chosen: {widget.label}"
        if widget.sets:
            return state, "nothing more to see"
        return state._replace(asked=state.asked | {state.screen}), "the dialog is closed"

    # Some clicks lead elsewhere, or open something.
    state = state._replace(menu=-1, focus=-1)
    if widget.saves:
        return state._replace(saved=True), "saved"
    if widget.leads >= 0:
        return state._replace(screen=widget.leads, page=0), "opened"
    if widget.kind == "field":
        return state._replace(focus=widget.value), "the caret is in the field"
    if widget.kind == "dropdown":
        return state._replace(menu=widget.value), "the options are open"
    if widget.value < 0:
        return state, "nothing happened"

    # The others change a value.
    before = state.values[widget.value]
    number = before if isinstance(before, int) else 0
    new = {
        "toggle": 1 - number, "check": 1 - number, "radio": widget.sets, "slider": stop,
        "minus": max(0, number - 1), "plus": min(MOST, number + 1),
    }[widget.kind]  # fmt: skip
    return _set(state, widget.value, new), "changed" if new != before else "nothing changed"


def write(state: State, text: str) -> tuple[State, str]:
    """Return the state after typing, which replaces what the field holds."""
    if state.focus < 0:
        return state, "no field has the caret"
    return _set(state, state.focus, text), "written"


def go_back(app: App, state: State) -> tuple[State, str]:
    if state.menu >= 0:
        return state._replace(menu=-1), "the options are closed"
    if has_dialog(app, state):
        return state._replace(asked=state.asked | {state.screen}), "the dialog is closed"
    parent = app.screens[state.screen].parent
    if parent < 0:
        return state, "this is the first screen"
    return state._replace(screen=parent, page=0, focus=-1), "went back"


def _set(state: State, at: int, value: Value) -> State:
    return state._replace(values=(*state.values[:at], value, *state.values[at + 1 :]))


class Builder:
    """Makes an app from draws.

    Args:
        draws: of the episode.
        rows: rows of a list.
        icons: icons at the end of a row.
        twins: rows of a list that have the title of another one.
        sliders: whether settings may be sliders; else they are steppers.
    """

    def __init__(self, draws: Draws, rows: int, icons: int = 0, twins: int = 0, sliders: bool = True) -> None:
        self.draws, self.rows, self.icons, self.twins, self.sliders = draws, rows, icons, twins, sliders
        domain = DOMAINS[draws.pick(tuple(DOMAINS))]
        self.app = App(draws.pick(domain.apps), domain)
        self.domain = domain
        nouns = [f"{qualifier} {noun}" for qualifier in WORDS["qualifiers"] for noun in domain.screens]
        self.titles = draws.sample(nouns, 60)
        self.row_icons = tuple(draws.sample(ICONS, icons))
        self.facts = tuple(draws.sample(domain.facts, 3))

    def title(self) -> str:
        return self.titles.pop()

    def add_screen(self, title: str, parent: int = -1) -> int:
        """Add an empty screen; return its number."""
        self.app.screens.append(Screen(title, parent))
        return len(self.app.screens) - 1

    def decorate(self, screen: int, tabs: Block = (), icons: int = -1) -> None:
        """Give a screen tabs, header icons, and often a banner or headings, so that places differ."""
        draws, at = self.draws, self.app.screens[screen]
        at.tabs = tabs
        count = draws.number(1, 3) if icons < 0 else icons
        at.header = tuple(Widget("icon", name) for name in draws.sample(HEADER_ICONS, count))

        # Neither headings nor radio buttons are parted from what is below them.
        for _ in range(draws.number(0, 2)):
            place = draws.number(0, max(0, len(at.blocks) - 2))
            near = [block[0].kind for block in at.blocks[max(0, place - 1) : place + 1]]
            if not {"heading", "radio"} & set(near):
                at.blocks.insert(place, (Widget("heading", self.title()),))
        if draws.chance(0.75):
            motto = f"{draws.pick(WORDS['mottos'])} {draws.number(2, 99)}"
            at.blocks.insert(0, (Widget("banner", self.app.name, motto),))

    def make_tabs(self) -> Block:
        count = self.draws.number(3, 5)
        return tuple(Widget("tab", name.title()) for name in self.draws.sample(self.domain.screens, count))

    def row_names(self, count: int) -> list[str]:
        if self.domain.things:
            return self.draws.sample(self.domain.things, count)
        return self.draws.people(count)

    def list_rows(self, count: int) -> list[Block]:
        """Return rows, of which the twins share titles and differ in small print."""
        names = self.row_names(count - self.twins)
        names += [self.draws.pick(names) for _ in range(self.twins)]
        blocks, used = list[Block](), set()
        for name in self.draws.sample(names, count):
            detail = self.draws.detail(self.domain)
            while (name, detail) in used:
                detail = self.draws.detail(self.domain)
            used.add((name, detail))
            row = Widget("row", name, detail)
            blocks.append((row, *(Widget("icon", icon, detail, of=name) for icon in self.row_icons)))
        return blocks

    def settings(self, count: int) -> list[Block]:
        """Return settings of several kinds; each has a value."""
        draws, domain, blocks = self.draws, self.domain, list[Block]()

        # Switches, numbers and words, in any order.
        kinds = [("toggle", label) for label in draws.sample(domain.toggles, 6)]
        kinds += [(draws.pick(("stepper", "slider")), label) for label in draws.sample(domain.counts, 3)]
        kinds += [("field", label) for label in draws.sample(domain.fields, 2)]
        chosen = draws.sample(kinds, count - 1)
        for kind, label in chosen:
            value = len(self.app.values)
            if kind == "slider" and not self.sliders:
                kind = "stepper"
            if kind == "toggle":
                kind = draws.pick(("toggle", "toggle", "check"))
            start: Value = draws.number(0, 1) if kind in ("toggle", "check") else draws.number(1, MOST - 1)
            self.app.values.append("" if kind == "field" else start)
            if kind == "stepper":
                minus, plus = (Widget(name, name, of=label, value=value) for name in ("minus", "plus"))
                blocks.append((Widget("value", label, value=value), minus, plus))
            else:
                blocks.append((Widget(kind, label, value=value),))

        # One choice of several, as a list or as buttons.
        label, options = draws.pick(domain.choices)
        self.app.values.append(draws.number(0, 3))
        value = len(self.app.values) - 1
        group: list[Block] = [(Widget("dropdown", label, value=value, options=tuple(options)),)]
        if draws.chance(0.5):
            group = [(Widget("heading", label),)]
            group += [(Widget("radio", each, of=label, value=value, sets=at),) for at, each in enumerate(options)]
        at = draws.number(0, len(blocks))
        return [*blocks[:at], *group, *blocks[at:]]

    def buttons(self) -> Block:
        """Return a Save button, often with one that does nothing."""
        save = Widget("button", self.draws.pick(WORDS["saves"]), saves=True)
        other = Widget("button", self.draws.pick(("Help", "Print", "Export", "Share")))
        return tuple(self.draws.sample((save, other), 2)) if self.draws.chance(0.6) else (save,)

    def detail_page(self, title: str, parent: int) -> int:
        """Add a page that states codes; return its number."""
        page = self.add_screen(title, parent)
        self.app.screens[page].blocks = [(Widget("fact", fact, self.draws.code(), of=title),) for fact in self.facts]
        return page

    def tree(self, depth: int, breadth: int) -> list[int]:
        """Build screens below one another with lists of rows; return those that are no detail page.

        One screen of each depth has screens below it. Most rows lead to a dead end.
        """
        root = self.add_screen(self.app.name)
        above, inner = root, [root]
        for level in range(depth + 1):
            here = [above] if level == 0 else [number for number in inner if self.app.screens[number].parent == above]
            if level:
                above = self.draws.pick(here)
            for parent in here:
                below = [self.add_screen(self.title(), parent) for _ in range(breadth)] if parent == above else []
                below = below if level < depth else []
                inner += below
                self.fill(parent, below)
        return inner

    def fill(self, screen: int, below: list[int]) -> None:
        """Give a screen rows that lead to screens below it, among rows that lead to dead ends."""
        rows: list[tuple[Widget, ...]] = [(Widget("row", self.app.screens[at].title, leads=at),) for at in below]
        for block in self.list_rows(self.rows - len(rows)):
            page = self.detail_page(block[0].label, screen)
            rows.append((block[0]._replace(leads=page), *block[1:]))
        self.app.screens[screen].blocks = self.draws.sample(rows, len(rows))
        self.decorate(screen)

    def add_dialogs(self, count: int, screens: list[int]) -> None:
        """Lay a dialog over some screens."""
        for screen in self.draws.sample(screens, count):
            buttons = self.draws.pick(WORDS["refusals"]), self.draws.pick(WORDS["consents"])
            self.app.screens[screen].dialog = (*self.draws.pick(WORDS["dialogs"]), *buttons)


KINDS = {
    "row": "row", "icon": "icon", "tab": "tab", "button": "button", "toggle": "switch", "check": "checkbox",
    "radio": "choice", "slider": "slider", "minus": "minus button", "plus": "plus button", "dropdown": "list",
    "option": "option", "field": "field",
}  # fmt: skip
"""Kind -> word of sentences and of the accessibility tree."""


def name_widget(widget: Widget, twin: bool = False) -> str:
    """Return a widget's name in a sentence; a twin is told by its small print."""
    kind = KINDS[widget.kind]
    small = f' with "{widget.detail}"' if twin and widget.detail else ""
    if widget.kind == "icon":
        place = f'of "{widget.of}"{small}' if widget.of else "at the edge"
        return f"the {widget.label} icon {place}"
    if widget.kind in ("minus", "plus"):
        return f'the {kind} of "{widget.of}"'
    return f'the {kind} "{widget.label}"{small}'
