"""The learning curve of a run as a PNG.

Warm start and reinforcement learning apart; success, return, the shares of replies that are unreadable or cut, and the
critic's explained variance; random play, what is won without the picture, and the oracle as lines; held-out evaluations
with intervals, and the trained model's success in grey as a line.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlgym.files import write_whole

SMOOTH = 5  # updates in the running mean


def draw_curve(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    name: str,
    warm: Sequence[tuple[int, float]],
    evaluations: Sequence[Mapping[str, Any]],
    floor: Mapping[str, float] | None,
    oracle: Mapping[str, float] | None,
    blind: Mapping[str, float] | None = None,
    grey: float | None = None,
) -> None:
    """Write the picture.

    Args:
        path: PNG to write.
        rows: the log's rows.
        title: over the picture.
        name: of the learner.
        warm: (gradient step, validation success) of the warm start.
        evaluations: `{"env_steps", "success", "success_low", "success_high", "mean_return", "return_se",
            "invalid_rate", "cut_rate"}` on held-out episodes.
        floor: `{"success", "return", "se"}` of the random policy, `se` being the return's standard error; oracle: of
            the oracle; blind: of the best policies without the picture; None where unknown.
        grey: success of the trained model on held-out episodes with grey pictures.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14.5, 4.2))
    FigureCanvasAgg(figure)
    panels = figure.subplot_mosaic(
        [["warm", "success", "return", "replies"], ["warm", "success", "return", "critic"]],
        width_ratios=(1, 2.2, 2.2, 1.5),
    )  # fmt: skip
    left, middle, right, last = (panels[name] for name in ("warm", "success", "return", "replies"))
    left.set(title="supervised warm start", xlabel="gradient steps", ylabel="success", ylim=(-0.03, 1.05))
    if warm:
        left.plot([step for step, _ in warm], [value for _, value in warm], "o-", color="tab:gray", markersize=3)
    else:
        left.text(0.5, 0.5, "none", ha="center", transform=left.transAxes)
    middle.set(title=f"reinforcement learning ({name})", xlabel="environment steps", ylabel="success")
    middle.set(ylim=(-0.03, 1.05))
    right.set(title="return", xlabel="environment steps")
    intervals = {
        "success": [
            (e["success"], e["success"] - e["success_low"], e["success_high"] - e["success"]) for e in evaluations
        ],
        "return": [(e["mean_return"], 1.96 * e["return_se"], 1.96 * e["return_se"]) for e in evaluations],
    }
    for axis, metric in ((middle, "success"), (right, "return")):
        seen = [(r["env_steps"], r[f"episode/{metric}"]) for r in rows if r.get(f"episode/{metric}") is not None]
        _draw_training(axis, seen)
        at = [e["env_steps"] for e in evaluations]
        if at:
            mean, low, high = (
                [max(0.0, x) if i else x for x in xs] for i, xs in enumerate(zip(*intervals[metric], strict=True))
            )
            axis.errorbar(
                at,
                mean,
                yerr=(low, high),
                fmt="s",
                color="tab:red",
                capsize=4,
                label="held-out episodes, 95 % interval",
            )
    if grey is not None:
        middle.axhline(grey, color="0.4", linestyle="--", label=f"held-out episodes, grey pictures {grey:.2f}")
    for axis, metric in ((left, "success"), (middle, "success"), (right, "return")):
        for known, word, color, style in (
            (oracle, "oracle", "tab:green", "--"), (blind, "blind", "tab:pink", "-."),
            (floor, "random", "tab:orange", ":"),
        ):  # fmt: skip
            if known is not None:
                value = known[metric]
                error = f" ± {known['se']:.2f} (standard error)" if metric == "return" else ""
                axis.axhline(value, color=color, linestyle=style, linewidth=1.5, label=f"{word} {value:.2f}{error}")
        axis.grid(alpha=0.2)
    _draw_replies(last, rows, evaluations)
    _draw_critic(panels["critic"], rows)
    for axis in (middle, right, last):
        axis.legend(loc="best", fontsize=8)
    figure.suptitle(title)
    figure.tight_layout()
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, format="png")
    write_whole(path, picture.getvalue())


def _draw_replies(axis: Any, rows: Sequence[Mapping[str, Any]], evaluations: Sequence[Mapping[str, Any]]) -> None:
    """Shares of replies from which no action was read, and of those that the token limit cut."""
    axis.set(title="share of replies", ylim=(-0.03, 1.05))
    axis.grid(alpha=0.2)
    for name, word, color in (("invalid_rate", "unreadable", "tab:purple"), ("cut_rate", "cut", "tab:brown")):
        seen = [(r["env_steps"], r[f"rollout/{name}"]) for r in rows if r.get(f"rollout/{name}") is not None]
        axis.plot(
            [at for at, _ in seen], [share for _, share in seen], color=color, alpha=0.6, linewidth=1,
            label=f"{word}, training",
        )  # fmt: skip
        at, shares = [e["env_steps"] for e in evaluations], [e[name] for e in evaluations]
        axis.plot(at, shares, "s", color=color, label=f"{word}, held-out")


def _draw_critic(axis: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Explained variance of the value head: 1 is perfect, 0 a constant."""
    axis.set(title="explained variance of the critic", xlabel="environment steps", ylim=(-0.5, 1.05))
    axis.grid(alpha=0.2)
    axis.axhline(0.0, color="0.5", linewidth=0.8)
    explained = "value/explained_variance"
    seen = [(r["env_steps"], max(-0.5, r[explained])) for r in rows if r.get(explained) is not None]
    if seen:
        axis.plot(*zip(*seen, strict=True), color="tab:blue", linewidth=1)
    else:
        axis.text(0.5, 0.5, "none", ha="center", transform=axis.transAxes)


def _draw_training(axis: Any, seen: Sequence[tuple[float, float]]) -> None:
    """A metric of the training episodes, and its running mean."""
    if not seen:
        return
    steps, values = [step for step, _ in seen], [value for _, value in seen]
    windows = [values[max(0, i - SMOOTH + 1) : i + 1] for i in range(len(values))]
    axis.plot(steps, values, color="tab:blue", alpha=0.3, linewidth=1)
    axis.plot(
        steps, [sum(window) / len(window) for window in windows], color="tab:blue",
        label=f"training episodes (mean of {SMOOTH} updates)",
    )  # fmt: skip
