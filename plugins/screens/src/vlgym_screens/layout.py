"""Places of widgets. `Layout.place` gives boxes for the painter and for clicks."""

import colorsys
from typing import NamedTuple

from .app import MOST, SILENT, App, State, Widget, has_dialog
from .words import Draws

Box = tuple[int, int, int, int]
"""x1, y1, x2, y2 in pixels of the design size; all four edges belong to the box."""
Colour = tuple[int, int, int]

SIZES = {"phone": (896, 448), "desktop": (672, 1120)}
"""Device -> height, width."""
ROW_HEIGHTS = {"large": (66, 76), "medium": (48, 58), "small": (38, 44)}


class Element(NamedTuple):
    """A widget in its place; `live` where it can be clicked now."""

    widget: Widget
    box: Box
    live: bool = True

    @property
    def centre(self) -> tuple[int, int]:
        return (self.box[0] + self.box[2]) // 2, (self.box[1] + self.box[3]) // 2

    def holds(self, x: float, y: float) -> bool:
        return self.box[0] <= x <= self.box[2] and self.box[1] <= y <= self.box[3]

    def stop(self, x: float) -> int:
        """Return the number of a slider at a place."""
        left, right = self.track
        return round(min(1, max(0, (x - left) / (right - left))) * MOST)

    @property
    def track(self) -> tuple[int, int]:
        """The left and the right end of a slider's track."""
        return self.box[0] + 12, self.box[2] - 12


class Theme:
    """Colours and measures (in pixels) of an app. Text has a contrast of at least 4.5.

    Attributes:
        ground, surface, ink, faint, line, accent, on_accent: colours.
        row, banner, header, bar: heights; on a desktop `bar` is the width of the tabs.
        tabs: where tabs stand: `top` or `bottom` of a phone, `left` or `right` of a desktop.
        mirrored: whether header icons stand at the left.
        icons_first: whether the icons of a row stand before it.
        cards: whether blocks are cards; else lines part them.
        flat: whether the header has the colour of the ground.
    """

    def __init__(self, draws: Draws, device: str, size: str) -> None:
        hue, dark = draws.number(0, 99) / 100, draws.chance(0.35)

        def colour(light: float, strength: float) -> Colour:
            red, green, blue = colorsys.hls_to_rgb(hue, light, strength)
            return round(255 * red), round(255 * green), round(255 * blue)

        self.ground = colour(0.09, 0.2) if dark else colour(0.955, 0.4)
        self.surface = colour(0.15, 0.2) if dark else (255, 255, 255)
        self.ink = (240, 240, 243) if dark else (24, 26, 32)
        self.faint = (176, 178, 186) if dark else (92, 96, 106)
        self.line = colour(0.27, 0.12) if dark else colour(0.87, 0.2)
        self.accent = colour(0.72, 0.6) if dark else colour(0.28, 0.62)
        self.on_accent = (16, 18, 22) if dark else (255, 255, 255)
        phone = device == "phone"
        self.row, self.radius = draws.number(*ROW_HEIGHTS[size]), draws.pick((0, 6, 10, 14, 18))
        self.gap, self.margin = draws.number(3, 9), draws.number(8, 20)
        self.header, self.banner = draws.number(54, 74), draws.number(64, 190)
        self.bar = draws.number(58, 74) if phone else draws.number(150, 210)
        self.tabs = draws.pick(("top", "bottom") if phone else ("left", "right"))
        self.mirrored, self.icons_first, self.flat = draws.chance(0.5), draws.chance(0.5), draws.chance(0.5)
        self.cards, self.round_icons, self.title_left = draws.chance(0.6), draws.chance(0.5), draws.chance(0.6)


