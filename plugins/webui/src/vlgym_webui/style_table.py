"""The table of evaluated properties: weight, similarity and filter of each, and how shorthands expand.

Only strings come in (computed styles as a browser reports them) and numbers go out; no element and no page is known
here. `compat=True` gives the published behaviour; otherwise the corrections that docs/webui.md lists apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Element:
    """One element.

    Attributes:
        node: number that stays with the element while its document lives, so that moments can be compared.
        box: x, y, width, height in pixels, from the top left corner of the document.
        styles: computed styles by name, and `text`, `class`, `placeholder`, `value`, `src`, `type`.
        tag: tag name in lower case.
        descendants: number of elements inside it.
        html: digest of its outer HTML.
        filter_by: `data-filter-by` of a target, else an empty string.
        eval_by: names in `data-evalby` of a target.
    """

    node: int
    box: tuple[float, float, float, float]
    styles: dict[str, str] = field(default_factory=dict)
    tag: str = "div"
    descendants: int = 0
    html: str = ""
    filter_by: str = ""
    eval_by: tuple[str, ...] = ()

    @property
    def area(self) -> float:
        """Width times height in square pixels."""
        return self.box[2] * self.box[3]


Table = tuple[Element, ...]
"""The elements of a page at one moment, in document order."""


def read_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Build a table from the rows that `harness.js` reads."""
    return tuple(Element(**{**row, "box": tuple(row["box"]), "eval_by": tuple(row["eval_by"])}) for row in rows)


def select_targets(tables: Sequence[Table], moment: int, compat: bool) -> list[Element]:
    """Return the targets that count at `moment`: all at moment 0, later those that the interaction changed or made.

    An element is unchanged if its outer HTML, box and styles are. Published: all count at every moment. Its program
    means to leave out what kept its outer HTML, but looks the elements up by wrappers (Selenium's
    `EventFiringWebElement`) that are equal to nothing but themselves, so it finds none.
    """
    targets = [element for element in tables[moment] if element.filter_by]
    if moment == 0 or compat:
        return targets
    before = {element.node: element for element in tables[moment - 1]}
    return [target for target in targets if not _same_look(before.get(target.node), target)]


def _same_look(before: Element | None, after: Element) -> bool:
    return before is not None and (before.html, before.box, before.styles) == (after.html, after.box, after.styles)


