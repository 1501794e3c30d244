"""The learning curve of a run as a PNG.

Warm start and reinforcement learning apart, floor and oracle as lines, held-out evaluations with intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SMOOTH = 5  # updates in the running mean


def draw_curve(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str,
    warm: Sequence[tuple[int, float]],
    evaluations: Sequence[Mapping[str, Any]],
    floor: float | None,
    oracle: float | None,
) -> None:
    """Write the picture.

    Args:
        path: PNG to write.
        rows: the log's rows.
        title: over the picture.
        warm: (gradient step, validation success) of the warm start.
        evaluations: `{"env_steps", "success", "success_low", "success_high"}` on held-out episodes.
        floor: success of the random policy; oracle: of the oracle; None where unknown.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5))
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 3))
    left.set(title="supervised warm start", xlabel="gradient steps", ylabel="success", ylim=(-0.03, 1.05))
    if warm:
        left.plot([step for step, _ in warm], [value for _, value in warm], "o-", color="tab:gray", markersize=3)
    else:
        left.text(0.5, 0.5, "none", ha="center", transform=left.transAxes)
    right.set(title="reinforcement learning (VL-DAC)", xlabel="environment steps")
    seen = [(row["env_steps"], row["episode/success"]) for row in rows if row.get("episode/success") is not None]
    if seen:
        values = [value for _, value in seen]
        smooth = [
            sum(values[max(0, i - SMOOTH + 1) : i + 1]) / len(values[max(0, i - SMOOTH + 1) : i + 1])
            for i in range(len(values))
        ]
        steps = [step for step, _ in seen]
        right.plot(steps, values, color="tab:blue", alpha=0.3, linewidth=1)
        right.plot(steps, smooth, color="tab:blue", label=f"training episodes (mean of {SMOOTH} updates)")
    if evaluations:
        at = [e["env_steps"] for e in evaluations]
        mean = [e["success"] for e in evaluations]
        low = [max(0.0, e["success"] - e["success_low"]) for e in evaluations]
        high = [max(0.0, e["success_high"] - e["success"]) for e in evaluations]
        right.errorbar(
            at, mean, yerr=(low, high), fmt="s", color="tab:red", capsize=4, label="held-out episodes, 95 % interval"
        )
    for axis in (left, right):
        if oracle is not None:
            axis.axhline(oracle, color="tab:green", linestyle="--", linewidth=1, label=f"oracle {oracle:.2f}")
        if floor is not None:
            axis.axhline(floor, color="tab:orange", linestyle=":", linewidth=1.5, label=f"random {floor:.2f}")
        axis.grid(alpha=0.2)
    right.legend(loc="lower right", fontsize=8)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
