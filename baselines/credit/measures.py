"""Comparison of an estimate with the true advantage, with intervals over start groups.

The truth has two halves t1, t2 of independent noise: cov(t1, t2) is its variance without noise. A
correlation is corrected for attenuation (Spearman 1904), and not clipped: with t their mean,
r = cov(x, t) / sqrt(var(x) cov(t1, t2)).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..runs.logs import write_figure
from .episodes import EpisodeBatch, Truth

HEADERS = ("cell", "estimator", "correlation", "sign", "bias", "variance", "zero", "cosine with the true gradient")
WHOLE = ("GRPO", "RLOO, LOOP")  # estimators that give all turns of an episode one number
DRAWS, ZERO = 400, 1e-9  # bootstrap samples; the largest number that counts as 0
SURE = 2.0  # standard errors of a half that make a true sign sure


def measure(estimate: Tensor, truth: Truth, episodes: EpisodeBatch) -> dict[str, Any]:
    """Compare an estimate [G, K, T] with the truth on the turns where it is known.

    Returns:
        correlation and sign agreement, each with its deviation over bootstrap samples of start
        groups; bias, variance (`decompose`); shares of turns with the estimate 0 and with a sure
        true sign; reliability of the truth's mean.
    """
    used = episodes.mask & ~truth.halves[0].isnan()
    group = torch.arange(len(used)).view(-1, 1, 1).expand(used.shape)[used].numpy()
    x, a, b, error = (each[used].numpy() for each in (estimate, *truth.halves, truth.errors[0]))
    place = episodes.keys * used.shape[-1] + torch.arange(used.shape[-1])
    alike = (place * (int(episodes.actions.max()) + 1) + episodes.actions)[used].numpy()

    # Figures are made of sums over groups, so a bootstrap sample is a weighing of them.
    sums = sum_groups(group, len(used), turn_moments(x, a, b))
    sure = np.abs(a) > np.maximum(SURE * error, ZERO)
    right = np.where((np.abs(x) < ZERO) | (np.abs(b) < ZERO), 0.5, np.sign(x) == np.sign(b))
    signs = sum_groups(group, len(used), np.stack([sure * right, sure * 1.0]))
    draws = np.random.default_rng(0).multinomial(len(used), [1 / len(used)] * len(used), size=DRAWS)
    weights, row = np.vstack([np.ones(len(used)), draws]), dict[str, Any]()
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = {"correlation": correlate(weights @ sums), "sign": np.divide(*(weights @ signs).T)}
    for name, values in samples.items():
        known = values[np.isfinite(values)]
        deviation = known[1:].std() if len(known) > 1 else np.nan
        row |= {name: float(values[0]), f"{name}_sd": float(deviation)}

    # Exact truth has no noise.
    row["bias"], row["variance"] = decompose(x, a, b, group, alike)
    spread, zero = np.cov(a, b), np.abs(estimate[episodes.mask].numpy()) < ZERO
    reliability = float(4 * spread[0, 1] / spread.sum()) if error.any() else 1.0
    row |= {"zero": float(zero.mean()), "turns": len(x), "sure": float(sure.mean())}
    return row | {"reliability": reliability}


def turn_moments(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return what `correlate` needs of each turn, [8, turns]."""
    return np.stack([np.ones_like(x), x, (a + b) / 2, a, b, x * x, x * (a + b) / 2, a * b])


def correlate(sums: np.ndarray) -> np.ndarray:
    """Return the corrected correlation of each row of sums of `turn_moments`, [draws, 8] -> [draws]."""
    x, t, a, b, xx, xt, ab = sums.T[1:] / sums.T[0]
    return (xt - x * t) / np.sqrt((xx - x**2) * (ab - a * b))


def sum_groups(group: np.ndarray, count: int, values: np.ndarray) -> np.ndarray:
    """Sum values [m, turns] over the turns of each group, [count, m]."""
    return np.stack([np.bincount(group, row, minlength=count) for row in values], axis=1)


