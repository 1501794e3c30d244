"""Rows of the bench as tables and plots, and the tests of the two statements that were written down before the runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Any

import numpy as np

from vlgym.intervals import holm, student_p

from ..runs.logs import write_figure
from .estimators import BASELINES, WHOLE

Row = Mapping[str, Any]
LEARNT = "GAE, learnt V"
GOOD = (0.3, 0.6)
"""Explained variance of the critics that the second statement is about."""
HEADERS = ("cell", "estimator", "correlation", "sign", "bias", "variance", "zero", "cosine with the true gradient")


def summarise(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line per cell and estimator: figures, with 95 % intervals of the first two; `HEADERS`."""
    lines = []
    for row in rows:
        for name, found in row["measures"].items():
            curve = row.get("curve", {}).get(name, {})
            cells = [
                row["cell"], name, show_with(found["correlation"], found["correlation_sd"]),
                show_with(found["sign"], found["sign_sd"]), *(show(found[each]) for each in ("bias", "variance", "zero")),
                ", ".join(f"{size}: {show(mean(values))}" for size, values in curve.items()),
            ]  # fmt: skip
            lines.append(cells)
    return lines


def show(value: float | None) -> str:
    """Return a figure with two digits; `-` for none."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def show_with(value: float | None, deviation: float | None) -> str:
    """Return a figure with the half-width of its interval."""
    return show(value) if value is None or deviation is None else f"{value:.2f} ± {1.96 * deviation:.2f}"


def mean(values: Sequence[float | None]) -> float:
    """Return the mean of the values that are known; NaN of none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else math.nan


def find_slopes(rows: Sequence[Row]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the change of the correlation per doubling of NumberLine's targets and its standard error, by policy and
    estimator (least squares)."""
    slopes = {}
    lines = [row for row in rows if row["targets"]]
    for policy in dict.fromkeys(row["policy"] for row in lines):
        own = {row["targets"]: row["measures"] for row in lines if row["policy"] == policy}
        place = np.log2([*own])
        if len(own) < 2:
            continue
        weights = (place - place.mean()) / ((place - place.mean()) ** 2).sum()
        for name in next(iter(own.values())):
            values = [(each[name]["correlation"], each[name]["correlation_sd"]) for each in own.values() if name in each]
            if len(values) == len(own) and None not in (value for value, _ in values):
                middle, deviation = np.array(values).T
                slopes[policy, name] = float(weights @ middle), float(np.sqrt(weights**2 @ deviation**2))
    return slopes


def judge_horizon(rows: Sequence[Row]) -> list[list[str]]:
    """Test the first statement: a line per kind of estimator with tests, those that fall, and the mean slope."""
    slopes = find_slopes(rows)
    stands = holm([NormalDist().cdf(slope / error) if error else 1.0 for slope, error in slopes.values()], 0.05)
    lines = []
    for kind, chosen in (("one number for all turns", True), ("step-level", False)):
        own = [(slope, yes) for (_, name), (slope, _), yes in zip(slopes, slopes.values(), stands, strict=True)
               if (name in WHOLE) == chosen]  # fmt: skip
        falls = f"{sum(yes for _, yes in own)} of {len(own)}"
        lines.append([f"(a) {kind}: correlation falls with the targets", falls, f"{mean([s for s, _ in own]):+.3f}"])
    return lines


def judge_critic(rows: Sequence[Row]) -> list[list[str]]:
    """Test the second statement by the cosines of batches in pairs: a line per group baseline with tests, those that the
    critic wins, and the mean difference; critics whose explained variance is not in `GOOD` are left out."""
    pairs: list[tuple[str, list[float]]] = []
    for row in rows:
        for size, explained in row.get("explained", {}).items():
            if not GOOD[0] <= mean(explained) <= GOOD[1]:
                continue
            for name in BASELINES:
                both = zip(row["curve"][LEARNT][size], row["curve"][name][size], strict=True)
                pairs.append((name, [a - b for a, b in both if a is not None and b is not None]))
    stands = holm([p if (p := student_p(gaps)) == p else 1.0 for _, gaps in pairs], 0.05)
    lines = []
    for name in BASELINES:
        own = [(gaps, yes) for (other, gaps), yes in zip(pairs, stands, strict=True) if other == name]
        wins, gap = f"{sum(yes for _, yes in own)} of {len(own)}", mean([g for gaps, _ in own for g in gaps])
        lines.append([f"(b) cosine of {LEARNT} above {name}", wins, f"{gap:+.3f}" if own else "-"])
    return lines


def average(rows: Sequence[Row], figure: str) -> dict[str, float]:
    """Return the mean of a figure over rows, by estimator."""
    names = dict.fromkeys(name for row in rows for name in row["measures"])
    return {name: mean([row["measures"][name][figure] for row in rows if name in row["measures"]]) for name in names}


def average_cosines(rows: Sequence[Row]) -> dict[str, dict[int, list[float]]]:
    """Return the cosines of all batches, by estimator and number of episodes."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        for name, curve in row.get("curve", {}).items():
            for size, values in curve.items():
                found.setdefault(name, {}).setdefault(int(size), []).extend(v for v in values if v is not None)
    return found


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the correlation by NumberLine's targets, and the cosine by episodes: means over policies and targets."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    lines = [row for row in rows if row["targets"]]
    targets, cosines = sorted({row["targets"] for row in lines}), average_cosines(rows)
    for number, name in enumerate(average(lines, "correlation")):
        style = {"color": f"C{number % 10}", "marker": "osD^v<>Phx*"[number % 11], "markersize": 4, "linewidth": 1.2}
        values = [average([r for r in lines if r["targets"] == n], "correlation").get(name, math.nan) for n in targets]
        left.plot(targets, values, label=name, linestyle="--" if name in WHOLE else "-", **style)
        curve = {size: (fmean(v), stdev(v) / len(v) ** 0.5 if len(v) > 1 else 0) for size, v in cosines.get(name, {}).items() if v}
        if curve:
            middle, error = zip(*curve.values(), strict=True)
            right.errorbar([*curve], middle, yerr=[1.96 * e for e in error], linestyle="--" if name in WHOLE else "-", **style)
    left.set(xlabel="targets of NumberLine", ylabel="correlation with the true advantage")
    right.set(xlabel="episodes", ylabel="cosine with the true gradient")
    for axis, ticks in ((left, targets), (right, sorted({size for curve in cosines.values() for size in curve}))):
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.grid(alpha=0.2)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    write_figure(figure, path)
