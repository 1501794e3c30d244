"""Atomic Element Similarity (AES) of MageBench, as a pure function of element tables.

    AES = sum of (element score x element weight) / sum of element weights,
          over the pages "initial" and "after interaction i".

Computed styles come in as a browser reports them. `compat=True` is the published algorithm;
docs/webui.md lists the corrections of the default.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Box = tuple[float, float, float, float]  # x, y, width, height in pixels of the document


@dataclass(frozen=True)
class Element:
    """One element."""

    node: int  # stays with the element while its document lives
    box: Box
    styles: dict[str, str] = field(default_factory=dict)  # computed; text, class, value, ...
    tag: str = "div"
    descendants: int = 0  # elements inside it
    html: str = ""  # digest of its outer HTML
    filter_by: str = ""  # `data-filter-by` of a target
    eval_by: tuple[str, ...] = ()  # names in `data-evalby` of a target

    @property
    def area(self) -> float:
        """Width times height in square pixels."""
        return self.box[2] * self.box[3]


Table = tuple[Element, ...]  # the elements of a page at one moment, in document order


def read_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Build a table from the rows that `harness.js` reads."""
    sequences = ("box", "eval_by")
    return tuple(Element(**{**row, **{name: tuple(row[name]) for name in sequences}}) for row in rows)


def select_targets(tables: Sequence[Table], moment: int, compat: bool) -> list[Element]:
    """Return the targets that count at `moment`.

    Later than moment 0 those count whose outer HTML, box or styles the interaction changed or made.
    Published: all, because wrappers of Selenium are compared, which equal only themselves.
    """
    targets = [element for element in tables[moment] if element.filter_by]
    if moment == 0 or compat:
        return targets
    before = {element.node: (element.html, element.box, element.styles) for element in tables[moment - 1]}
    return [each for each in targets if before.get(each.node) != (each.html, each.box, each.styles)]


Styles = dict[str, str]  # property name -> value as text

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_PIXELS = re.compile(rf"(?:{_NUMBER.pattern})(?:px)?")
_COLOR = re.compile(r"rgba?\(([^()]*)\)")
_OPAQUE = re.compile(r"rgb\(\d+, \d+, \d+\)")
_ONE_SHADOW = re.compile(rf"{_OPAQUE.pattern}[^,]*px")
_WHOLE = re.compile(r"rgba\(\d+, \d+, \d+, \d+\)")
_SIDES = ("top", "right", "bottom", "left")
_CORNERS = ("top-left", "top-right", "bottom-right", "bottom-left")


class NotComparable(ValueError):
    """Two values have no similarity, as `auto` and `10px`."""


@dataclass(frozen=True)
class Property:
    """One row of the table."""

    weight: float  # in the element's score
    similarity: Callable[[str, str, bool], float]  # (target, generated, compat) -> [0, 1]
    passes: float | None  # the filter passes above this similarity; `None`: no filter exists


def compare_px(target: str, generated: str, compat: bool) -> float:
    """1 minus the relative error of two lengths in pixels, at least 0; a target of 0 wants 0.

    The error is relative to the target's magnitude, since letter-spacing may be negative.
    Published: a value that is not one length in pixels (`50%`) cannot be compared.
    """
    if compat and not (_PIXELS.fullmatch(target) and _PIXELS.fullmatch(generated)):
        raise NotComparable(target, generated)
    x, y = _read_px(target), _read_px(generated)
    if x == 0:
        return float(y == 0)
    return max(0.0, 1.0 - abs(y - x) / abs(x))


def compare_color(target: str, generated: str, compat: bool) -> float:
    """Mean over red, green and blue of `1 - |difference| / 256`; corrected, times that of alpha."""
    first, second = _read_colors(target), _read_colors(generated)
    if not first or not second:
        raise NotComparable(target, generated)
    return _color(first[0], second[0], compat)


def compare_equal(target: str, generated: str, compat: bool) -> float:
    """1 if both are the same text, else 0."""
    return float(target == generated)


def compare_text(target: str, generated: str, compat: bool) -> float:
    """Equality without case below ten words in the target, else the Jaccard index of the words."""
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
        raise NotComparable(target, generated)
    return sum(compare_px(x, y, compat) for x, y in zip(first, second, strict=True)) / 2