Styles = dict[str, str]
"""Property name -> value as text."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_PIXELS = re.compile(rf"(?:{_NUMBER.pattern})(?:px)?")
_COLOR = re.compile(r"rgba?\(([^()]*)\)")
_OPAQUE = re.compile(r"rgb\(\d+, \d+, \d+\)")
_WHOLE = re.compile(r"rgba\(\d+, \d+, \d+, \d+\)")
_SIDES = ("top", "right", "bottom", "left")
_CORNERS = ("top-left", "top-right", "bottom-right", "bottom-left")


class NotComparable(ValueError):
    """Two values have no similarity, for example `auto` and `10px`; the published code skips such a property."""


@dataclass(frozen=True)
class Property:
    """One row of the table.

    Attributes:
        weight: weight in the element's score.
        similarity: `(target, generated, compat) -> [0, 1]`; may raise `NotComparable`. `None`: the row is a filter
            only.
        passes: smallest similarity with which the filter of this property passes; `None`: no filter exists.
    """

    weight: float
    similarity: Callable[[str, str, bool], float] | None
    passes: float | None


def compare_px(target: str, generated: str, compat: bool) -> float:
    """1 minus the relative error of two lengths in pixels, at least 0; a target of 0 wants exactly 0.

    The error is taken relative to the size of the target, so that negative lengths (letter-spacing) stay within [0, 1].
    Published: a value that is not one length in pixels (`50%`) cannot be compared.
    """
    if compat and not (_PIXELS.fullmatch(target) and _PIXELS.fullmatch(generated)):
        raise NotComparable(f"{target!r} and {generated!r} are not lengths in pixels")
    x, y = _read_px(target), _read_px(generated)
    if x == 0:
        return float(y == 0)
    return max(0.0, 1.0 - abs(y - x) / abs(x))


def compare_color(target: str, generated: str, compat: bool) -> float:
    """Mean over red, green and blue of `1 - |difference| / 256`. Corrected: times `1 - |difference of alpha|`."""
    first, second = _read_colors(target), _read_colors(generated)
    if not first or not second:
        raise NotComparable(f"{target!r} and {generated!r} are not colours")
    return _color(first[0], second[0], compat)


def compare_equal(target: str, generated: str, compat: bool) -> float:
    """1 if both are the same text, else 0."""
    return float(target == generated)


def compare_text(target: str, generated: str, compat: bool) -> float:
    """Below ten words in the target: equality without case; else the Jaccard index of the two sets of words."""
    words = target.split()
    if len(words) < 10:
        return float(target.casefold() == generated.casefold())
    first, second = set(words), set(generated.split())
    return len(first & second) / len(first | second)


def compare_has_text(target: str, generated: str, compat: bool) -> float:
    """Published: always 1. Corrected: 1 if both have words or neither has."""
    return 1.0 if compat else float(bool(target.split()) == bool(generated.split()))


def compare_pair_px(target: str, generated: str, compat: bool) -> float:
    """Mean of the pixel similarity of two pairs (background-size)."""
    first, second = target.split(), generated.split()
    if len(first) != 2 or len(second) != 2:
        raise NotComparable(f"{target!r} and {generated!r} are not pairs of lengths")
    return sum(compare_px(x, y, compat) for x, y in zip(first, second, strict=True)) / 2


def compare_gradient(target: str, generated: str, compat: bool) -> float:
    """Mean colour similarity of the paired stops of two linear gradients; corrected: stops without a partner count
    0. Published: `rgba` stops do not count, and the colour behind the gradient is one of the stops.
    """
    first, second = (_read_colors(" ".join(_OPAQUE.findall(x)) if compat else x) for x in (target, generated))
    if not first or not second:
        raise NotComparable(f"{target!r} and {generated!r} are not both gradients")
    paired = [_color(x, y, compat) for x, y in zip(first, second, strict=False)]
    return sum(paired) / (len(paired) if compat else max(len(first), len(second)))


def compare_box_shadow(target: str, generated: str, compat: bool) -> float:
    """(2 x colour + similarity of the four lengths) / 6, of the first shadow.

    Published: only one shadow that is opaque and outside the box on each side can be compared.
    """
    if compat and not all(
        _OPAQUE.match(x) and x.endswith("px") and "," not in x[x.index(")") :] for x in (target, generated)
    ):
        raise NotComparable(f"{target!r} and {generated!r} are not both one opaque shadow")
    (color_t, px_t), (color_g, px_g) = _read_shadow(target), _read_shadow(generated)
    lengths = [compare_px(str(x), str(y), compat) for x, y in zip(px_t[:4], px_g[:4], strict=False)]
    if len(lengths) < 4:
        raise NotComparable(f"{target!r} and {generated!r} have not four lengths each")
    return (2 * _color(color_t[0], color_g[0], compat) + sum(lengths)) / 6


def compare_text_shadow(target: str, generated: str, compat: bool) -> float:
    """Colours weigh 2 (0 where their number differs), each paired length 1.

    Published: the first colours are compared, of those without a broken alpha; a shadow on one side only scores 0.
    """
    if compat:
        return _compare_text_shadow_as_published(target, generated)
    (color_t, px_t), (color_g, px_g) = _read_shadow(target), _read_shadow(generated)
    colors = 0.0
    if len(color_t) == len(color_g):
        colors = sum(_color(x, y, compat) for x, y in zip(color_t, color_g, strict=True)) / len(color_t)
    lengths = [compare_px(str(x), str(y), compat) for x, y in zip(px_t, px_g, strict=False)]
    return (2 * colors + sum(lengths)) / (2 + len(lengths))


def _compare_text_shadow_as_published(target: str, generated: str) -> float:
    if "rgb" not in target:
        raise NotComparable(f"{target!r} is not a shadow")
    first, second = ([*_WHOLE.findall(text), *_OPAQUE.findall(text)] for text in (target, generated))
    if len(first) == len(second) == 0:
        raise NotComparable(f"{target!r} and {generated!r} have broken alphas")
    points = 2 * compare_color(first[0], second[0], compat=True) if len(first) == len(second) else 0.0
    px_t, px_g = ([word for word in text.split(" ") if word.endswith("px")] for text in (target, generated))
    lengths = [compare_px(x, y, compat=True) for x, y in zip(px_t, px_g, strict=False)]
    return (points + sum(lengths)) / (2 + len(lengths))


def _build_table() -> dict[str, Property]:
    table = {
        "has_text": Property(44, compare_has_text, 0.5),
        "text": Property(6.8, compare_text, 0.6),
        "placeholder": Property(6.8, compare_text, 0.6),
        "value": Property(6.8, compare_text, 0.6),
        "color": Property(30, compare_color, 0.01),
        "background-color": Property(59, compare_color, 0.01),
        "background-image": Property(12.6, compare_equal, 0.5),
        "background-repeat": Property(24.5, compare_equal, 0.5),
        "background-size": Property(14.3, compare_pair_px, None),
        "background-linear-gradient": Property(18, compare_gradient, None),
        "src": Property(12.6, compare_equal, 0.5),
        "type": Property(18.9, compare_equal, 0.5),
        "outline-style": Property(79.2, compare_equal, None),
        "outline-width": Property(2.1, compare_equal, None),
        "outline-color": Property(16.9, compare_color, None),
        "font-family": Property(94.6, compare_equal, 0.5),
        "font-style": Property(94.6, compare_equal, 0.5),
        "font-size": Property(9.8, compare_px, 0.01),
        "font-weight": Property(2.1, compare_equal, 0.5),
        "height": Property(31.92, compare_px, 0.01),
        "width": Property(31.92, compare_px, 0.01),
        "tab-size": Property(50.8, compare_equal, 0.5),
        "letter-spacing": Property(67, compare_px, 0.01),
        "class": Property(66.6, None, 0.5),
        "text-shadow": Property(83, compare_text_shadow, None),
        "box-shadow": Property(56.7, compare_box_shadow, None),
        "display": Property(51, compare_equal, 0.5),
    }
    for side in _SIDES:
        table[f"border-{side}-color"] = Property(16.9, compare_color, 0.01)
        table[f"border-{side}-width"] = Property(2.1, compare_px, 0.01)
        table[f"border-{side}-style"] = Property(79.2, compare_equal, 0.5)
    for corner in _CORNERS:
        table[f"border-{corner}-radius"] = Property(100, compare_px, 0.01)
    return table


PROPERTIES: dict[str, Property] = _build_table()
POSITION_WEIGHT = 46.0
SHORTHANDS = ("background", "border", "border-radius", *(f"border-{side}" for side in _SIDES), "outline")
METHODS = (*PROPERTIES, *SHORTHANDS)
"""Every name that `data-evalby` may hold."""
FILTERS = tuple(name for name, row in PROPERTIES.items() if row.passes is not None)
"""Every name that `data-filter-by` may hold."""
CSS_PROPERTIES = tuple(
    name for name in PROPERTIES
    if name not in ("has_text", "text", "placeholder", "value", "src", "type", "class", "background-linear-gradient")
)  # fmt: skip
"""The names whose values are computed styles of the same name."""


def expand(method: str, target: Styles, compat: bool) -> tuple[str, ...]:
    """Return the table's rows that a name in `data-evalby` stands for; unknown names stand for none."""
    if method == "background":
        if "linear-gradient" in target.get("background-image", ""):
            return ("background-linear-gradient", "background-color", "background-repeat")
        return ()
    if method == "border-radius":
        return tuple(f"border-{corner}-radius" for corner in _CORNERS)
    if method == "border":
        return tuple(f"border-{side}-width" for side in _SIDES)
    # The published code knows `border-down`, which exists nowhere, instead of `border-bottom`.
    if method in ("border-top", "border-left", "border-right") or (method == "border-bottom" and not compat):
        return (f"{method}-width", f"{method}-color")
    if method == "outline":
        return ("outline-style", "outline-width", "outline-color")
    return (method,) if method in PROPERTIES else ()


