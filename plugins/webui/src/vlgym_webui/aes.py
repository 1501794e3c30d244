"""Atomic Element Similarity (AES) of MageBench, as a pure function of element tables.

    AES = sum of (element score x element weight) / sum of element weights,
          over the pages "initial" and "after interaction i".

`compat=True` is the published algorithm; docs/webui.md lists the corrections of the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from .style_table import (
    FILTERS,
    POSITION_WEIGHT,
    PROPERTIES,
    Element,
    NotComparable,
    Table,
    compare,
    expand,
    filter_value,
    select_targets,
    value_of,
)

AREA_EXPONENT = 0.8987018465995789  # an element weighs its area to this power
NO_MATCH = 1e5  # cost of a pair that must not be matched

# No readable code; page not rendered; interaction failed; element not found; its properties differ;
# it is not to be seen (0 in the published form, which looks at no photograph).
LOSSES = ("Par", "Ren", "Act", "Mat", "Attr", "Vis")

Box = tuple[float, float, float, float]
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
            matches.append(Match(target, partner, score, weigh(target)))
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


def weigh(target: Element) -> float:
    """Return the weight of an element."""
    return float(target.area**AREA_EXPONENT)


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