def compare_gradient(target: str, generated: str, compat: bool) -> float:
    """Mean colour similarity of the paired stops of two linear gradients; others count 0.

    Published: only paired opaque stops count, and the colour behind the gradient is a stop.
    """
    values = (target, generated)
    first, second = (_read_colors(" ".join(_OPAQUE.findall(x)) if compat else x) for x in values)
    if not first or not second:
        raise NotComparable(target, generated)
    paired = [_color(x, y, compat) for x, y in zip(first, second, strict=False)]
    return sum(paired) / (len(paired) if compat else max(len(first), len(second)))


def compare_box_shadow(target: str, generated: str, compat: bool) -> float:
    """(2 x colour + similarity of the four lengths) / 6, of the first shadow.

    Published: only one shadow that is opaque and outside the box on each side can be compared.
    """
    if compat and not (_ONE_SHADOW.fullmatch(target) and _ONE_SHADOW.fullmatch(generated)):
        raise NotComparable(target, generated)
    (color_t, px_t), (color_g, px_g) = _read_shadow(target), _read_shadow(generated)
    lengths = [compare_px(str(x), str(y), compat) for x, y in zip(px_t[:4], px_g[:4], strict=False)]
    if len(lengths) < 4:
        raise NotComparable(target, generated)
    return (2 * _color(color_t[0], color_g[0], compat) + sum(lengths)) / 6


def compare_text_shadow(target: str, generated: str, compat: bool) -> float:
    """Colours weigh 2 (0 where their number differs), each paired length 1.

    Published: only the first colours without a broken alpha; a shadow on one side only scores 0.
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
    values = (target, generated)
    first, second = ([*_WHOLE.findall(text), *_OPAQUE.findall(text)] for text in values)
    if "rgb" not in target or len(first) == len(second) == 0:
        raise NotComparable(target, generated)
    same = len(first) == len(second)
    points = 2 * compare_color(first[0], second[0], compat=True) if same else 0.0
    px_t, px_g = ([word for word in text.split(" ") if word.endswith("px")] for text in values)
    lengths = [compare_px(x, y, compat=True) for x, y in zip(px_t, px_g, strict=False)]
    return (points + sum(lengths)) / (2 + len(lengths))


PROPERTIES: dict[str, Property] = {
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
    "class": Property(66.6, compare_equal, 0.5),
    "text-shadow": Property(83, compare_text_shadow, None),
    "box-shadow": Property(56.7, compare_box_shadow, None),
    "display": Property(51, compare_equal, 0.5),
    **{f"border-{side}-color": Property(16.9, compare_color, 0.01) for side in _SIDES},
    **{f"border-{side}-width": Property(2.1, compare_px, 0.01) for side in _SIDES},
    **{f"border-{side}-style": Property(79.2, compare_equal, 0.5) for side in _SIDES},
    **{f"border-{corner}-radius": Property(100, compare_px, 0.01) for corner in _CORNERS},
}
POSITION_WEIGHT = 46.0
BORDERS = tuple(f"border-{side}" for side in _SIDES)
# Every name that `data-evalby`, and that `data-filter-by` may hold.
METHODS = (*PROPERTIES, "background", "border", "border-radius", *BORDERS, "outline")
FILTERS = tuple(name for name, row in PROPERTIES.items() if row.passes is not None)
_NO_STYLES = ("has_text", "text", "placeholder", "value", "src", "type", "class", "background-linear-gradient")
CSS_PROPERTIES = tuple(name for name in PROPERTIES if name not in _NO_STYLES)
_SOURCES = {"has_text": "text", "background-linear-gradient": "background-image"}
_MISREADINGS = {"placeholder": "text", "value": "text", "border-top-width": "border-left-width"}
_PUBLISHED_SOURCES = {**_SOURCES, **_MISREADINGS}


def expand(method: str, target: Styles, compat: bool) -> tuple[str, ...]:
    """Return the table's rows for a name in `data-evalby`; an unknown name, and `class`, have none."""
    if method == "background":
        if "linear-gradient" in target.get("background-image", ""):
            return ("background-linear-gradient", "background-color", "background-repeat")
        return ()
    if method == "border-radius":
        return tuple(f"border-{corner}-radius" for corner in _CORNERS)
    if method == "border":
        return tuple(f"{border}-width" for border in BORDERS)
    if method in BORDERS:
        # The published code knows `border-down`, which exists nowhere, instead of `border-bottom`.
        unknown = compat and method == "border-bottom"
        return () if unknown else (f"{method}-width", f"{method}-color")
    if method == "outline":
        return ("outline-style", "outline-width", "outline-color")
    return (method,) if method in PROPERTIES and method != "class" else ()


