"""Tables and plots of studies: mean, standard deviation and 95 % interval over seeds.

Intervals are Student's t over seeds, so they speak about runs, not about episodes.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from vlgym.intervals import student_p, student_t
from vlgym.play.controls import GREY
from vlgym.registry import get_registry
from vlgym.reports.text import write_p
from vlgym.sight.blind_gap import find_blind_share

from ..runs.logs import write_figure
from .arms import Arm, Study
from .processes import RESULTS_FOLDER


def estimate_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """(mean, standard deviation, half-width of the 95 % interval); NaN for what is unknown."""
    mean, n = fmean(values) if values else math.nan, len(values)
    if n < 2:
        return mean, math.nan, math.nan
    deviation = stdev(values)
    return mean, deviation, student_t(n - 1) * deviation / math.sqrt(n)


def binned(run: dict[str, Any], study: Study) -> list[tuple[float, float]]:
    """(environment steps, success of the episodes that ended in that bin) of one run's training.
    What a last update plays beyond the budget belongs to the last bin."""
    sums: dict[int, list[float]] = {}
    for steps, success, _, _, count in run["curve"]:
        if success is not None and count:
            entry = sums.setdefault((min(steps, study.env_steps) - 1) // study.bin, [0.0, 0.0])
            entry[0] += success * count
            entry[1] += count
    return [((at + 0.5) * study.bin, total / count) for at, (total, count) in sorted(sums.items())]


def read_blind(study: Study) -> dict[str, float] | None:
    """Return `success` of the best blind player of a study's environment, and its `share` of the
    way from random play to the oracle; `None` where it was not measured."""
    if study.form:
        rows = json.loads((RESULTS_FOLDER / "screens.json").read_text(encoding="utf-8"))
        row = next(each for each in rows if each.get("form") == study.form)
        share = (row["success"] - row["random"]) / (1 - row["random"])
        return {"success": row["success"], "share": share}
    entry = get_registry().known.get(study.env) or {}
    blind, share = entry.get("blind"), find_blind_share(entry)
    return blind and {"success": blind["success"], "share": math.nan if share is None else share}


def draw_study(path: Path, study: Study, results: Sequence[dict[str, Any]]) -> None:
    """Write the plot: a panel per arm with every seed and their mean."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 4.8), layout="constrained")
    own = {arm.label: [run for run in results if run["arm"] == arm.label] for arm in study.arms}
    curves = {label: [x for run in own[label] if (x := binned(run, study))] for label in own}
    base, blind = study.arms[0].label, read_blind(study)
    if "--env-kwargs" in study.options and not study.form:  # which make another environment of it
        blind = None
    columns = 2 if len(curves) == 4 else min(3, len(curves))
    rows = math.ceil(len(curves) / columns)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for (label, seeds), axis in zip(curves.items(), panels, strict=False):  # loses no panel
        axis.set(title=label, xlim=(0, study.env_steps), ylim=(-0.03, 1.03))
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.2)

        # The seeds, their mean, and the first arm's.
        for curve in seeds:
            axis.plot(*zip(*curve, strict=True), color="tab:blue", linewidth=0.8, alpha=0.45)
        if label != base and curves[base]:
            line = zip(*_mean_curve(curves[base]), strict=True)
            axis.plot(*line, color="0.45", linewidth=1.2, linestyle="--")
        if seeds:
            axis.plot(*zip(*_mean_curve(seeds), strict=True), color="tab:blue", linewidth=2.2)

        # Held-out play, with pictures and with grey ones.
        evaluations = [each for run in own[label] for each in run["evaluations"]]
        for name, colour, marker in ((None, "tab:green", "o"), (GREY, "0.4", "x")):
            ends = [
                (min(each["env_steps"], study.env_steps), each[name]["success"] if name else each["success"])
                for each in evaluations if name is None or name in each
            ]  # fmt: skip
            if ends:
                places = zip(*ends, strict=True)
                axis.scatter(*places, color=colour, marker=marker, s=18, clip_on=False)
        if blind:
            axis.axhline(blind["success"], color="tab:red", linestyle=":", linewidth=1.2)
        axis.xaxis.set_major_locator(MaxNLocator(4))
    for axis in panels:
        axis.set_visible(False)

    note = f"thick: mean; thin: the seeds; dashed: mean of {base}; dotted: best blind player\n"
    note += "held out, before and after: circles; with grey pictures: crosses"
    figure.suptitle(f"{study.title}\n{note}", fontsize=10)
    figure.supxlabel("environment steps", fontsize=9)
    figure.supylabel(f"success of training episodes, per {study.bin:,} steps", fontsize=9)
    write_figure(figure, path)


