"""Atomic Element Similarity (AES) of MageBench as a pure function of element tables, with its decomposition of the
loss.

    AES = sum of (element score x element weight) / sum of element weights, over the pages "initial" and "after
    interaction i".

Two forms: `compat=True` is the published algorithm with its mistakes; the default corrects them (see docs/webui.md).
Nothing here knows a browser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .style_table import (
    POSITION_WEIGHT,
    PROPERTIES,
    Element,
    NotComparable,
    Table,
    compare,
    expand,
    filter_value,
    select_targets,
)

AREA_EXPONENT = 0.8987018465995789
"""An element weighs its area to this power."""

NO_MATCH = 1e5
"""Cost of a pair that must not be matched."""

LOSSES = ("Par", "Ren", "Act", "Mat", "Attr", "Vis")
"""No readable code; page not rendered; interaction failed; element not found; properties of found elements differ;
found elements are not to be seen (0 in the published form, which looks at no photograph)."""

Agree = Callable[[int, tuple[float, float, float, float], tuple[float, float, float, float]], float]
"""(number of the page, box of the target, box of the element that was found) -> share in [0, 1]."""


@dataclass(frozen=True)
class Match:
    """A target and what it was matched with.

    Attributes:
        target: the target.
        found: its partner on the generated page; `None` where there is none.
        score: element score in [0, 1].
        weight: element weight.
    """

    target: Element
    found: Element | None
    score: float
    weight: float


@dataclass(frozen=True)
class Report:
    """AES and where the rest was lost.

    Attributes:
        score: AES in percent, 0 to 100.
        losses: percent lost by kind (`LOSSES`); score and losses add up to 100.
        pages: AES in percent of each page by itself, initial page first; `None` where nothing counts on it.
    """

    score: float
    losses: dict[str, float]
    pages: tuple[float | None, ...] = ()


def score_pages(
    targets: Sequence[Table],
    generated: Sequence[Table | None] | None,
    *,
    compat: bool = False,
    agree: Agree | None = None,
) -> Report:
    """Score a generated page against its target.

    Args:
        targets: tables of the target: the initial page, then after each interaction.
        generated: the same of the generated page; `None` in the place of an interaction that failed, and as a whole
            if the page could not be rendered.
        compat: the published algorithm instead of the corrected one.
        agree: how far a found element is to be seen in the photograph as its target is; `None`: wholly.
    """
    if generated is None or generated[0] is None:
        return lose_all("Ren", len(targets))
    points = np.zeros(len(targets))
    weights = np.zeros(len(targets))
    lost = dict.fromkeys(LOSSES, 0.0)
    for moment in range(len(targets)):
        wanted = select_targets(targets, moment, compat)
        page = generated[moment] if moment < len(generated) else None
        if page is None:
            own = match_elements(wanted, targets[moment], compat)
            weights[moment] = sum(match.weight for match in own)
            lost["Act"] += weights[moment]
            continue
        for match in match_elements(wanted, page, compat):
            weights[moment] += match.weight
            share = 1.0 if agree is None or match.found is None else agree(moment, match.target.box, match.found.box)
            points[moment] += share * match.score * match.weight
            lost["Mat" if match.found is None else "Attr"] += (1 - match.score) * match.weight
            lost["Vis"] += (1 - share) * match.score * match.weight
    total = float(weights.sum())
    if total == 0:
        return lose_all("Mat", len(targets))
    pages = tuple(float(100 * p / w) if w else None for p, w in zip(points, weights, strict=True))
    return Report(
        float(100 * points.sum() / total), {kind: float(100 * value / total) for kind, value in lost.items()}, pages
    )


def lose_all(kind: str, pages: int = 1) -> Report:
    """Return the report of a page that lost everything for one reason, one of `LOSSES`."""
    return Report(0.0, {name: 100.0 * (name == kind) for name in LOSSES}, (0.0,) * pages)


def match_elements(targets: Sequence[Element], candidates: Sequence[Element], compat: bool) -> list[Match]:
    """Pair targets with candidates at least total cost, and score each pair.

    Published, a target whose best partner is too unlike drops out of both sums; corrected, it counts with score 0.
    """
    if compat:
        targets = [t for t in targets if t.filter_by in PROPERTIES and PROPERTIES[t.filter_by].passes is not None]
    if not targets:
        return []
    partners: dict[int, int] = {}
    penalised: set[int] = set()
    if candidates:
        from scipy.optimize import linear_sum_assignment  # slow: not where an environment is only made

        cost = pair_costs(targets, candidates, compat)
        for row, column in zip(*linear_sum_assignment(cost), strict=True):
            if cost[row, column] <= 1.0:
                partners[int(row)] = int(column)
            else:
                penalised.add(int(row))
    matches = []
    for row, target in enumerate(targets):
        if row in penalised and compat:
            continue
        partner = candidates[partners[row]] if row in partners else None
        score = score_element(target, partner, compat) if partner is not None else 0.0
        matches.append(Match(target, partner, score, weigh(target)))
    return matches


def pair_costs(targets: Sequence[Element], candidates: Sequence[Element], compat: bool) -> np.ndarray:
    """Return the costs `[targets, candidates] float64`: minus the value of a pair, or `NO_MATCH` where the value is
    below -1.

    The value is GIoU + filter - 1e-5 x descendants of the candidate. Corrected, the last term takes the difference
    in descendants, so that of two boxes in the same place the one with the target's own contents is preferred.
    """
    giou, _ = box_overlaps(_boxes(targets), _boxes(candidates))
    inside = np.array([candidate.descendants for candidate in candidates], dtype=np.float64)[None, :]
    if not compat:
        inside = np.abs(inside - np.array([target.descendants for target in targets], dtype=np.float64)[:, None])
    value = giou + _filters(targets, candidates, compat) - 1e-5 * inside
    return np.where(value >= -1.0, -value, NO_MATCH)


def score_element(target: Element, candidate: Element, compat: bool) -> float:
    """Return the weighted mean similarity in [0, 1] of the target's properties and of its position."""
    points = weights = 0.0
    for method in target.eval_by:
        similar = []
        for name in expand(method, target.styles, compat):
            try:
                similar.append((compare(name, target.styles, candidate.styles, compat), PROPERTIES[name].weight))
            except NotComparable:
                continue
        if similar:
            points += sum(value * weight for value, weight in similar) / len(similar)
            weights += sum(weight for _, weight in similar) / len(similar)
    giou, cover = box_overlaps(_boxes([target]), _boxes([candidate]))
    position = 0.5 + 0.5 * cover[0, 0] if cover[0, 0] > 0 else (giou[0, 0] + 1) / 2
    return float((points + POSITION_WEIGHT * position) / (weights + POSITION_WEIGHT))


def weigh(target: Element) -> float:
    """Return the weight of an element."""
    return float(target.area**AREA_EXPONENT)


def box_overlaps(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return GIoU and the intersection's share of the smaller box, both `[n, m] float64`, with inclusive pixel areas.

    Args:
        first: `[n, 4] float64` boxes x, y, width, height.
        second: `[m, 4] float64`.
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
    known: dict[tuple[str, str, str], float] = {}
    for row, target in enumerate(targets):
        if target.filter_by not in PROPERTIES:
            continue  # corrected: a target that cannot be filtered still counts
        name = target.filter_by
        read = "background-image" if name == "background-linear-gradient" else "text" if name == "has_text" else name
        for column, candidate in enumerate(candidates):
            key = (name, target.styles.get(read, ""), candidate.styles.get(read, ""))
            if compat or key not in known:
                known[key] = filter_value(name, target.styles, candidate.styles, compat)
            values[row, column] = known[key]
    return values