def compare(name: str, target: Styles, generated: Styles, compat: bool) -> float:
    """Return the similarity in [0, 1] of one property of two elements.

    Raises:
        NotComparable: the row has no similarity, or (with `compat`) the values cannot be compared. Corrected, values
            of which at least one cannot be read compare by equality, so that losing a shadow is a loss.
    """
    row = PROPERTIES[name]
    if row.similarity is None:
        raise NotComparable(f"{name} is a filter only")
    first, second = value_of(name, target, compat), value_of(name, generated, compat)
    try:
        return row.similarity(first, second, compat)
    except NotComparable:
        if compat:
            raise
        return float(first == second)


def filter_value(name: str, target: Styles, generated: Styles, compat: bool) -> float:
    """Return what the filter adds to a pair's value: 0 where it passes, -1 where not, -0.01 where it cannot be
    evaluated.
    """
    row = PROPERTIES[name]
    if row.passes is None:
        return 0.0
    try:
        if name == "class":
            similar = float(value_of(name, target, compat) == value_of(name, generated, compat))
        else:
            similar = compare(name, target, generated, compat)
    except NotComparable:
        return -0.01
    return 0.0 if similar > row.passes else -1.0


def value_of(name: str, styles: Styles, compat: bool) -> str:
    """Return the text that a row looks at; `compat` keeps the published code's misreadings."""
    if compat:
        if name in ("placeholder", "value"):
            name = "text"
        elif name in ("src", "type"):
            return ""
        elif name == "border-top-width":
            name = "border-left-width"
    if name == "has_text":
        name = "text"
    if name == "background-linear-gradient":
        name = "background-image"
        if compat:  # the whole of `background` is read there
            return f"{styles.get('background-color', '')} {styles.get(name, '')}"
    return styles.get(name, "")


def _read_px(text: str) -> float:
    match = _NUMBER.match(text.strip())
    if match is None:
        raise NotComparable(f"{text!r} is not a length")
    return float(match[0])


def _read_colors(text: str) -> list[tuple[float, ...]]:
    colors = []
    for match in _COLOR.finditer(text):
        numbers = [float(number) for number in _NUMBER.findall(match[1])]
        if len(numbers) in (3, 4):
            colors.append((*numbers[:3], numbers[3] if len(numbers) == 4 else 1.0))
    return colors


def _color(first: tuple[float, ...], second: tuple[float, ...], compat: bool) -> float:
    similar = sum(max(1 - abs(x - y) / 256, 0.0) for x, y in zip(first[:3], second[:3], strict=True)) / 3
    return similar if compat else similar * max(0.0, 1 - abs(first[3] - second[3]))


def _read_shadow(text: str) -> tuple[list[tuple[float, ...]], list[float]]:
    colors = _read_colors(text)
    if not colors:
        raise NotComparable(f"{text!r} is not a shadow")
    return colors, [float(number) for number in _NUMBER.findall(_COLOR.sub(" ", text))]
