"""The tables and plots that are made from docs/studies/ and registry.yaml. `docs/generate.py` puts them into pages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from numpy import log2, polyfit

from baselines.studies import report, sets
from baselines.studies.arms import STUDIES, Study
from baselines.studies.report import Outcome, write_spread
from vlgym.intervals import holm, student_p
from vlgym.registry.registry_file import read_registry
from vlgym.reports.text import NONE, write_interval, write_p
from vlgym.sight.blind_gap import find_blind_share

KEPT = Path(__file__).resolve().parent / "studies"
SOURCE = "https://github.com/vlgym/vlgym/blob/main/"
TABLE = re.compile(r"(<!-- table: (\w+)((?: [\w-]+)*) -->\n).*?(<!-- end of table -->)", re.DOTALL)
CREDIT, CURRICULA, SELF_PLAY = "credit-", "curricula-", "self-play"


class Judged(NamedTuple):
    """An arm of a study, and which of its tests stand after Holm's correction over all trained arms."""

    name: str
    study: Study
    outcome: Outcome
    above_blind: bool
    gains: bool


def read_runs(name: str) -> list[dict[str, Any]]:
    """Return the raw runs of a study; none where it has not ended."""
    for path in (KEPT / f"{name}.json", KEPT / f"{name}.jsonl"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    return []


def judge_all() -> list[Judged]:
    """Return every trained arm once: controls and runs that an earlier study has are left out. The studies of credit,
    whose episodes have other lengths, are judged by `write_credit`."""
    seen: list[Any] = []
    found = []
    for name in sorted(path.stem for path in KEPT.glob("*.json") if path.stem in STUDIES):
        study, runs = STUDIES[name], read_runs(name)
        for arm in [] if name.startswith(CREDIT) else study.arms:
            curves = [run["curve"] for run in runs if run["arm"] == arm.label]
            outcome = report.judge(study, arm, runs)
            if outcome.trained and curves[0] not in seen:
                found.append((name, study, outcome))
            seen += curves
    stands = [
        _correct([getattr(outcome, test) for _, _, outcome in found]) for test in ("p_blind", "p_gain")
    ]  # fmt: skip
    return [Judged(*row, *both) for row, *both in zip(found, *stands, strict=True)]


def _correct(values: Sequence[float]) -> list[bool]:
    made = [value for value in values if value == value]
    stands = iter(holm(made, 0.05))
    return [value == value and next(stands) for value in values]


def write_outcomes(*, every: bool = False) -> str:
    """Write a row per environment with its first trained arm, or per arm: success after training, and what stands."""
    entries = read_registry()
    lines = [
        "| environment | seeds | after | gain | grey, unreadable | blind, share | above blind | gains |",
        "|---" * 8 + "|",
    ]
    judged = judge_all()
    if not every:  # the first arm of each environment, the largest gain first
        first = {row.study.env: row for row in reversed(judged)}
        judged = sorted(first.values(), key=lambda each: -mean(each.outcome.gain))
    for name, study, row, above, gains in judged:
        label = f" {row.label}" if every else ""
        share = find_blind_share(entries[study.env])
        blind = NONE if row.blind is None else f"{row.blind + 1e-9:.2f}, {share:.2f}"
        tests = [
            NONE if p != p else f"{'yes' if stands else 'no'}{f', {write_p(p)}' if every else ''}"
            for p, stands in ((row.p_blind, above), (row.p_gain, gains))
        ]
        cells = [
            f"[{study.env.removeprefix('vlgym/')}]({'' if every else 'studies/'}{name}.json){label}",
            str(len(row.after)), write_spread(row.after), write_spread(row.gain),
            f"{mean(row.grey):.2f}, {mean(row.unreadable):.2f}", blind, *tests,
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells).replace(' ± ', '±')} |")
    return "\n".join(lines)


