"""The learning curve of a run as a PNG.

Warm start and reinforcement learning apart; success, return, the shares of replies that are unreadable or cut, the
critic's explained variance, and the levels that a curriculum played; random play, what is won without the picture, and
the oracle as lines; held-out evaluations with intervals, and their success with other pictures (the sight curve).
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from vlgym.files import write_whole

SMOOTH = 5  # updates in the running mean
PLAYED, LEVEL_MEAN = "curriculum/", "curriculum/level_mean"
"""Metrics of a curriculum: the turns at each place, by the beginning of their names, and the mean level."""


def draw_curve(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    name: str,
    num_envs: int,
    warm: Sequence[tuple[int, float]],
    evaluations: Sequence[Mapping[str, Any]],
    floor: Mapping[str, float] | None,
    oracle: Mapping[str, float] | None,
    blind: Mapping[str, float] | None = None,
    controls: Mapping[str, Sequence[tuple[int, float]]] | None = None,
) -> None:
    """Write the picture.

    Args:
        path: PNG to write.
        rows: the log's rows.
        title: over the picture.
        name: of the learner.
        num_envs: environments; training is drawn from the update on by which as many episodes have ended: before, only
            short ones have.
        warm: (gradient step, validation success) of the warm start.
        evaluations: `{"env_steps", "success", "success_low", "success_high", "mean_return", "return_se",
            "invalid_rate", "cut_rate"}` on held-out episodes.
        floor: `{"success", "return", "se"}` of the random policy, `se` being the return's standard error; oracle: of
            the oracle; blind: of the best policies without the picture; None where unknown.
        controls: (environment steps, success) on held-out episodes with other pictures, by the name of these.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    played = [name for name in rows[-1] if name.startswith(PLAYED) and name != LEVEL_MEAN] if rows else []
    figure = Figure(figsize=(14.5, 6.2 if played else 4.2))
    FigureCanvasAgg(figure)
    panels = figure.subplot_mosaic(
        [["warm", "success", "return", name] for name in ("replies", "critic", *["levels"] * bool(played))],
        width_ratios=(1, 2.2, 2.2, 1.5),
    )  # fmt: skip
    left, middle, right, replies, critic = (panels[n] for n in ("warm", "success", "return", "replies", "critic"))
    shares: Any = {"ylim": (-0.03, 1.05)}
    left.set(title="supervised warm start", xlabel="gradient steps", ylabel="success", **shares)
    middle.set(title=f"reinforcement learning ({name})", xlabel="environment steps", ylabel="success", **shares)
    right.set(title="return", xlabel="environment steps")
    replies.set(title="share of replies", **shares)
    critic.set(title="explained variance of the critic", xlabel="environment steps", ylim=(-0.5, 1.05))
    for axis in panels.values():
        axis.grid(alpha=0.2)
        axis.locator_params(axis="x", nbins=6)

    left.plot([step for step, _ in warm], [value for _, value in warm], "o-", color="tab:gray", markersize=3)
    settled = drop_short(rows, num_envs)
    _draw_training(middle, _metric(settled, "episode/success"), f", from {num_envs} episodes on")
    _draw_training(right, _metric(settled, "episode/return"), f", from {num_envs} episodes on")
    at = [e["env_steps"] for e in evaluations]
    if at:
        marks: Any = {"fmt": "s", "color": "tab:red", "capsize": 4, "label": "held-out episodes, 95 % interval"}
        low = [max(0.0, e["success"] - e["success_low"]) for e in evaluations]
        high = [max(0.0, e["success_high"] - e["success"]) for e in evaluations]
        middle.errorbar(at, [e["success"] for e in evaluations], yerr=(low, high), **marks)
        half = [1.96 * e["return_se"] for e in evaluations]
        right.errorbar(at, [e["mean_return"] for e in evaluations], yerr=half, **marks)
    for (pictures, seen), marker in zip((controls or {}).items(), "ox", strict=False):
        if not seen:
            continue
        line: Any = {"color": "0.4", "linestyle": "--", "marker": marker}
        middle.plot(*zip(*seen, strict=True), label=f"held-out episodes, {pictures} pictures", **line)
    for known, word, color, style in (
        (oracle, "oracle", "tab:green", "--"), (blind, "blind", "tab:pink", "-."), (floor, "random", "tab:orange", ":"),
    ):  # fmt: skip
        if known is not None:
            line = {"color": color, "linestyle": style}
            left.axhline(known["success"], **line)
            middle.axhline(known["success"], label=f"{word} {known['success']:.2f}", **line)
            error = f"± {known['se']:.2f} (standard error)"
            right.axhline(known["return"], label=f"{word} {known['return']:.2f} {error}", **line)

    for share, word, color in (("invalid_rate", "unreadable", "tab:purple"), ("cut_rate", "cut", "tab:brown")):
        replies.plot(*_metric(rows, f"rollout/{share}"), color=color, alpha=0.6, label=f"{word}, training")
        replies.plot(at, [e[share] for e in evaluations], "s", color=color, label=f"{word}, held-out")
    _draw_training(critic, _metric(rows, "value/explained_variance"))
    for axis in (middle, right, replies, critic):
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))  # 12.5k: five digits run into each other
    for axis in (middle, right, replies):
        axis.legend(loc="best", fontsize=8)
    if played:
        _draw_levels(panels["levels"], rows, played)
    figure.suptitle(title)
    figure.tight_layout()
    write_figure(figure, path)


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, format="png")
    write_whole(path, picture.getvalue())


def drop_short(rows: Sequence[Mapping[str, Any]], num_envs: int) -> Sequence[Mapping[str, Any]]:
    """Return the rows from the update on by which as many episodes have ended as there are environments."""
    ended = accumulate(row.get("episode/count") or 0 for row in rows)
    return rows[next((place for place, count in enumerate(ended) if count >= num_envs), len(rows)) :]


def _draw_levels(axis: Any, rows: Sequence[Mapping[str, Any]], played: Sequence[str]) -> None:
    """Shares of the turns at each place of a curriculum, the easiest level of each environment below."""
    from matplotlib import colormaps

    steps = [row["env_steps"] for row in rows]
    totals = [sum(row[name] for name in played) for row in rows]
    shares = [[row[name] / total for row, total in zip(rows, totals, strict=True)] for name in played]
    shades = [colormaps["viridis"](at / max(1, len(played) - 1)) for at in range(len(played))]
    names = [name.removeprefix(PLAYED) for name in played]
    if len({name.partition("/")[0] for name in names}) == 1:
        names = [name.partition("/")[2] for name in names]
    axis.stackplot(steps, shares, colors=shades, labels=names, step="mid")
    axis.set(title="levels played, share of turns", xlabel="environment steps", ylim=(0, 1))
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7, reverse=True)


def _metric(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[list[int], list[float]]:
    """Environment steps and values of a metric, of the updates that have a number of it."""
    seen = [row for row in rows if row.get(name) is not None]
    return [row["env_steps"] for row in seen], [row[name] for row in seen]


def _draw_training(axis: Any, seen: tuple[list[int], list[float]], note: str = "") -> None:
    """A metric of training, and its running mean."""
    steps, values = seen
    windows = [values[max(0, i - SMOOTH + 1) : i + 1] for i in range(len(values))]
    axis.plot(steps, values, color="tab:blue", alpha=0.3, linewidth=1)
    means = [sum(window) / len(window) for window in windows]
    axis.plot(steps, means, color="tab:blue", label=f"training (mean of {SMOOTH} updates{note})")