def compare(name: str, target: Styles, generated: Styles, compat: bool) -> float:
    """Return the similarity in [0, 1] of one property of two elements.

    Unreadable values: published, `NotComparable` is raised; corrected, they compare by equality.
    """
    first, second = value_of(name, target, compat), value_of(name, generated, compat)
    try:
        return PROPERTIES[name].similarity(first, second, compat)
    except NotComparable:
        if compat:
            raise
        return float(first == second)


def filter_value(name: str, target: Styles, generated: Styles, compat: bool) -> float:
    """Return the filter's share of a value: 0 (passes), -1 (fails), -0.01 (not comparable)."""
    passes = PROPERTIES[name].passes
    if passes is None:
        return 0.0
    try:
        return 0.0 if compare(name, target, generated, compat) > passes else -1.0
    except NotComparable:
        return -0.01


def value_of(name: str, styles: Styles, compat: bool) -> str:
    """Return the text that a row looks at; `compat` keeps the published code's misreadings."""
    if compat and name in ("src", "type"):
        return ""
    if compat and name == "background-linear-gradient":  # the whole of `background` is read there
        return f"{styles.get('background-color', '')} {styles.get('background-image', '')}"
    return styles.get((_PUBLISHED_SOURCES if compat else _SOURCES).get(name, name), "")


def _read_px(text: str) -> float:
    match = _NUMBER.match(text.strip())
    if match is None:
        raise NotComparable(text)
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
        raise NotComparable(text)
    return colors, [float(number) for number in _NUMBER.findall(_COLOR.sub(" ", text))]


AREA_EXPONENT = 0.8987018465995789  # an element weighs its area to this power
NO_MATCH = 1e5  # cost of a pair that must not be matched

# No readable code; page not rendered; interaction failed; element not found; its properties differ;
# it is not to be seen (0 in the published form, which looks at no photograph).
LOSSES = ("Par", "Ren", "Act", "Mat", "Attr", "Vis")

Agree = Callable[[int, Box, Box], float]  # (page, target's box, partner's box) -> share in [0, 1]


@dataclass(frozen=True)
class Match:
    """A target, its partner on the generated page if there is one, and its score in [0, 1]."""

    target: Element
    partner: Element | None
    score: float
    weight: float


@dataclass(frozen=True)
class Report:
    """AES and its losses, in percent."""

    score: float
    losses: dict[str, float]  # by kind (`LOSSES`); score and losses add up to 100
    pages: tuple[float | None, ...] = ()  # AES of each page by itself; `None`: nothing counts on it


def score_pages(
    targets: Sequence[Table],
    generated: Sequence[Table | None],
    *,
    compat: bool = False,
    agree: Agree | None = None,
) -> Report:
    """Score a generated page against its target.

    Args:
        targets: tables of the initial page, then after each interaction.
        generated: likewise; `None` where an interaction failed or the page could not be rendered.
        compat: the published algorithm instead of the corrected one.
        agree: how far a partner is to be seen in the photograph; `None`: wholly.
    """
    if generated[0] is None:
        return lose_all("Ren", len(targets))
    points, weights = np.zeros(len(targets)), np.zeros(len(targets))
    lost = dict.fromkeys(LOSSES, 0.0)
    for moment, page in enumerate(generated):
        wanted = select_targets(targets, moment, compat)

        # A failed interaction loses all that counts on its page.
        if page is None:
            own = match_elements(wanted, targets[moment], compat)
            weights[moment] = sum(match.weight for match in own)
            lost["Act"] += weights[moment]
            continue

        # Every target's weight goes to the score or to a loss, so that they add up.
        for match in match_elements(wanted, page, compat):
            weights[moment] += match.weight
            share = 1.0
            if agree is not None and match.partner is not None:
                share = agree(moment, match.target.box, match.partner.box)
            points[moment] += share * match.score * match.weight
            lost["Mat" if match.partner is None else "Attr"] += (1 - match.score) * match.weight
            lost["Vis"] += (1 - share) * match.score * match.weight

    # In percent of all weights.
    total = float(weights.sum())
    if total == 0:
        return lose_all("Mat", len(targets))
    pages = tuple(float(100 * p / w) if w else None for p, w in zip(points, weights, strict=True))
    losses = {kind: float(100 * value / total) for kind, value in lost.items()}
    return Report(float(100 * points.sum() / total), losses, pages)


def lose_all(kind: str, pages: int) -> Report:
    """Return the report of pages that lost everything for one reason, one of `LOSSES`."""
    return Report(0.0, {name: 100.0 * (name == kind) for name in LOSSES}, (0.0,) * pages)