def draw_outcomes(path: Path) -> None:
    """Draw success of each environment's first learner before and after, with grey pictures, and its bounds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from baselines.runs.curve import write_figure

    entries, rows = read_registry(), {row.study.env: row for row in reversed(judge_all())}
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    for place, (env, row) in enumerate(sorted(rows.items(), key=lambda each: mean(each[1].outcome.gain or [0]))):
        own, ceiling = row.outcome, entries[env]["ceiling"]["success"]
        first = place == 0
        axis.plot([mean(own.before), mean(own.after)], [place, place], color="tab:blue", linewidth=1)
        for value, style, colour, label in (
            (mean(own.before), "o", "white", "before"), (mean(own.after), "o", "tab:blue", "after"),
            (mean(own.grey), "x", "0.4", "after, grey pictures"), (own.blind, "|", "tab:red", "best blind player"),
            (ceiling, "|", "tab:green", "oracle"),
        ):  # fmt: skip
            edge = {"markeredgecolor": "tab:blue"} if style == "o" else {}
            size = 6 if style in "ox" else 16
            axis.plot(value, place, style, color=colour, markersize=size, markeredgewidth=1.8, clip_on=False,
                      label=label if first else None, linestyle="none", **edge)  # fmt: skip
    axis.set_yticks(range(len(rows)), [env.removeprefix("vlgym/") for env in sorted(
        rows, key=lambda each: mean(rows[each].outcome.gain or [0]))])  # fmt: skip
    axis.set(xlim=(-0.02, 1.02), xlabel="held-out success, mean of the seeds")
    axis.grid(alpha=0.2)
    figure.legend(loc="outside upper center", ncols=5, fontsize=8, frameon=False)
    write_figure(figure, path)


def write_credit() -> str:
    """Write the share of right moves of each learner for each number of targets, and the test of the lead's slope."""
    names = {int(name.removeprefix(CREDIT)): name for name in STUDIES if name.startswith(CREDIT)}
    arms, gaps = STUDIES[names[1]].arms, dict[int, dict[int, float]]()
    lines = [f"| targets | {' | '.join(arm.label for arm in arms)} |", "|---" * (1 + len(arms)) + "|"]
    for targets, name in names.items():
        runs = read_runs(name)
        right = {(run["arm"], run["seed"]): 1 - run["evaluations"][-1]["negative_rate"] for run in runs}
        for seed in {seed for _, seed in right}:
            gaps.setdefault(seed, {})[targets] = right[arms[0].label, seed] - right[arms[1].label, seed]
        cells = [write_spread([share for (arm, _), share in right.items() if arm == each.label], 3) for each in arms]
        lines.append(f"| [{targets}]({name}.json) | {' | '.join(cells)} |")
    slopes = [float(polyfit(log2([*gap]), [*gap.values()], 1)[0]) for gap in gaps.values()]
    p, lead = write_p(student_p(slopes)), f"{arms[0].label}'s lead over {arms[1].label}"
    return "\n".join([*lines, "", f"{lead} per doubling of the targets: {write_spread(slopes, 3)}, p {p}."])


