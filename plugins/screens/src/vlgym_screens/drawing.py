"""The painter: draws the elements of a state with Pillow and its font. It decides no place."""

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from .app import MOST, State, Value
from .layout import Box, Colour, Element, Layout

_FILE = files("vlgym_screens") / "icons.json"
# Name -> areas, lines and discs in a circle of radius 1 round (0, 0); y counts downwards.
ICON_SHAPES: dict[str, list[Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
_FINER = 4  # corners are drawn that much larger, then scaled down


class Painter:
    """Draws one state of an app.

    Args:
        layout: the layout of the app.
        zoom: how much larger than the design it is drawn.
        origin: the place of the design that becomes the upper left corner.
    """

    def __init__(self, layout: Layout, zoom: int = 1, origin: tuple[int, int] = (0, 0)) -> None:
        self.layout, self.theme, self.zoom, self.origin = layout, layout.theme, zoom, origin
        self.picture = Image.new("RGB", (layout.width, layout.height), self.theme.ground)
        self.pen = ImageDraw.Draw(self.picture)

    def finish(self, size: tuple[int, int]) -> NDArray[np.uint8]:
        """Return the image: a `[H, W, 3] uint8` array that cannot be written."""
        height, width = size
        if (width, height) != self.picture.size:
            self.picture = self.picture.resize((width, height), Image.Resampling.LANCZOS)
        return np.asarray(self.picture)

    # ---- tools ----

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (x - self.origin[0]) * self.zoom, (y - self.origin[1]) * self.zoom

    def box(self, box: tuple[float, float, float, float], colour: Colour, radius: float = 0) -> None:
        """Fill a box, whose corners are round where there is a radius."""
        x1, y1 = map(round, self.at(box[0], box[1]))
        x2, y2 = (round(value) + self.zoom - 1 for value in self.at(box[2], box[3]))
        width, height = x2 - x1 + 1, y2 - y1 + 1
        r = min(round(radius * self.zoom), width // 2, height // 2)
        if r < 2:
            self.pen.rectangle((x1, y1, x2, y2), colour)
            return

        # Two boxes leave the corners out, which are smooth.
        self.pen.rectangle((x1 + r, y1, max(x1 + r, x2 - r), y2), colour)
        self.pen.rectangle((x1, y1 + r, x2, max(y1 + r, y2 - r)), colour)
        for corner, x, y in zip(
            _corners(r), (x1, x2 - r + 1, x1, x2 - r + 1), (y1, y1, y2 - r + 1, y2 - r + 1), strict=True
        ):
            self.pen.bitmap((x, y), corner, colour)

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        self.box((x - radius, y - radius, x + radius - 1, y + radius - 1), colour, radius)

    def line(self, points: Sequence[tuple[float, float]], colour: Colour, width: float = 2) -> None:
        self.pen.line([self.at(x, y) for x, y in points], colour, round(width * self.zoom), "curve")

    def text(
        self,
        words: str,
        x: float,
        y: float,
        size: int,
        ink: Colour,
        align: str = "l",
        most: float = 0,
        bold: bool = False,
    ) -> None:
        """Write a line whose middle is at height y; letters shrink to the width `most`."""
        letters = _font(size * self.zoom)
        if 0 < most < len(words) * size:  # no letter is wider than high, so that shorter words fit
            while size > 11 and letters.getlength(words) > most * self.zoom:
                size -= 1
                letters = _font(size * self.zoom)
            while len(words) > 4 and letters.getlength(words) > most * self.zoom:
                words = words.rstrip("…")[:-1] + "…"
        left, top = self.at(x, y)
        self.pen.text((left, top), words, ink, letters, f"{align}m")
        if bold:
            self.pen.text((left + 0.6 * self.zoom, top), words, ink, letters, f"{align}m")

    # ---- a state ----

    def paint(self, state: State, title: str, numbered: bool = False) -> None:
        """Draw the screen, then what lies over it, then the numbers of the marks."""
        theme, layout = self.theme, self.layout
        elements = layout.place(state)
        tops = (at for at, each in enumerate(elements) if each.widget.kind in ("option", "dialog"))
        over = next(tops, len(elements))
        self._frame(state, title)
        for each in filter(self._shown, elements[:over]):
            self._draw(each, state)
        if over < len(elements):
            self._scrim(elements[over:])
            for each in elements[over:]:
                self._draw(each, state)

        # Marks of where the screen is scrolled to, and of what can be clicked.
        pages = len(layout.pages(state.screen))
        if pages > 1:
            _, top, right, bottom = layout.content_box(state.screen)
            height = (bottom - top - 12) / pages
            y = top + 6 + state.page * height
            self.box((right - 6, y, right - 2, y + height), theme.faint, 2)
        if numbered:
            for number, each in enumerate((each for each in elements if each.live), 1):
                self._mark(number, each.box)

    def _shown(self, element: Element) -> bool:
        (x1, y1), (x2, y2) = self.at(*element.box[:2]), self.at(*element.box[2:])
        return x2 >= 0 and y2 >= 0 and x1 < self.layout.width and y1 < self.layout.height

    def _frame(self, state: State, title: str) -> None:
        theme, layout = self.theme, self.layout
        screen = layout.app.screens[state.screen]
        fill, ink = (theme.ground, theme.ink) if theme.flat else (theme.accent, theme.on_accent)
        self.box((0, 0, layout.width - 1, theme.header - 1), fill)

        # The title fills what the icons and the arrow of going back leave.
        side = (theme.header - 12) * len(screen.header) + 10
        left, right = (side, 12) if theme.mirrored else (16, side)
        y = theme.header / 2
        if screen.parent >= 0:
            self.line([(left + 14, y - 8), (left + 5, y), (left + 14, y + 8)], ink, 3)
            left += 26
        most = layout.width - left - right
        x = left if theme.title_left or screen.parent >= 0 else left + most / 2
        self.text(title, x, y, 22, ink, "l" if x == left else "m", most, bold=True)

        if theme.flat:
            self.box((0, theme.header - 1, layout.width - 1, theme.header - 1), theme.line)
        if screen.tabs:
            box: Box
            if layout.device == "phone":
                y1 = theme.header if theme.tabs == "top" else layout.height - theme.bar
                box = 0, y1, layout.width - 1, y1 + theme.bar - 1
            else:
                x1 = 0 if theme.tabs == "left" else layout.width - theme.bar
                box = x1, theme.header, x1 + theme.bar - 1, layout.height - 1
            self.box(box, theme.surface)

    def _scrim(self, elements: list[Element]) -> None:
        """Darken the screen below a dialog; draw the sheet of a menu."""
        theme = self.theme
        if elements[0].widget.kind == "dialog":
            self.picture = Image.blend(self.picture, Image.new("RGB", self.picture.size, (0, 0, 0)), 0.45)
            self.pen = ImageDraw.Draw(self.picture)
            return
        (x1, y1, _, _), (_, _, x2, y2) = elements[0].box, elements[-1].box
        self.box((x1 - 2, y1 - 2, x2 + 2, y2 + 2), theme.faint, 6)
        self.box((x1 - 1, y1 - 1, x2 + 1, y2 + 1), theme.surface, 6)

    def _draw(self, element: Element, state: State) -> None:
        widget, (x1, y1, x2, y2), theme = element.widget, element.box, self.theme
        middle, kind = (y1 + y2) / 2, widget.kind
        value: Value = state.values[widget.value] if widget.value >= 0 else 0
        if kind == "heading":
            self.text(widget.label.upper(), x1 + 2, y2 - 14, 14, theme.accent, most=x2 - x1, bold=True)
        elif kind == "banner":
            self.box(element.box, theme.accent, theme.radius)
            left, most, ink = x1 + 18, (x2 - x1) * 0.6, theme.on_accent
            self.text(widget.label, left, middle - 14, 24, ink, most=most, bold=True)
            self.text(widget.detail, left, middle + 16, 15, ink, most=most)
            self.disc(x2 - 50, middle, min(34, middle - y1 - 8), theme.surface)
            self.disc(x2 - 34, middle + 8, 20, theme.line)
        elif kind == "cell":
            self._card(element.box)
            self.text(widget.label, (x1 + x2) / 2, y1 + 26, 17, theme.ink, "m", x2 - x1 - 12)
            size = 15 if widget.sets else TINY
            self.text(widget.detail, (x1 + x2) / 2, y1 + 60, size, theme.ink, "m")
        elif kind == "tab":
            self._tab(element)
        elif kind == "icon":
            self._icon(element)
        elif kind in ("minus", "plus"):
            self.box(element.box, theme.line, theme.radius)
            x = (x1 + x2) / 2
            self.box((x - 8, middle - 1, x + 8, middle + 1), theme.ink)
            if kind == "plus":
                self.box((x - 1, middle - 8, x + 1, middle + 8), theme.ink)
                gap = x1 - 17
                self.text(str(value), gap, middle, 18, theme.ink, "m")
        elif kind == "button":
            radius = max(6, theme.radius)
            if not widget.saves:
                self.box(element.box, theme.accent, radius)
                self.box((x1 + 2, y1 + 2, x2 - 2, y2 - 2), theme.ground, radius - 1)
            else:
                self.box(element.box, theme.accent, radius)
            ink = theme.on_accent if widget.saves else theme.accent
            self.text(widget.label, (x1 + x2) / 2, middle, 18, ink, "m", x2 - x1 - 8, bold=True)
        elif kind == "dialog":
            self.box(element.box, theme.surface, theme.radius + 4)
            self.text(widget.label, x1 + 20, y1 + 36, 21, theme.ink, most=x2 - x1 - 40, bold=True)
            self.text(widget.detail, x1 + 20, y1 + 78, 16, theme.faint, most=x2 - x1 - 40)
        elif kind == "toast":
            self.box(element.box, theme.ink, 22)
            self.text(widget.label, (x1 + x2) / 2, middle, 18, theme.ground, "m")
        elif kind == "option":
            if widget.value < 0:
                self.box(element.box, theme.line, max(6, theme.radius))
                self.text(widget.label, (x1 + x2) / 2, middle, 16, theme.ink, "m", x2 - x1 - 8, bold=True)
            else:
                chosen = value == widget.sets
                self.text(widget.label, x1 + 14, middle, 17, theme.accent if chosen else theme.ink, bold=chosen)
        elif kind != "slider" or element.live:
            self._control(element, value, state)
        else:
            self._slider(element, value)

    def _card(self, box: Box) -> None:
        x1, _, x2, y2 = box
        if self.theme.cards:
            self.box(box, self.theme.surface, self.theme.radius)
        else:
            self.box((x1, y2, x2, y2), self.theme.line)

    def _control(self, element: Element, value: Value, state: State) -> None:
        widget, (x1, y1, x2, y2), theme = element.widget, element.box, self.theme
        kind, middle, right = widget.kind, (y1 + y2) / 2, x2 - 12
        if kind == "slider":
            self._slider(element, value)
            return
        self._card(element.box)
        left: float = x1 + 12
        small = y2 - y1 < 50

        # A row: a disc with a letter, a title, small print, and an arrow where it leads on.
        if kind == "row":
            radius = min(19, (y2 - y1) / 2 - 5)
            tint = sum(map(ord, widget.label)) % 5
            colour = (theme.accent, theme.faint, theme.line, theme.accent, theme.faint)[tint]
            self.disc(left + radius, middle, radius, colour)
            ink = theme.ink if colour == theme.line else theme.on_accent
            self.text(widget.label[0], left + radius, middle, round(radius), ink, "m")
            left += 2 * radius + 10
            if widget.leads >= 0:
                arrow = [(right - 6, middle - 6), (right, middle), (right - 6, middle + 6)]
                self.line(arrow, theme.faint)
                right -= 14
            most = right - left
            if small:
                self.text(widget.label, left, middle, 16, theme.ink, most=most - 62)
                self.text(widget.detail, right, middle, 13, theme.faint, "r")
            else:
                shift = 10 if widget.detail else 0
                self.text(widget.label, left, middle - shift, 18, theme.ink, most=most)
                self.text(widget.detail, left, middle + 12, 14, theme.faint)
            return

        # The others have their label at the left, and their value at the right.
        size = 16 if small else 18
        if kind == "fact":
            self.text(widget.label, left, middle, size, theme.faint, most=(x2 - x1) * 0.5)
            self.text(widget.detail, right, middle, size + 2, theme.ink, "r", bold=True)
            return
        share = 0.45 if kind in ("value", "field") else 0.6
        self.text(widget.label, left, middle, size, theme.ink, most=(x2 - x1) * share)

        if kind == "toggle":
            ground = theme.accent if value else theme.faint
            self.box((right - 42, middle - 12, right, middle + 12), ground, 12)
            self.disc(right - 12 if value else right - 30, middle + 0.5, 9, theme.surface)
        elif kind in ("check", "radio"):
            radius = 12 if kind == "radio" else 5
            on = value == widget.sets if kind == "radio" else value
            ground = theme.accent if on else theme.faint
            self.box((right - 24, middle - 12, right, middle + 12), ground, radius)
            if not on:
                inner = right - 22, middle - 10, right - 2, middle + 10
                self.box(inner, theme.surface, radius - 2)
            elif kind == "radio":
                self.disc(right - 11.5, middle + 0.5, 6, theme.on_accent)
            else:
                tick = [(right - 18, middle), (right - 13, middle + 5), (right - 6, middle - 5)]
                self.line(tick, theme.on_accent, 3)
        elif kind == "dropdown":
            chosen, most = widget.options[int(value)], (x2 - x1) * 0.35
            self.text(chosen, right - 22, middle, size - 1, theme.accent, "r", most)
            points = (right - 14, middle - 4), (right, middle - 4), (right - 7, middle + 5)
            self.pen.polygon([self.at(*point) for point in points], theme.accent)
        elif kind == "field":
            x = x1 + (x2 - x1) * 0.5
            focus = state.focus == widget.value
            self.box((x, y1 + 5, right + 4, y2 - 5), theme.accent if focus else theme.faint, 5)
            self.box((x + 2, y1 + 7, right + 2, y2 - 7), theme.ground, 4)
            self.text(str(value), x + 10, middle, size - 1, theme.ink, most=right - x - 16)
            if focus:
                end = x + 12 + min(_font(size - 1).getlength(str(value)), right - x - 16)
                self.box((end, middle - 10, end + 1, middle + 10), theme.accent)

    def _slider(self, element: Element, value: Value) -> None:
        (left, right), theme = element.track, self.theme
        y, at = (element.box[1] + element.box[3]) / 2, left + (right - left) * int(value) / MOST
        self.box((left, y - 2, right, y + 2), theme.line, 2)
        self.box((left, y - 2, at, y + 2), theme.accent, 2)
        self.disc(at, y, 10, theme.accent)
        self.text(str(value), at, y, 12, theme.on_accent, "m")

    def _tab(self, element: Element) -> None:
        widget, (x1, y1, x2, y2), theme = element.widget, element.box, self.theme
        if self.layout.device == "phone":
            self.disc((x1 + x2) / 2, y1 + 20, 8, theme.faint)
            self.text(widget.label, (x1 + x2) / 2, y1 + 44, 14, theme.ink, "m", x2 - x1 - 6)
        else:
            self.box(element.box, theme.ground, theme.radius)
            self.text(widget.label, x1 + 16, (y1 + y2) / 2, 17, theme.ink, most=x2 - x1 - 28)

    def _icon(self, element: Element) -> None:
        widget, (x1, y1, x2, y2), theme = element.widget, element.box, self.theme
        radius, x, y = min(x2 - x1, y2 - y1) / 2, (x1 + x2) / 2, (y1 + y2) / 2
        ink = theme.ink if widget.of or theme.flat else theme.on_accent
        if widget.of and theme.round_icons:
            self.disc(x, y, radius, theme.line)
        self._shape(widget.label, x, y, radius * 0.56, ink)

    def _shape(self, name: str, x: float, y: float, r: float, ink: Colour) -> None:
        """Draw a named icon of radius r round (x, y)."""
        for kind, shape, *size in ICON_SHAPES[name]:
            points = [(x + px * r, y + py * r) for px, py in shape]
            if kind == "area":
                self.pen.polygon([self.at(*point) for point in points], ink)
            elif kind == "line":
                self.line(points, ink, max(2, r / 5))
            else:
                self.disc(*points[0], size[0] * r, ink)

    def _mark(self, number: int, box: Box) -> None:
        words = str(number)
        x, y = max(0, box[0] - 9), max(0, box[1] - 7)
        width = 10 + 9 * len(words)
        self.box((x, y, x + width, y + 19), (20, 20, 20), 4)
        self.box((x + 1, y + 1, x + width - 1, y + 18), (255, 221, 64), 4)
        self.text(words, x + width / 2, y + 10, 15, (0, 0, 0), "m", bold=True)


TINY = 4
"""Font size in pixels that is too small to read."""


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("this Pillow was built without FreeType, so it cannot draw letters of any size")
    return font


@lru_cache(maxsize=128)
def _corners(radius: int) -> tuple[Image.Image, ...]:
    """Return masks of the corners of a round box: the upper ones, then the lower ones."""
    large = Image.new("L", (2 * radius * _FINER,) * 2)
    ImageDraw.Draw(large).ellipse((0, 0, 2 * radius * _FINER - 1, 2 * radius * _FINER - 1), 255)
    disc = large.resize((2 * radius, 2 * radius), Image.Resampling.BOX)
    return tuple(disc.crop((x, y, x + radius, y + radius)) for y in (0, radius) for x in (0, radius))