def decompose(x: np.ndarray, a: np.ndarray, b: np.ndarray, group: np.ndarray, alike: np.ndarray) -> tuple[float, float]:
    """Return root mean square bias and variance of an estimate given picture, turn and action. The
    squared bias is the mean product of errors of alike turns of two groups, one for each half."""
    # Sums over the turns of each group that are alike.
    _, kind = np.unique(alike, return_inverse=True)
    pair, part = np.unique(np.stack([kind, group]), axis=1, return_inverse=True)
    errors = sum_groups(part.ravel(), pair.shape[1], np.stack([np.ones_like(x), x - a, x - b]))

    # Products of a group with itself are left out.
    products = np.stack([*errors.T, errors[:, 0] ** 2, errors[:, 1] * errors[:, 2]])
    n, first, second, own_n, own = sum_groups(pair[0], kind.max() + 1, products).T
    if not (used := n**2 > own_n).any():
        return float("nan"), float("nan")
    square = np.average((first * second - own)[used] / (n**2 - own_n)[used], weights=n[used])
    variance = float(np.mean(((x - a) * (x - b))[used[kind]]) - square)
    return float(np.sqrt(square)) if square >= 0 else float("nan"), variance


def cosine(first: Tensor, second: Tensor, gram: Tensor) -> float:
    """Return the cosine of two gradients: coefficients [P] of vectors with products `gram` [P, P]."""
    return float(first @ gram @ second / ((first @ gram @ first) * (second @ gram @ second)).sqrt())


def mean(values: Iterable[float | None]) -> float:
    """Return the mean of the values that are known; NaN of none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def format_measure(value: float | None, deviation: float | None = None) -> str:
    """Return a figure, with the half-width of its 95 % interval; `-` for none."""
    half = "" if deviation is None else f" ± {1.96 * deviation:.2f}"
    return "-" if value is None or value != value else f"{value:.2f}{half}"


def list_lines(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return a line per cell and estimator, under `HEADERS`."""
    lines = []
    for row in rows:
        for name, measures in row["measures"].items():
            bounded = [format_measure(measures[x], measures[f"{x}_sd"]) for x in ("correlation", "sign")]
            plain = [format_measure(measures[x]) for x in ("bias", "variance", "zero")]
            curve = row.get("curve", {}).get(name, {})
            cosines = ", ".join(f"{size}: {format_measure(mean(values))}" for size, values in curve.items())
            lines.append([row["cell"], name, *bounded, *plain, cosines])
    return lines


def pick_lines(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return NumberLine's rows of the policies that have a row for each number of targets."""
    lines = [row for row in rows if row["targets"]]
    counts = Counter(row["policy"] for row in lines)
    return [row for row in lines if counts[row["policy"]] == max(counts.values())]


def draw_measures(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw means over NumberLine's policies: correlation by targets, and cosine by episodes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines, figure = pick_lines(rows), Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    targets = sorted({row["targets"] for row in lines})
    curves = [row for row in rows if row.get("curve")]
    sizes = sorted({int(size) for row in curves for size in row["explained"]})

    # Estimators of whole episodes are dashed.
    for number, name in enumerate(dict.fromkeys(name for row in lines for name in row["measures"])):
        style = {"color": f"C{number % 10}", "marker": "osD^v<>Phx*"[number % 11], "markersize": 4,
                 "linewidth": 1.2, "linestyle": "--" if name in WHOLE else "-",
                 "label": name}  # fmt: skip
        points = [(row["targets"], row["measures"].get(name, {}).get("correlation")) for row in lines]
        left.plot(targets, [mean(x for n, x in points if n == own) for own in targets], **style)
        both = [row["curve"].get(name, {}) for row in curves]
        cosines = [mean(x for curve in both for x in curve.get(str(size), ())) for size in sizes]
        right.plot(sizes, cosines, **style)

    left.set(xlabel="targets of NumberLine", ylabel="correlation with the true advantage")
    right.set(xlabel="episodes", ylabel="cosine with the true gradient")
    for axis, ticks in ((left, targets), (right, sizes)):
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.grid(alpha=0.2)
    right.set_visible(bool(sizes))
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    write_figure(figure, path)