def _mean_curve(curves: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The mean at each place, over the seeds that have a value there."""
    values: dict[float, list[float]] = {}
    for x, y in sorted(point for curve in curves for point in curve):
        values.setdefault(x, []).append(y)
    return [(x, fmean(ys)) for x, ys in values.items()]


@dataclass(frozen=True)
class ArmOutcome:
    """Held-out play of one arm before and after training, a value per seed."""

    label: str  # of the arm
    trained: bool  # False for a control, which gets grey pictures or no observation
    before: list[float]  # success
    after: list[float]
    gain: list[float]  # seed by seed
    grey: list[float]  # success after training, with grey pictures
    unreadable: list[float]  # share of the replies then
    blind: float | None  # success of the best player without the picture; None for arms in words
    p_blind: float  # one-sided, of success above `blind`; NaN where not tested
    p_gain: float  # one-sided, of a gain above 0; NaN where not tested


def judge_arm(study: Study, arm: Arm, results: Sequence[Mapping[str, Any]]) -> ArmOutcome:
    """Return the outcome of an arm; seeds deviate by at least as much as their episodes."""
    runs = [run["evaluations"] for run in results if run["arm"] == arm.label]
    pairs = [(run[0]["success"], run[-1]["success"]) for run in runs if run[0].get("update") == 0]
    after = [run[-1]["success"] for run in runs]
    grey = [run[-1][GREY] for run in runs if GREY in run[-1]]
    recorded = read_blind(study)
    blind = recorded["success"] if recorded and not arm.words & {"text", "both"} else None
    episodes = runs[0][-1].get("episodes", 1) if runs else 1

    def deviation(values: Sequence[float]) -> float:
        share = (estimate_mean(values)[0] * episodes + 1) / (episodes + 2)
        return math.sqrt(share * (1 - share) / episodes)

    # Both tests are one-sided.
    before = [first for first, _ in pairs]
    gain = [last - first for first, last in pairs]
    return ArmOutcome(
        arm.label, not arm.words & {GREY, "none"}, before, after, gain,
        [each["success"] for each in grey], [each["invalid_rate"] for each in grey], blind,
        math.nan if blind is None else student_p([each - blind for each in after], deviation(after)),
        student_p(gain, math.hypot(deviation(before), deviation(after))) if gain else math.nan,
    )  # fmt: skip


def write_study_page(name: str, study: Study, results: Sequence[dict[str, Any]], *, complete: bool) -> str:
    """Return the text of a study's page."""
    seeds = _span(sum(run["arm"] == arm.label for run in results) for arm in study.arms)
    return "\n".join([
        f"# {study.title}", "", study.question, "",
        f"`python -m baselines.studies.study {name}`: `{study.env}`, the tiny model, {seeds} seeds "
        f"per arm, {study.env_steps:,} environment steps each.",
        "Intervals are 95 %, Student's t over seeds; those against the first arm hold together. p "
        "values are one-sided and not corrected. Explained variance is the critic's, over the second "
        "half of a run's updates.", "",
        *([] if complete else ["**Incomplete: some runs have not ended.**", ""]),
        *_arms_table(study, results), "", f"![{study.title}]({name}.png)", "",
    ])  # fmt: skip


def _arms_table(study: Study, results: Sequence[dict[str, Any]]) -> list[str]:
    base = study.arms[0].label
    ends: dict[str, dict[int, float]] = {arm.label: {} for arm in study.arms}
    for run in results:
        ends[run["arm"]][run["seed"]] = run["evaluations"][-1]["success"]
    lines = [
        "| arm | before | after | gain | p of gain | best blind player | p above it | with grey pictures "
        f"| unreadable then | less {base} | worst seed | return | invalid | gradient steps | explained variance |",
        "|---" * 15 + "|",
    ]

    # All comparisons hold together with 95 %.
    level = 1 - 0.05 / max(1, len(study.arms) - 1)
    for arm in study.arms:
        runs = [run for run in results if run["arm"] == arm.label]
        if not runs:
            continue
        last, row = [run["evaluations"][-1] for run in runs], judge_arm(study, arm, results)
        cells = (
            arm.label, _mean(row.before), write_spread(row.after, 3), write_spread(row.gain, 3),
            write_p(row.p_gain), _mean([row.blind]), write_p(row.p_blind), _mean(row.grey),
            _mean(row.unreadable), _less(ends[arm.label], ends[base], level), f"{min(row.after):.3f}",
            _mean((each["mean_return"] for each in last), "+.2f"),
            _mean(each["invalid_rate"] for each in last),
            _span(run["gradient_steps"] for run in runs),
            _mean((run["explained_variance"] for run in runs), "+.2f"),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")

    # A word on the column before.
    starts = {(run["seed"], run["evaluations"][0]["success"]) for run in results if run["evaluations"]}
    if study.warm_options is not None:
        alike = len(starts) == len({seed for seed, _ in starts})
        other = "Arms begin from different warm starts of the same options, as their column before shows."
        lines += ["", "All arms of a seed begin as the same model." if alike else other]
    return lines


def write_spread(values: Sequence[float], digits: int = 2) -> str:
    """Return a mean with the half-width of its interval: `0.87 ± 0.18`; "-" of no values."""
    mean, _, half = estimate_mean(values)
    return "-" if not values else f"{mean:.{digits}f} ± {half:.{digits}f}"


def _mean(values: Iterable[float | None], style: str = ".3f") -> str:
    """Mean of the known values; "-" of none."""
    known = [value for value in values if value is not None]
    return f"{estimate_mean(known)[0]:{style}}" if known else "-"


def _span(counts: Iterable[int]) -> str:
    known = sorted(counts)
    return " to ".join(f"{count:,}" for count in sorted({known[0], known[-1]}))


def _less(ends: dict[int, float], base: dict[int, float], level: float = 0.95) -> str:
    """Mean difference over the seeds of both, given as {seed: success}, with its interval."""
    seeds = sorted(ends.keys() & base.keys())
    if len(seeds) < 2 or ends is base:
        return "-"
    mean, deviation, _ = estimate_mean([ends[seed] - base[seed] for seed in seeds])
    half = student_t(len(seeds) - 1, level) * deviation / math.sqrt(len(seeds))
    return f"{mean:+.3f} +-{half:.3f}"