def write_curriculum(name: str) -> str:
    """Write a row per sampler of a bench: held-out success on the highest level played, and the area under it."""
    runs = read_runs(name)
    ends = {
        (each, what): {run["seed"]: run[what] for run in runs if run["sampler"] == each}
        for each in dict.fromkeys(run["sampler"] for run in runs)
        for what in ("success", "area")
    }
    lines = ["| sampler | success of each seed | mean | less `fixed` | area | less `fixed` |", "|---" * 6 + "|"]
    for sampler in dict.fromkeys(sampler for sampler, _ in ends):
        cells = [", ".join(f"{value:.2f}" for _, value in sorted(ends[sampler, "success"].items()))]
        for what in ("success", "area"):
            cells += [f"{mean(ends[sampler, what].values()):.2f}"]
            cells += [report._less(ends[sampler, what], ends["fixed", what], 1 - 0.05 / 10)]
        lines.append(f"| `{sampler}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_demo() -> str:
    """Write a row per seed of the demo."""
    lines = ["| seed | before | after | greedy | grey | unreadable then | lowest explained variance | seconds |"]
    lines += ["|---" * 8 + "|"]
    for run in read_runs("demo"):
        cells = [f"{run[name]['success']:.3f}" for name in ("before", "after", "greedy", "grey")]
        cells += [f"{run['grey']['invalid_rate']:.2f}", f"{run['lowest']:.2f}", f"{run['seconds']}"]
        lines.append(f"| {run['seed']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_self_play() -> str:
    """Write a row per game and seed of self-play, before and after training."""
    lines = ["| game | seed | measure | before | after |", "|---" * 5 + "|"]
    for run in read_runs(SELF_PLAY):
        for other in ("random", "oracle") if "random" in run["before"] else ("exploitability",):
            both = [run[when][other] for when in ("before", "after")]
            cells = [
                f"{each['wins']}, {each['draws']}, {each['losses']}" if isinstance(each, Mapping)
                else f"{each:.3f} ± {run[when]['half_width']:.3f}"
                for when, each in zip(("before", "after"), both, strict=True)
            ]  # fmt: skip
            measure = other if other == "exploitability" else f"won, drawn, lost against {other}"
            lines.append(f"| {run['game']} | {run['seed']} | {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_speed() -> str:
    """Write a row per figure of a benchmark."""
    rows = json.loads((KEPT / "speed.json").read_text(encoding="utf-8"))
    lines = [f"| {row['what']} | {row['figure']} | `{row['script']}`, {row['date']}, {row['host']} |" for row in rows]
    return "\n".join(["| what | figure | script in `tests/benchmarks/`, date, host |", "|---|---|---|", *lines])


def write_leaderboard() -> str:
    """Write a row per folder of docs/results/: the mean success over its environments."""
    found = [(path.parent.name, json.loads(path.read_text(encoding="utf-8"))["overall"]) for path in
             KEPT.parent.glob("results/*/report.json")]  # fmt: skip
    found.sort(key=lambda row: (-row[1]["parts"], -row[1]["success"]["mean"]))
    lines = [f"| {name} | {row['parts']} | {write_interval(row['success'])} |" for name, row in found]
    return "\n".join(["| run | environments | success |", "|---|---|---|", *lines])


def write_wins(*ids: str) -> str:
    """Write success of random play, the best blind player and the oracle, and the blind share, for these ids."""
    entries = read_registry()
    lines = ["| id | floor | blind | blind share | ceiling |", "|---" * 5 + "|"]
    for env_id in ids:
        entry = entries[f"vlgym/{env_id}"]
        wins = [
            f"{entry[name]['success'] + 1e-9:.2f}" if name in entry else NONE for name in ("floor", "blind", "ceiling")
        ]
        share = find_blind_share(entry)
        wins.insert(2, NONE if share is None else f"{share:.2f}")
        lines.append(f"| `{env_id}` | {' | '.join(wins)} |")
    return "\n".join(lines)


FAMILIES = (
    ("cards", "NumberLine-v1", "", "reads numbers and cards"),
    ("miniworld", "OneRoom-v1", "docs/miniworld.md", "walks through rooms"),
    ("alfworld", "ALFWorld-v1", "docs/alfworld.md", "does household tasks"),
    ("webshop", "WebShop-v1", "docs/webshop.md", "buys what is wanted"),
    ("sokoban", "Sokoban-v0", "docs/sokoban.md", "pushes boxes"),
    ("football", "Football-v1", "docs/football.md", "leads an attack"),
    ("webui", "WebUI-v1", "docs/webui.md", "writes web pages"),
    ("sight", "SeeCell-v0", "docs/sight.md", "answers one question"),
    ("pettingzoo", "ConnectFour-v0", "docs/games.md", "meets other agents"),
    ("outside", "BabyAIGoTo-v0", "plugins/outside/README.md", "carries out missions, survives"),
)
"""Family, id of its picture, its page and what the model does there: the README's rows."""


def write_families() -> str:
    """Write the README's row per family, and their sum."""
    current = [entry for entry in read_registry().values() if not entry["spec"].replaced_by]
    lines = ["| | family | the model | blind | ids |", "|---" * 5 + "|"]
    for family, picture, page, task in FAMILIES:
        own = [entry for entry in current if entry["spec"].family == family]
        ends = sorted({f"{entry['blind']['success'] + 1e-9:.2f}" for entry in own})
        name = f"[{family}]({page})" if page else family
        image = f'<img src="docs/images/{picture}.png" width="96">'
        lines.append(f"| {image} | {name} | {task} | {' to '.join(dict.fromkeys((ends[0], ends[-1])))} | {len(own)} |")
    return "\n".join([*lines, f"| | {len(FAMILIES)} families | | | {len(current)} |"])


PAGES: dict[str, tuple[str, str, str, Any]] = {
    "outcomes": (
        "All trained arms", "python -m baselines.study NAME", "Every trained arm, with the tests of "
        "[results](../results.md) and Holm's correction over all of them.", lambda: write_outcomes(every=True),
    ),
    "credit": (
        "Credit for steps against episodes", "python -m baselines.study credit-1` to `credit-8",
        "NumberLine-v1 with 1, 2, 4 and 8 targets asks for one skill in longer and longer episodes. The share of "
        "held-out moves that were not punished, and the test that was set before all runs: the lead grows with the "
        "logarithm of the number of targets (one-sided). The question is open: seeds differ too much.", write_credit,
    ),
    "leaderboard": (
        "Leaderboard", "vlgym compare docs/results/*/", "Folders of `vlgym eval` in docs/results/: mean success over "
        "the environments played, more environments first.", write_leaderboard,
    ),
    SELF_PLAY: (
        "Self-play", "python tests/benchmarks/self_play.py GAME",
        "The models of the curve studies of games, against the game's own players. These runs pay a seat's gains after "
        "an unreadable reply by an older rule ([log](../log.md)).", write_self_play,
    ),
}  # fmt: skip
if read_runs("demo"):
    PAGES["demo"] = (
        "The demo", "python tests/benchmarks/demo_seeds.py --write",
        "`make demo` with seeds that did not choose its options: held-out success (no wrong move).", write_demo,
    )  # fmt: skip
PAGES |= {
    f"{CURRICULA}{bench}": (
        f"Curricula on {bench}", f"python tests/benchmarks/curricula.py {bench}",
        "Samplers of levels from one warm start per seed: held-out success on the highest level that is played, and "
        "the area under it over the steps. Differences are paired by seed; their intervals hold together for the ten "
        "comparisons of five samplers. Times are not compared: the records name no machine.",
        lambda bench=bench: write_curriculum(f"{CURRICULA}{bench}"),
    )
    for bench in ("NumberLine", "OneRoom", "Sokoban")
}  # fmt: skip


def write_study_pages() -> dict[str, str]:
    """Return the pages of the studies by name: table, plot, raw file, command, date and host."""
    made = json.loads((KEPT / "made.json").read_text(encoding="utf-8"))
    pages = {}
    for name in [*sorted(STUDIES), sets.SETS, *PAGES]:
        runs = read_runs(name)
        if name in PAGES:
            title, command, text, write = PAGES[name]
            pages[name] = f"# {title}\n\n{text}\n\n`{command}`\n\n{write()}\n"
        elif not runs:
            continue
        elif name == sets.SETS:
            seeds = len({run["seed"] for run in runs})
            pages[name] = sets.page(runs, sets.STUDY.env_steps, seeds, complete=True)
        else:
            pages[name] = report.page(name, STUDIES[name], runs, complete=True)
        raw = [f"[{path.name}]({SOURCE}docs/studies/{path.name})" for path in sorted(KEPT.glob(f"{name}.json*"))]
        note = made.get(name, {})
        pages[name] += f"\nRaw runs: {', '.join(raw) or 'those of the parts'}. " if runs or name in PAGES else ""
        pages[name] += f"Date: {note.get('date', 'not recorded')}. Host: {note.get('host', 'not recorded')}.\n"
    return pages


def fill_tables(text: str) -> str:
    """Return the page with its tables made again."""
    writers = {
        "outcomes": write_outcomes, "speed": write_speed, "wins": write_wins, "families": write_families,
    }  # fmt: skip
    return TABLE.sub(lambda found: f"{found[1]}{writers[found[2]](*found[3].split())}\n{found[4]}", text)
