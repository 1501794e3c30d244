"""The tables and plots that are made from docs/studies/ and registry.yaml. `docs/generate.py` puts them into pages."""

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import NormalDist, mean
from typing import Any, NamedTuple

from numpy import array, log2, polyfit, sqrt

from baselines.credit import measures
from baselines.studies import report, sets
from baselines.studies.arms import STUDIES, Study
from baselines.studies.report import ArmOutcome, write_spread
from vlgym.intervals import holm, student_p
from vlgym.registry.registry_file import read_registry
from vlgym.reports.text import NONE, write_p
from vlgym.sight.blind_gap import find_blind_share

KEPT = Path(__file__).resolve().parent / "studies"
SOURCE = "https://github.com/vlgym/vlgym/blob/main/"
TABLE = re.compile(r"(<!-- table: (\w+)((?: [\w-]+)*) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)
CREDIT = "credit-"
LEARNT, GOOD, BASELINES = "GAE, learnt V", (0.3, 0.6), ("GRPO", "RLOO, LOOP", "turn baseline", "GiGPO")
"""The estimator of the credit bench's second statement, the explained variance of its critics, and what it is compared
with: estimators whose baseline is made of the group."""
ALONE = {
    "outside": "MiniGrid's and Crafter's programs are played themselves",
    "screens": "tasks of this project",
    "sight": "tasks of this project",
}
"""Family -> why no published program is compared with it."""
DEMO_ENVS = 64
"""Environments of `make demo`."""


class Judged(NamedTuple):
    """An arm of a study, and which of its tests stand after Holm's correction over all trained arms."""

    name: str
    study: Study
    outcome: ArmOutcome
    above_blind: bool
    gains: bool


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    head, *lines = (f"| {' | '.join(map(str, row))} |" for row in (headers, *rows))
    return "\n".join([head, "|---" * len(headers) + "|", *lines])


def read_runs(name: str) -> list[dict[str, Any]]:
    """Return the raw runs of a study; none where it has not ended."""
    found = next(KEPT.glob(f"{name}.json*"), None)
    text = found.read_text(encoding="utf-8") if found else "[]"
    return [json.loads(line) for line in text.splitlines()] if found and found.suffix == ".jsonl" else json.loads(text)


def judge_all() -> list[Judged]:
    """Return every trained arm once: without controls, runs that an earlier study has, arms that are told the picture
    in words, and the studies of credit, whose episodes have other lengths."""
    seen: list[Any] = []
    found = []
    for name in sorted(path.stem for path in KEPT.glob("*.json") if path.stem in STUDIES):
        study, runs = STUDIES[name], read_runs(name)
        for arm in [] if name.startswith(CREDIT) else study.arms:
            curves = [run["curve"] for run in runs if run["arm"] == arm.label]
            outcome = report.judge_arm(study, arm, runs)
            if outcome.trained and outcome.blind is not None and curves[0] not in seen:
                found.append((name, study, outcome))
            seen += curves
    stands = [holm([getattr(row[2], test) for row in found], 0.05) for test in ("p_blind", "p_gain")]
    return [Judged(*row, *both) for row, *both in zip(found, *stands, strict=True)]


def choose_first() -> list[Judged]:
    """Return the first arm of each environment and form, the largest gain first."""
    first = {row.study.label: row for row in reversed(judge_all())}
    return sorted(first.values(), key=lambda each: -mean(each.outcome.gain))


def write_outcomes(*, every: bool = False) -> str:
    """Write a row per environment with its first trained arm, or per arm: success after training, and what stands."""
    rows = []
    for name, study, row, *stands in judge_all() if every else choose_first():
        tests = zip((row.p_blind, row.p_gain), stands, strict=True)
        link = f"[{study.label}]({'' if every else 'studies/'}{name}.json)"
        rows.append(
            [
                f"{link} {row.label}" if every else link, len(row.after),
                *(write_spread(values).replace(" ± ", "±") for values in (row.after, row.gain)),
                f"{mean(row.grey):.2f}, {mean(row.unreadable):.2f}",
                f"{row.blind + 1e-9:.2f}, {report.read_blind(study)['share']:.2f}",
                *(("no", "yes")[yes] + (f", {write_p(p)}" if every else "") for p, yes in tests),
            ]
        )  # fmt: skip
    headers = ("environment", "seeds", "after", "gain", "grey, unreadable", "blind, share", "above blind", "gains")
    return table(headers, rows)


def draw_outcomes(path: Path) -> None:
    """Draw success of each environment's first learner before and after, with grey pictures, and its bounds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from baselines.runs.logs import write_figure

    rows, entries = choose_first()[::-1], read_registry()
    places, own = range(len(rows)), [row.outcome for row in rows]
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    before, after = ([mean(getattr(each, when)) for each in own] for when in ("before", "after"))
    axis.hlines(places, before, after, color="tab:blue", linewidth=1)
    for values, marker, colour, label in (
        (before, "o", "lightblue", "before"), (after, "o", "tab:blue", "after"),
        ([mean(each.grey) for each in own], "x", "0.4", "after, grey pictures"),
        ([each.blind for each in own], "|", "tab:red", "best blind player"),
        ([entries[row.study.env]["ceiling"]["success"] for row in rows], "|", "tab:green", "oracle"),
    ):  # fmt: skip
        size = 250 if marker == "|" else 40
        axis.scatter(values, places, size, colour, marker, label=label, clip_on=False, linewidth=1.8, zorder=3)
    axis.set_yticks(places, [row.study.label for row in rows])
    axis.set(xlim=(-0.02, 1.02), xlabel="held-out success, mean of the seeds")
    axis.grid(alpha=0.2)
    figure.legend(loc="outside upper center", ncols=5, fontsize=8, frameon=False, markerscale=0.7)
    write_figure(figure, path)


def write_credit() -> str:
    """Write the share of right moves of each learner for each number of targets, and the test of the lead's slope."""
    names = {int(name.removeprefix(CREDIT)): name for name in STUDIES if name.startswith(CREDIT)}
    labels, gaps, rows = [arm.label for arm in STUDIES[names[1]].arms], dict[int, list[float]](), []
    for targets, name in names.items():
        right = {(run["arm"], run["seed"]): 1 - run["evaluations"][-1]["negative_rate"] for run in read_runs(name)}
        for seed in sorted({seed for _, seed in right}):
            gaps.setdefault(seed, []).append(right[labels[0], seed] - right[labels[1], seed])
        cells = [write_spread([share for (arm, _), share in right.items() if arm == each], 3) for each in labels]
        rows.append([f"[{targets}]({name}.json)", *cells])
    slopes = [float(polyfit(log2([*names]), gap, 1)[0]) for gap in gaps.values()]
    lead = f"{labels[0]}'s lead over {labels[1]} per doubling of the targets: {write_spread(slopes, 3)}"
    return f"{table(['targets', *labels], rows)}\n\n{lead}, p {write_p(student_p(slopes))}."


def judge_horizon(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Test statement (a): the correlation falls by doubling of NumberLine's targets, for each policy and estimator.

    A slope is that of least squares, its error that of the cells' bootstraps; one-sided, Holm over all. Return a line
    per kind of estimator: tests in which it falls, and the mean slope.
    """
    lines, slopes = measures.pick_lines(rows), []
    for policy in dict.fromkeys(row["policy"] for row in lines):
        own = [row for row in lines if row["policy"] == policy]
        place = log2([row["targets"] for row in own])
        weights = (place - place.mean()) / max(((place - place.mean()) ** 2).sum(), 1e-9)
        for name in own[0]["measures"]:
            found = [row["measures"][name] for row in own]
            middle, error = (array([each[p] for each in found], float) for p in ("correlation", "correlation_sd"))
            slopes.append((name in measures.WHOLE, weights @ middle, sqrt(weights**2 @ error**2)))
    stands = holm([NormalDist().cdf(slope / error) if error > 0 else 1.0 for _, slope, error in slopes], 0.05)
    result = []
    for kind, whole in (("one number for all turns", True), ("a number for each turn", False)):
        own = [(slope, yes) for (one, slope, _), yes in zip(slopes, stands, strict=True) if one == whole]
        falls = f"{sum(yes for _, yes in own)} of {len(own)}"
        result.append([f"(a) {kind}: the correlation falls", falls, f"{measures.mean(slope for slope, _ in own):+.3f}"])
    return result


def judge_critic(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Test statement (b) by cosines of batches in pairs (Student's t, one-sided, Holm over all), where the critic's
    explained variance is in `GOOD`. Return a line per group baseline: tests that the critic wins, mean difference."""
    pairs = [
        (name, [a - b for a, b in zip(row["curve"][LEARNT][size], row["curve"][name][size], strict=True)])
        for row in rows for size, explained in row.get("explained", {}).items()
        if GOOD[0] <= measures.mean(explained) <= GOOD[1] for name in BASELINES
    ]  # fmt: skip
    stands, result = holm([student_p(gaps) for _, gaps in pairs], 0.05), []
    for name in BASELINES:
        own = [(gaps, yes) for (other, gaps), yes in zip(pairs, stands, strict=True) if other == name]
        gap = measures.mean(each for gaps, _ in own for each in gaps)
        wins = f"{sum(yes for _, yes in own)} of {len(own)}"
        result.append([f"(b) cosine of {LEARNT} above {name}", wins, f"{gap:+.3f}" if own else "-"])
    return result


def write_advantages(what: str) -> str:
    """Write the credit bench's means by estimator (`means`), the tests of its statements (`tests`), or all `cells`."""
    rows = read_runs("advantages")
    if what == "tests":
        return table(["statement", "tests that say so", "mean"], [*judge_horizon(rows), *judge_critic(rows)])
    if what == "cells":
        return table(measures.HEADERS, measures.list_lines(rows))
    lines, others = measures.pick_lines(rows), [row for row in rows if not row["targets"]]
    sizes = sorted({int(size) for row in rows for size in row.get("explained", {})})

    def average(own: Sequence[dict[str, Any]], name: str, figure: str) -> str:
        return measures.format_measure(measures.mean(row["measures"].get(name, {}).get(figure) for row in own))

    cells = []
    for name in max((row["measures"] for row in lines), key=len):
        curves = [row.get("curve", {}).get(name, {}) for row in rows]
        cosines = [
            measures.format_measure(measures.mean(v for c in curves for v in c.get(str(size), ()))) for size in sizes
        ]
        cells.append(
            [name, *(average([row for row in lines if row["targets"] == n], name, "correlation") for n in (1, 2, 4, 8)),
             average(others, name, "correlation"), average(lines, name, "sign"), average(lines, name, "zero"), *cosines]
        )  # fmt: skip
    return table(["estimator", "1", "2", "4", "8", "others", "sign", "zero", *map(str, sizes)], cells)


def write_curriculum(name: str) -> str:
    """Write a row per sampler of a bench: held-out success on the highest level played, and the area under it."""
    ends: dict[str, tuple[dict[int, float], dict[int, float]]] = {}
    for run in read_runs(name):
        for values, what in zip(ends.setdefault(run["sampler"], ({}, {})), ("success", "area"), strict=True):
            values[run["seed"]] = run[what]
    rows = [
        [f"`{sampler}`", ", ".join(f"{both[0][seed]:.2f}" for seed in sorted(both[0]))]
        + [cell for values, base in zip(both, ends["fixed"], strict=True)
           for cell in (f"{mean(values.values()):.2f}", report._less(values, base, 1 - 0.05 / 10))]
        for sampler, both in ends.items()
    ]  # fmt: skip
    return table(["sampler", "success of each seed", "mean", "less `fixed`", "area", "less `fixed`"], rows)


def write_demo() -> str:
    """Write a row per seed of the demo."""
    parts = ("before", "after", "greedy", "grey")
    rows = [
        [run["seed"], *(f"{run[part]['success']:.3f}" for part in parts), f"{run['grey']['invalid_rate']:.2f}",
         f"{run['lowest']:.2f}", run["seconds"]] for run in read_runs("demo")
    ]  # fmt: skip
    return table(["seed", *parts, "unreadable then", "lowest explained variance", "seconds"], rows)


def draw_demo(path: Path) -> None:
    """Draw training success and explained variance of the demo's seeds, as wide as the README shows them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from baselines.runs.logs import drop_short, write_figure

    runs, entry, names = read_runs("demo"), read_registry()["vlgym/NumberLine-v1"], ("steps", "episode/count")
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    for axis, column, title in zip(panels, (2, 3), ("success", "critic's explained variance"), strict=True):
        drawn: dict[int, list[float]] = {}
        for run in runs:
            rows = [dict(zip(names, row, strict=False)) | {"value": row[column]} for row in run["curve"]]
            settled = drop_short(rows, DEMO_ENVS)
            axis.plot(
                [row["steps"] for row in settled], [row["value"] for row in settled], color="tab:blue", alpha=0.25
            )
            for row in settled:
                drawn.setdefault(row["steps"], []).append(row["value"])
        full = {step: mean(values) for step, values in sorted(drawn.items()) if len(values) == len(runs)}
        label = f"training, mean of {len(runs)} seeds, from {DEMO_ENVS} ended episodes on"
        axis.plot(full.keys(), full.values(), color="tab:blue", linewidth=2.2, label=label)
        axis.set(xlabel="environment steps", ylim=(-0.25, 1.05) if column == 3 else (-0.03, 1.05))
        axis.set_title(title, fontsize=12)
        axis.grid(alpha=0.2)
        axis.locator_params(axis="x", nbins=5)
    for value, label, colour, style in (
        (entry["ceiling"]["success"], "oracle", "tab:green", "--"),
        (entry["blind"]["success"], "best blind player", "tab:red", "-."),
        (mean(run["grey"]["success"] for run in runs), "after training, grey pictures", "0.3", ":"),
    ):  # fmt: skip
        panels[0].axhline(value, color=colour, linestyle=style, linewidth=1.8, label=label)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=10, frameon=False
    )
    write_figure(figure, path)


def write_self_play() -> str:
    """Write a row per game and seed of self-play, before and after training."""
    rows = []
    for run in read_runs("self-play"):
        both = run["before"], run["after"]
        if "exploitability" in both[0]:
            cells = [f"{each['exploitability']:.3f} ± {each['half_width']:.3f}" for each in both]
            rows.append([run["game"], run["seed"], "exploitability", *cells])
        for other in ("random", "oracle") if "random" in both[0] else ():
            counts = [", ".join(str(each[other][name]) for name in ("wins", "draws", "losses")) for each in both]
            rows.append([run["game"], run["seed"], f"won, drawn, lost against {other}", *counts])
    return table(["game", "seed", "measure", "before", "after"], rows)


def write_speed() -> str:
    """Write a row per figure of a benchmark."""
    rows = [
        [row["what"], row["figure"], f"`{row['script']}`, {row['date']}, {row['host']}"] for row in read_runs("speed")
    ]
    return table(["what", "figure", "script in `tests/benchmarks/`, date, host"], rows)


def write_screens(figure: str) -> str:
    """Write a table of ScreensLook's players (`look`), of ScreensClick's `habit`, of what is `learnt` of it, or of the
    `speed` of all Screens."""
    if figure == "learnt":
        cells = [
            [f"[{row.study.form}](studies/{row.name}.json)", f"{row.outcome.blind + 1e-9:.2f}",
             *(write_spread(values).replace(" ± ", "±") for values in (row.outcome.before, row.outcome.after)),
             f"{mean(row.outcome.grey):.2f}"]
            for row in judge_all() if row.study.form
        ]  # fmt: skip
        headers = ("form", "habit", "before", "after", "grey")
        return table(headers, cells)
    rows = [row for row in read_runs("screens") if row["figure"] == figure and "form" not in row]
    if figure == "speed":
        cells = [
            [f"`{row['id']}`", f"{row['drawn']:,.0f}", f"{row['plain']:,.0f}", f"{row['reset']:.1f} ms"] for row in rows
        ]
        return table(["id", "steps/s with pictures", "without", "reset"], cells)
    players: dict[str, list[str]] = {}
    for row in rows:
        parts = [f"{row[part] + 1e-9:.2f}" for part in ("success", "return") if part in row]
        players.setdefault(row.get("player", "habit"), [NONE] * 5)[row["level"]] = ", ".join(parts)
    levels = [f"level {number}" for number in range(5)]
    return table(["player", *levels], [[player, *cells] for player, cells in players.items()])


def write_real(figure: str) -> str:
    """Write how SmolLM2 plays in words: success and unreadable replies of each environment (`judged`), a first reply
    to each of three (`replies`), the `training`, or both models' `answers` to other questions."""
    *played, training = read_runs("real-model")  # the last row is the training
    if figure == "answers":
        cells = [[question, *map(show_text, answers)] for question, *answers in training["answers"]]
        return table(["question", "published", "trained"], cells)
    if figure == "kl":
        wins = (
            f"{each['success']:.2f} [{each['success_low']:.2f}, {each['success_high']:.2f}] of {each['episodes']}"
            for each in training["evaluations"]
        )
        kl = f"KL to the published model: {training['kl']:.1f} nats a reply. It took {training['minutes']:.0f} minutes."
        return f"Test episodes: {' before, '.join(wins)} after. {kl}"
    if figure == "training":
        updates = training["updates"]
        parts = [updates[at : at + 5] for at in range(0, len(updates), 5)]
        columns = ("episode/success", "rollout/invalid_rate", "loss/kl")
        cells = [
            [f"{part[-1]['env_steps']:,}", *(f"{mean(each[name] for each in part):.2f}" for name in columns)]
            for part in parts
        ]
        return table(["turns", "success", "unreadable", "KL"], cells)

    # The rows of an environment, by player.
    known, rows = read_registry(), dict[str, dict[str, Any]]()
    for row in played:
        rows.setdefault(row["env"], {})[row["player"]] = row
    wins = {
        player: f"{row['success']['rate']:.2f} [{row['success']['low']:.2f}, {row['success']['high']:.2f}]"
        for player, row in rows["vlgym/NumberLine-v1"].items()
    }
    if figure == "line":
        return (
            f"**A pretrained language model.** SmolLM2-135M wins NumberLine-v1 in words: {wins['as published']} as "
            f"published, {wins['trained']} after VL-DAC ([all figures](docs/real-model.md))."
        )
    if figure == "players":
        cells = [
            [player, wins[player], f"{row['invalid']['rate']:.2f}", row["replies"]]
            for player, row in rows["vlgym/NumberLine-v1"].items()
        ]
        return table(["player", "success", "unreadable", "replies"], cells)
    players = ("as published", "two examples")
    if figure == "replies":
        first = [
            [name.removeprefix("vlgym/"), *(show_text(own[each]["examples"][0]) for each in players)]
            for name, own in rows.items()
            if own.keys() >= {*players}
        ]
        return table(["environment", *players], first[:3])
    cells = [
        [
            name.removeprefix("vlgym/"), f"{own['random']['success']['rate']:.2f}",
            f"{known[name]['blind']['success'] + 1e-9:.2f}",
            *(show_play(own.get(each)) for each in players),
            f"{known[name]['ceiling']['success']:.2f}",
        ]
        for name, own in rows.items()
    ]  # fmt: skip
    return table(["environment", "random", "blind", *(f"{each}, unreadable" for each in players), "oracle"], cells)


def show_play(row: dict[str, Any] | None) -> str:
    """Return success and the share of unreadable replies of a player."""
    return f"{row['success']['rate']:.2f}, {row['invalid']['rate']:.2f}" if row else NONE


def show_text(text: str, most: int = 60) -> str:
    """Return the beginning of a text as a table's cell."""
    line = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return f"`{line[:most]}`" + ("..." if len(line) > most else "")


def write_originals() -> str:
    """Write a row per comparison with a published program, and per family without one."""
    rows = [
        [row["family"], re.sub(r"@(.{7}).*", r" `\1`", row["original"]), row["what"], f"{row['states']:,}",
         row["differ"]]
        for row in json.loads((KEPT / "originals.json").read_text(encoding="utf-8")).values()
    ]  # fmt: skip
    missing = {entry["spec"].family for entry in read_registry().values()} - {row[0] for row in rows}
    rows += [[family, NONE, f"not compared: {ALONE.get(family, 'not run')}", NONE, NONE] for family in missing]
    headers = ("family", "original", "what is played or read", "states", "differ")
    return table(headers, sorted(rows, key=lambda row: row[0]))


def write_wins(*ids: str) -> str:
    """Write success of random play, the best blind player and the oracle, and the blind share, for these ids."""
    rows = []
    for env_id, entry in ((env_id, read_registry()[f"vlgym/{env_id}"]) for env_id in ids):
        wins = [f"{entry[name]['success'] + 1e-9:.2f}" for name in ("floor", "blind", "ceiling")]
        rows.append([f"`{env_id}`", *wins[:2], f"{find_blind_share(entry):.2f}", wins[2]])
    return table(["id", "floor", "blind", "blind share", "ceiling"], rows)


def count_families(rows: str) -> str:
    """Return the README's rows with their last two cells made again: blind floors and ids of the picture's family."""
    current = [entry for entry in read_registry().values() if not entry["spec"].replaced_by]
    families = {entry["spec"].id.removeprefix("vlgym/"): entry["spec"].family for entry in current}

    def count(match: re.Match[str]) -> str:
        own = [entry for entry in current if entry["spec"].family == families[match[2]]]
        ends = sorted(f"{entry['blind']['success'] + 1e-9:.2f}" for entry in own)
        return f"{match[1]} {' to '.join(dict.fromkeys((ends[0], ends[-1])))} | {len(own)} |"

    return re.sub(r"(.*images/([\w-]+)\.png.*\|)[^|\n]*\|[^|\n]*\|", count, rows).rstrip()


PAGES: dict[str, tuple[str, str, str, Any]] = {
    "outcomes": (
        "All trained arms", "baselines/studies/study.py",
        "Every trained arm, with the tests of [results](../results.md) and Holm's correction over all of them.",
        partial(write_outcomes, every=True),
    ),
    "credit": (
        "Credit for steps against episodes", "baselines/studies/study.py",
        "NumberLine-v1 with 1, 2, 4 and 8 targets asks for one skill in longer and longer episodes. The share of "
        "held-out moves that were not punished, and the test that was set before all runs: the lead grows with the "
        "logarithm of the number of targets (one-sided). The question is open: seeds differ too much.", write_credit,
    ),
    "advantages": (
        "Advantage estimators against the true advantage", "baselines/credit/cells.py",
        "Every cell of [the credit bench](../credit.md).", partial(write_advantages, "cells"),
    ),
    "self-play": (
        "Self-play", "tests/benchmarks/self_play.py", "The models of the curve studies of games, against the game's "
        "own players. These runs pay a seat's gains after an unreadable reply by an older rule.", write_self_play,
    ),
    "originals": (
        "Originals", "tests/originals/compare.py",
        "`make originals ORIGINALS=FOLDER` plays published programs and this suite side by side, on the same states. "
        "Nothing of them is in this repository. WebUI: MageBench's program plays the target first, whose timers run "
        "on while it plays the generated page; both sides are compared with timers that stand still meanwhile. "
        "ALFWorld: the fraction of goal conditions is ours, as AI2-THOR alone measures it there.", write_originals,
    ),
    "demo": (
        "The demo", "tests/benchmarks/demo_seeds.py", "`make demo` with seeds that did not choose its options: "
        "held-out success (no wrong move).", write_demo,
    ),
}  # fmt: skip
PAGES |= {
    f"curricula-{bench}": (
        f"Curricula on {bench}", "tests/benchmarks/curricula.py",
        "Samplers of levels from one warm start per seed: held-out success on the highest level that is played, and "
        "the area under it over the steps. Differences are paired by seed; their intervals hold together for the ten "
        "comparisons of five samplers. Times are not compared: the records name no machine.",
        partial(write_curriculum, f"curricula-{bench}"),
    )
    for bench in ("NumberLine", "OneRoom", "Sokoban")
}  # fmt: skip


def write_study_pages() -> dict[str, str]:
    """Return the pages of the studies by name: table, plot, raw file, command, date and host."""
    made = json.loads((KEPT / "made.json").read_text(encoding="utf-8"))
    pages = {name: report.write_study_page(name, study, runs, complete=True) for name, study in STUDIES.items()
             if (runs := read_runs(name))}  # fmt: skip
    pages[sets.SETS] = sets.write_sets_page(read_runs(sets.SETS), sets.STUDY.env_steps, sets.STUDY.seeds, complete=True)
    for name, (title, script, text, write) in PAGES.items():
        if name != "demo" or read_runs(name):
            pages[name] = f"# {title}\n\n{text} Script: [{script}]({SOURCE}{script}).\n\n{write()}\n"
    for name in pages:
        raw = [f"[{path.name}]({SOURCE}docs/studies/{path.name})" for path in sorted(KEPT.glob(f"{name}.json*"))]
        note = {"date": "that of the parts", "host": "not recorded"} | made.get(name, {})
        pages[name] += f"\nRaw runs: {', '.join(raw) or NONE}. Date: {note['date']}. Host: {note['host']}.\n"
    return pages


def fill_tables(text: str) -> str:
    """Return the page with its tables made again."""
    writers = {
        "advantages": write_advantages, "outcomes": write_outcomes, "real": write_real, "screens": write_screens,
        "speed": write_speed, "wins": write_wins,
    }  # fmt: skip

    def fill(match: re.Match[str]) -> str:
        head, name, words, rows, end = match.groups()
        return f"{head}{count_families(rows) if name == 'families' else writers[name](*words.split())}\n{end}"

    return TABLE.sub(fill, text)
