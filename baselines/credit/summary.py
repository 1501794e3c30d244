"""Rows of the bench as tables and plots, and the tests of the two statements that were written down before the runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from vlgym.intervals import holm, student_p

from ..runs.logs import write_figure
from .estimators import BASELINES, WHOLE

Row = Mapping[str, Any]
LEARNT, GOOD = "GAE, learnt V", (0.3, 0.6)
"""The estimator that the second statement is about, and the explained variance of its critics."""
HEADERS = ("cell", "estimator", "correlation", "sign", "bias", "variance", "zero", "cosine with the true gradient")


def mean(values: Iterable[float | None]) -> float:
    """Return the mean of the values that are known; NaN of none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def show(value: float | None, deviation: float | None = None) -> str:
    """Return a figure, with the half-width of its 95 % interval; `-` for none."""
    half = "" if deviation is None else f" ± {1.96 * deviation:.2f}"
    return "-" if value is None or value != value else f"{value:.2f}{half}"


def summarise(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line per cell and estimator, under `HEADERS`."""
    return [
        [row["cell"], name, *(show(found[part], found[f"{part}_sd"]) for part in ("correlation", "sign")),
         *(show(found[part]) for part in ("bias", "variance", "zero")),
         ", ".join(f"{size}: {show(mean(values))}" for size, values in row.get("curve", {}).get(name, {}).items())]
        for row in rows for name, found in row["measures"].items()
    ]  # fmt: skip


def judge_horizon(rows: Sequence[Row]) -> list[list[str]]:
    """Test statement (a): the correlation falls by doubling of NumberLine's targets, for each policy and estimator.

    A slope is that of least squares, its error that of the cells' bootstraps; one-sided, Holm over all. Return a line
    per kind of estimator: tests in which it falls, and the mean slope.
    """
    lines, slopes = [row for row in rows if row["targets"]], []
    for policy in dict.fromkeys(row["policy"] for row in lines):
        own = [row for row in lines if row["policy"] == policy]
        place = np.log2([row["targets"] for row in own])
        weights = (place - place.mean()) / max(((place - place.mean()) ** 2).sum(), 1e-9)
        for name in own[0]["measures"]:
            found = [row["measures"][name] for row in own]
            middle, error = (np.array([each[p] for each in found], float) for p in ("correlation", "correlation_sd"))
            slopes.append((name in WHOLE, weights @ middle, np.sqrt(weights**2 @ error**2)))
    stands = holm([NormalDist().cdf(slope / error) if error > 0 else 1.0 for _, slope, error in slopes], 0.05)
    result = []
    for kind, whole in (("one number for all turns", True), ("a number for each turn", False)):
        own = [(slope, yes) for (one, slope, _), yes in zip(slopes, stands, strict=True) if one == whole]
        falls = f"{sum(yes for _, yes in own)} of {len(own)}"
        result.append([f"(a) {kind}: the correlation falls", falls, f"{mean(slope for slope, _ in own):+.3f}"])
    return result


def judge_critic(rows: Sequence[Row]) -> list[list[str]]:
    """Test statement (b) by cosines of batches in pairs (Student's t, one-sided, Holm over all), where the critic's
    explained variance is in `GOOD`. Return a line per group baseline: tests that the critic wins, mean difference."""
    pairs = [
        (name, [a - b for a, b in zip(row["curve"][LEARNT][size], row["curve"][name][size], strict=True)])
        for row in rows for size, explained in row.get("explained", {}).items()
        if GOOD[0] <= mean(explained) <= GOOD[1] for name in BASELINES
    ]  # fmt: skip
    stands, result = holm([student_p(gaps) for _, gaps in pairs], 0.05), []
    for name in BASELINES:
        own = [(gaps, yes) for (other, gaps), yes in zip(pairs, stands, strict=True) if other == name]
        gap = mean(each for gaps, _ in own for each in gaps)
        result.append([f"(b) cosine of {LEARNT} above {name}", f"{sum(yes for _, yes in own)} of {len(own)}", f"{gap:+.3f}"])
    return result


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the correlation by NumberLine's targets, mean of the policies, and the cosine by episodes, mean of the cells
    of the tiny model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines, figure = [row for row in rows if row["targets"]], Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    targets = sorted({row["targets"] for row in lines})
    sizes = sorted({int(size) for row in lines for size in row.get("explained", {})})
    for number, name in enumerate(lines[0]["measures"] if lines else ()):
        style = {"color": f"C{number % 10}", "marker": "osD^v<>Phx*"[number % 11], "markersize": 4, "linewidth": 1.2,
                 "linestyle": "--" if name in WHOLE else "-", "label": name}  # fmt: skip
        cells = [[row["measures"][name]["correlation"] for row in lines if row["targets"] == n] for n in targets]
        left.plot(targets, [mean(each) for each in cells], **style)
        curves = [row["curve"][name] for row in lines if row.get("curve", {}).get(name)]
        right.plot(sizes, [mean(v for c in curves for v in c.get(str(size), ())) for size in sizes], **style)
    left.set(xlabel="targets of NumberLine", ylabel="correlation with the true advantage")
    right.set(xlabel="episodes", ylabel="cosine with the true gradient")
    for axis, ticks in ((left, targets), (right, sizes)):
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.grid(alpha=0.2)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    write_figure(figure, path)