def match_elements(targets: Sequence[Element], candidates: Sequence[Element], compat: bool) -> list[Match]:
    """Pair targets with candidates at least total cost, and score each pair.

    Published, a target whose partner is too unlike drops out of both sums; corrected, it scores 0.
    """
    if compat:
        targets = [target for target in targets if target.filter_by in FILTERS]
    partners: dict[int, Element] = {}
    unlike: set[int] = set()
    if targets and candidates:
        from scipy.optimize import linear_sum_assignment  # slow to import

        cost = pair_costs(targets, candidates, compat)
        for row, column in zip(*linear_sum_assignment(cost), strict=True):
            if cost[row, column] <= 1.0:
                partners[row] = candidates[column]
            else:
                unlike.add(row)

    # A target without a partner stays: it has lost its weight.
    matches = []
    for row, target in enumerate(targets):
        if row not in unlike or not compat:
            partner = partners.get(row)
            score = 0.0 if partner is None else score_element(target, partner, compat)
            matches.append(Match(target, partner, score, target.area**AREA_EXPONENT))
    return matches


def pair_costs(targets: Sequence[Element], candidates: Sequence[Element], compat: bool) -> np.ndarray:
    """Return the costs `[targets, candidates] float64` of pairs.

    They are minus the pair's value, or `NO_MATCH` where that is below -1. The value is GIoU +
    filter - 1e-5 x descendants of the candidate. Corrected, the last term takes the difference in
    descendants: of two boxes in one place, the one with the target's own contents is preferred.
    """
    giou, _ = box_overlaps(_boxes(targets), _boxes(candidates))
    inside = np.array([candidate.descendants for candidate in candidates], dtype=np.float64)[None, :]
    if not compat:
        inside = np.abs(inside - np.array([target.descendants for target in targets], dtype=np.float64)[:, None])
    value = giou + _filters(targets, candidates, compat) - 1e-5 * inside
    return np.where(value >= -1.0, -value, NO_MATCH)


def score_element(target: Element, candidate: Element, compat: bool) -> float:
    """Return the weighted mean similarity in [0, 1] of the target's properties and position."""
    points = weights = 0.0
    for method in target.eval_by:
        similar = []
        for name in expand(method, target.styles, compat):
            with suppress(NotComparable):
                similarity = compare(name, target.styles, candidate.styles, compat)
                similar.append((similarity, PROPERTIES[name].weight))
        if similar:
            points += sum(value * weight for value, weight in similar) / len(similar)
            weights += sum(weight for _, weight in similar) / len(similar)

    # The place counts like one more property.
    giou, cover = box_overlaps(_boxes([target]), _boxes([candidate]))
    position = 0.5 + 0.5 * cover[0, 0] if cover[0, 0] > 0 else (giou[0, 0] + 1) / 2
    return float((points + POSITION_WEIGHT * position) / (weights + POSITION_WEIGHT))


def box_overlaps(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return GIoU and the intersection's share of the smaller box, both `[n, m] float64`.

    Boxes are `[n, 4]` and `[m, 4] float64`: x, y, width, height. Areas are of inclusive pixels.
    """
    a, b = first[:, None, :], second[None, :, :]
    area_a, area_b = (a[..., 2] + 1) * (a[..., 3] + 1), (b[..., 2] + 1) * (b[..., 3] + 1)
    a_end, b_end = a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:]
    inner = np.maximum(np.minimum(a_end, b_end) - np.maximum(a[..., :2], b[..., :2]) + 1, 0).prod(axis=-1)
    hull = (np.maximum(a_end, b_end) - np.minimum(a[..., :2], b[..., :2]) + 1).prod(axis=-1)
    union = area_a + area_b - inner
    return inner / union - (hull - union) / hull, inner / np.minimum(area_a, area_b)


def _boxes(elements: Sequence[Element]) -> np.ndarray:
    return np.array([element.box for element in elements], dtype=np.float64).reshape(-1, 4)


def _filters(targets: Sequence[Element], candidates: Sequence[Element], compat: bool) -> np.ndarray:
    values = np.zeros((len(targets), len(candidates)))
    known: dict[tuple[str, ...], float] = {}
    for row, target in enumerate(targets):
        name = target.filter_by
        if name not in PROPERTIES:
            continue  # corrected: a target that cannot be filtered still counts
        for column, candidate in enumerate(candidates):
            key = (name, *(value_of(name, each.styles, compat) for each in (target, candidate)))
            if key not in known:
                known[key] = filter_value(name, target.styles, candidate.styles, compat)
            values[row, column] = known[key]
    return values