class Layout:
    """The layout of one app on one device.

    Args:
        app: the app.
        theme: its measures.
        device: `phone` or `desktop`.
    """

    def __init__(self, app: App, theme: Theme, device: str) -> None:
        self.app, self.theme, self.device = app, theme, device
        self.height, self.width = SIZES[device]
        self._kept: dict[tuple[int, ...], list[Element]] = {}
        self._pages: dict[int, list[list[tuple[int, Box]]]] = {}

    def content_box(self, screen: int) -> Box:
        """Return the part of the picture that scrolls."""
        theme, bar = self.theme, self.theme.bar if self.app.screens[screen].tabs else 0
        left, top, right, bottom = 0, theme.header, self.width - 1, self.height - 1
        if self.device == "phone":
            top, bottom = top + bar * (theme.tabs == "top"), bottom - bar * (theme.tabs == "bottom")
        else:
            left, right = left + bar * (theme.tabs == "left"), right - bar * (theme.tabs == "right")
        return left, top, right, bottom

    def block_height(self, kind: str) -> int:
        row = self.theme.row
        return {"heading": 34, "banner": self.theme.banner, "cell": 92}.get(kind, row)

    def pages(self, screen: int) -> list[list[tuple[int, Box]]]:
        """Return the blocks of each page with their boxes; two blocks are on the page before, too."""
        if screen in self._pages:
            return self._pages[screen]
        blocks, theme = self.app.screens[screen].blocks, self.theme
        left, top, right, bottom = self.content_box(screen)
        columns = 1 if self.device == "phone" else 2
        width = (right - left - theme.margin * (columns + 1) - 8) // columns

        # A page is full when its last column is.
        pages, first = list[list[tuple[int, Box]]](), 0
        while True:
            page, at = list[tuple[int, Box]](), first
            for column in range(columns):
                x, y = left + theme.margin + column * (width + theme.margin), top + theme.gap + 4
                while at < len(blocks):
                    height = self.block_height(blocks[at][0].kind)
                    if y + height > bottom - 4:
                        break
                    page.append((at, (x, y, x + width, y + height)))
                    at, y = at + 1, y + height + theme.gap
            pages.append(page)
            if at >= len(blocks) or at - 2 <= first:
                break
            first = at - 2
        self._pages[screen] = pages
        return pages

    def cut(self, screen: int) -> None:
        """Drop the blocks of a screen that do not fit without scrolling."""
        blocks = self.app.screens[screen].blocks
        del blocks[len(self.pages(screen)[0]) :]
        while blocks[-1][0].kind == "heading":
            blocks.pop()
        self._pages.clear()

    def covered(self, state: State) -> bool:
        """True if a dialog or a menu takes all clicks."""
        return state.menu >= 0 or has_dialog(self.app, state)

    def place(self, state: State) -> list[Element]:
        """Return all elements of a state, the topmost last; a dialog and a menu take all clicks."""
        over = state.menu if state.menu >= 0 else -2 if has_dialog(self.app, state) else -1
        key = state.screen, state.page, over, state.saved
        if key not in self._kept:
            elements = self._place_screen(state.screen, state.page)
            below = [each._replace(live=False) for each in elements]
            if over == -2:
                elements = below + self._place_dialog(state.screen)
            elif over >= 0:
                elements = below + self._place_menu(elements, over)
            self._kept[key] = elements + [self._place_toast(state.screen)] * state.saved
        return self._kept[key]

    def _place_screen(self, screen: int, page: int) -> list[Element]:
        at, theme = self.app.screens[screen], self.theme
        elements = []
        side = theme.header - 12
        for number, widget in enumerate(at.header):
            x = 6 + number * side if theme.mirrored else self.width - 6 - (number + 1) * side
            elements.append(Element(widget, (x + 2, 8, x + side - 2, theme.header - 8)))
        elements += self._place_tabs(at.tabs)
        for number, box in self.pages(screen)[page]:
            elements += self._place_block(at.blocks[number], box)
        return elements

    def _place_tabs(self, tabs: tuple[Widget, ...]) -> list[Element]:
        theme, elements = self.theme, []
        for number, tab in enumerate(tabs):
            if self.device == "phone":
                y = theme.header if theme.tabs == "top" else self.height - theme.bar
                step = self.width / len(tabs)
                box = round(number * step), y, round((number + 1) * step) - 1, y + theme.bar - 1
            else:
                x = 0 if theme.tabs == "left" else self.width - theme.bar
                y = theme.header + 10 + number * (theme.row + 6)
                box = x + 8, y, x + theme.bar - 9, y + theme.row
            elements.append(Element(tab, box))
        return elements

    def _place_block(self, block: tuple[Widget, ...], box: Box) -> list[Element]:
        x1, y1, x2, y2 = box
        main = block[0].kind

        # Buttons and cells share the width.
        if main in ("button", "cell"):
            step, inset = (x2 - x1 + 8) / len(block), 4 if main == "button" else 0
            elements = []
            for at, each in enumerate(block):
                left, right = round(x1 + at * step), round(x1 + (at + 1) * step) - 8
                place = left, y1 + inset, right, y2 - inset
                elements.append(Element(each, place, main == "button"))
            return elements

        # Icons stand at one edge, and the main widget takes the rest.
        rest = block[1:]
        side = min(46, y2 - y1)
        elements = []
        left, right = x1, x2
        for widget in rest if self.theme.icons_first and main == "row" else reversed(rest):
            y = (y1 + y2 - side) // 2
            if self.theme.icons_first and main == "row":
                elements.append(Element(widget, (left + 2, y + 2, left + side - 2, y + side - 2)))
                left += side
            else:
                elements.append(Element(widget, (right - side + 2, y + 2, right - 2, y + side - 2)))
                right -= side if main == "row" else side + 34 * (widget.kind == "plus")

        # A slider stands right of its label, which cannot be clicked.
        if main == "slider":
            return [
                Element(block[0]._replace(kind="value"), box, False),
                Element(block[0], (x1 + (x2 - x1) // 2, y1 + 4, x2 - 8, y2 - 4)),
            ]
        elements.append(Element(block[0], (left, y1, right, y2), main not in SILENT))
        return sorted(elements, key=lambda each: each.box)

    def _place_dialog(self, screen: int) -> list[Element]:
        title, text, refuse, consent = self.app.screens[screen].dialog
        width, height = min(self.width - 56, 400), 190
        x, shift = (self.width - width) // 2, sum(map(ord, title + text + refuse + self.app.name)) % 200 - 100
        y = (self.height - height) // 2 + shift
        elements = [Element(Widget("dialog", title, text), (x, y, x + width, y + height), False)]
        options = Widget("option", refuse, sets=0), Widget("option", consent, sets=1)
        half = (width - 48) // 2
        for at, option in enumerate(options if shift % 2 else options[::-1]):
            left = x + 16 + at * (half + 16)
            elements.append(Element(option, (left, y + height - 62, left + half, y + height - 16)))
        return elements

    def _place_toast(self, screen: int) -> Element:
        middle, bottom = self.width // 2, self.content_box(screen)[3]
        return Element(Widget("toast", "Saved"), (middle - 70, bottom - 60, middle + 70, bottom - 16), False)

    def _place_menu(self, elements: list[Element], value: int) -> list[Element]:
        owner = next(each for each in elements if each.widget.kind == "dropdown" and each.widget.value == value)
        options, (x1, y1, x2, y2) = owner.widget.options, owner.box
        side = max(40, self.theme.row - 12)
        top = y2 + 2 if y2 + 2 + side * len(options) < self.height else y1 - 2 - side * len(options)
        left = (x1 + x2) // 2
        entries = []
        for at, option in enumerate(options):
            box = left, top + at * side, x2, top + (at + 1) * side - 1
            entries.append(Element(Widget("option", option, of=owner.widget.label, value=value, sets=at), box))
        return entries


def hit(elements: list[Element], x: float, y: float) -> Element | None:
    """Return the topmost live element at a place."""
    return next((each for each in reversed(elements) if each.live and each.holds(x, y)), None)
