"""Regenerate the pages that are made from the code: `python docs/generate.py`.

docs/environments.md    from the installed specs and registry.yaml
docs/results.md         its table of studies, from docs/studies/*.json
docs/*.md, docs/tutorials/*.md    the files that they print, from tests/fixtures/ and from `vlgym new-plugin`

The reference pages of the site (cli, hooks, errors, check, gallery) are made by `write_reference` when it is built.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import io
import json
import re
import sys
import tempfile
from pathlib import Path

from numpy import log2, polyfit

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
WIDTH = 224
"""Pixels of a picture in the gallery."""

LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml"}
FILE = re.compile(r"(<!-- (?:file|new-plugin ([^:\n]+)): (\S+) -->)(?:\n```\w*\n.*?\n```)?", re.DOTALL)

STUDIES = re.compile(r"(<!-- (studies|credit) -->).*?(<!-- end of \2 -->)", re.DOTALL)
CREDIT = "credit-"
"""Begins the names of the studies of credit; behind it stands the number of targets in an episode."""


def generate() -> dict[str, str]:
    """Return page name (from docs/) -> text, of the pages that git holds."""
    pages = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    made = {name: FILE.sub(_print_file, text) for name, text in pages.items() if FILE.search(text)}
    tables = {"studies": write_studies, "credit": write_credit}
    results = STUDIES.sub(lambda found: f"{found[1]}\n{tables[found[2]]()}\n{found[3]}", pages["results.md"])
    return {**made, "environments.md": write_environments(), "results.md": results}


def write_reference(folder: Path) -> None:
    """Write the pages of the site that git does not hold."""
    for name, write in (
        ("cli", write_cli), ("hooks", write_hooks), ("errors", write_errors), ("check", write_checks),
        ("gallery", write_gallery),
    ):  # fmt: skip
        (folder / f"{name}.md").write_text(write(), encoding="utf-8")


def write_environments() -> str:
    """Write a table per family: task, turns, and success of floor, blind floor and ceiling; current ids only."""
    from vlgym.registry.installing import how_to_install
    from vlgym.registry.registry_file import read_registry

    entries = {env_id: entry for env_id, entry in read_registry().items() if not entry["spec"].replaced_by}
    lines = [
        "<!-- Written by docs/generate.py. -->\n\n# Environments\n",
        "Success on 100 or 400 episodes of the test split: floor of the random policy, blind floor of the best player "
        "found without the picture ([sight.md](sight.md)), ceiling of the oracle. Levels: their number, and the "
        "oracle's mean turns on the first and on the last ([how to play them](write-a-plugin.md#levels)). Returns, "
        "standard errors, card and options: `vlgym show ID`. Published forms that a newer version replaces: "
        "`vlgym list --old`.\n",
    ]
    for family in sorted({entry["spec"].family for entry in entries.values()}):
        rows = {env_id: entry for env_id, entry in entries.items() if entry["spec"].family == family}
        distribution = next(iter(rows.values()))["distribution"]
        lines.append(f"## {family}\n\n`{how_to_install(distribution, here=ROOT)}`\n")
        lines.append("| id | task | turns | floor | blind | ceiling | levels |\n" + "|---" * 7 + "|")
        for env_id, entry in rows.items():
            spec = entry["spec"]
            measured = " | ".join(_show(entry.get(name)) for name in ("floor", "blind", "ceiling"))
            lines.append(
                f"| `{env_id}` | {spec.summary} | {spec.max_turns} | {measured} | {_show_levels(entry.get('levels'))} |"
            )
        lines.append("")
    return "\n".join(lines)


def write_studies() -> str:
    """Write a row per learner of each published study, and whether its success is above the best blind player's: a
    t-test over seeds, whose deviation is at least that of their episodes (seeds that end equal would have none), with
    Holm's correction over all rows."""
    from scipy.stats import t as student

    from baselines.studies.arms import STUDIES as KNOWN
    from baselines.studies.report import spread
    from vlgym.intervals import holm
    from vlgym.registry.registry_file import read_registry
    from vlgym.reports.text import write_p

    entries, rows, values = read_registry(), [], []
    for path in sorted((DOCS / "studies").glob("*.json")):
        if path.stem not in KNOWN or path.stem.startswith(CREDIT):  # which have tables of another form
            continue
        runs, study = json.loads(path.read_text(encoding="utf-8")), KNOWN[path.stem]
        blind = entries[study.env]["blind"]["success"]
        for arm in study.arms:
            own = [run for run in runs if run["arm"] == arm.label]
            before = [each["success"] for run in own for each in run["evaluations"] if not each["update"]]
            after = [run["evaluations"][-1]["success"] for run in own]
            grey = [run["evaluations"][-1]["grey"]["success"] for run in own if "grey" in run["evaluations"][-1]]
            explained = [run["explained_variance"] for run in own if run["explained_variance"] is not None]
            mean, deviation, half = spread(after)
            episodes = own[0]["evaluations"][-1]["episodes"]
            share = (mean * episodes + 1) / (episodes + 2)
            deviation = max(deviation, (share * (1 - share) / episodes) ** 0.5)
            p = float(student.sf((mean - blind) / deviation * len(own) ** 0.5, len(own) - 1))
            values.append(p)
            rows.append(
                f"| [{study.env.removeprefix('vlgym/')}](studies/{path.name}) | {arm.label} | {len(own)} "
                f"| {study.env_steps:,} | {f'{spread(before)[0]:.2f}' if before else ''} | {mean:.2f} ± {half:.2f} "
                f"| {f'{spread(grey)[0]:.2f}' if grey else ''} | {blind + 1e-9:.2f} "
                f"| {f'{spread(explained)[0]:.2f}' if explained else ''} | {write_p(p)}"
            )
    head = (
        "| environment | learner | seeds | steps | before RL | after RL | grey pictures | best blind player "
        "| explained variance | p | above blind |\n" + "|---" * 11 + "|\n"
    )
    return head + "\n".join(
        f"{row} | {'yes' if stands else 'no'} |" for row, stands in zip(rows, holm(values, 0.05), strict=True)
    )


def write_credit() -> str:
    """Write the share of right moves of each learner for each number of targets, and the test of the lead's slope."""
    from scipy.stats import ttest_1samp

    from baselines.studies.arms import STUDIES as KNOWN
    from baselines.studies.report import spread
    from vlgym.reports.text import write_p

    studies = {int(name.removeprefix(CREDIT)): name for name in KNOWN if name.startswith(CREDIT)}
    arms, rows, gaps = KNOWN[studies[1]].arms, [], dict[int, dict[int, float]]()
    for targets, name in studies.items():
        path = DOCS / "studies" / f"{name}.json"
        if not path.is_file():
            continue
        runs = json.loads(path.read_text(encoding="utf-8"))
        right = {(run["arm"], run["seed"]): 1 - run["evaluations"][-1]["negative_rate"] for run in runs}
        for (arm, seed), share in right.items():
            if arm == arms[0].label and (arms[1].label, seed) in right:
                gaps.setdefault(seed, {})[targets] = share - right[arms[1].label, seed]
        cells = [spread([share for (arm, _), share in right.items() if arm == each.label]) for each in arms]
        won = [
            spread([run["evaluations"][-1]["success"] for run in runs if run["arm"] == each.label])[0] for each in arms
        ]
        steps = [[run["gradient_steps"] for run in runs if run["arm"] == each.label] for each in arms]
        explained = spread([run["explained_variance"] for run in runs if run["arm"] == arms[0].label])[0]
        rows.append(
            f"| [{targets}](studies/{name}.json), [curves](studies/{name}.png) | "
            + " | ".join(f"{m:.3f} ± {half:.3f}" for m, _, half in cells)
            + f" | {', '.join(f'{each:.2f}' for each in won)} | {explained:.2f} | "
            + f"{', '.join(' to '.join(map(str, sorted({min(each), max(each)}))) for each in steps)} |"
        )
    if not rows:
        return "No run has ended."
    head = f"| targets | {' | '.join(arm.label for arm in arms)} | success | explained variance | gradient steps |"
    lines = [head, "|---" * (4 + len(arms)) + "|", *rows]
    slopes = [polyfit(log2([*gap]), [*gap.values()], 1)[0] for gap in gaps.values() if len(gap) == len(studies)]
    if len(slopes) > 1:
        mean, _, half = spread(slopes)
        p = ttest_1samp(slopes, 0, alternative="greater").pvalue
        lead = f"{arms[0].label}'s lead over {arms[1].label}"
        lines += ["", f"Slope of {lead} per doubling: {mean:+.4f} ± {half:.4f}, p {write_p(p)}."]
    return "\n".join(lines)


def write_gallery() -> str:
    """Write a grid for each family, with a moving picture and a summary for each current environment."""
    lines = [
        "# Gallery\n",
        "The oracle's first test episode of every environment, as a model sees it: at most 40 pictures.\n",
    ]
    specs = list_shown()
    for family in dict.fromkeys(spec.family for spec in specs):
        lines.append(f"## {family}\n\n<div class='gallery'>")
        for spec in specs:
            if spec.family == family:
                name = spec.id.replace("/", "-")
                lines.append(
                    f'<figure><img src="animations/{name}.webp" alt="An episode of {spec.id}" width="{WIDTH}" '
                    f'loading="lazy"><figcaption><code>{spec.id}</code><br>{html.escape(spec.summary)}</figcaption>'
                    "</figure>"
                )
        lines.append("</div>\n")
    return "\n".join(lines)


def list_shown() -> list:
    """The specs of the gallery, family by family: the newest version of each that registry.yaml knows."""
    from vlgym.registry import get_registry

    registry = get_registry()
    specs = [spec for spec in registry.specs.values() if spec.id in registry.known and not spec.replaced_by]
    return sorted(specs, key=lambda spec: (spec.family, spec.id))


def write_cli() -> str:
    """The `--help` text of every command."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from vlgym.cli.app import build

    calls: list[list[str]] = [[]]
    for name, command in sorted(get_command(build()).commands.items()):  # type: ignore[attr-defined]
        calls += [[name], *([name, sub] for sub in sorted(getattr(command, "commands", {})))]
    parts = ["# Command line\n"]
    for call in calls:
        result = CliRunner().invoke(build(), [*call, "--help"], env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
        parts.append(f"## `{' '.join(['vlgym', *call])}`\n\n```text\n{result.output.strip()}\n```\n")
    return "\n".join(parts)


def write_checks() -> str:
    """A section per check of the certificate: what holds, what the check sees, and what it cannot see."""
    from vlgym.testing.checks import ALL_CHECKS, RFC_008

    lines = ["# Checks\n", "What `vlgym check ID` tests, in this order. A certificate is evidence, not proof.\n"]
    for name, check in ALL_CHECKS.items():
        head, _, rest = (inspect.getdoc(check) or "").partition("\n\n")
        lines += [f"## `{name}`\n", " ".join(head.split()), "", " ".join(rest.split()), ""]
        if name in RFC_008:
            lines.append(f"OpenEnv's RFC 008: {', '.join(f'`{each}`' for each in RFC_008[name])}.\n")
    return "\n".join(lines)


def write_hooks() -> str:
    """A section per hook, titled with its signature."""
    from vlgym.registry import hookspecs

    lines = ["# Hooks\n", inspect.getdoc(hookspecs) or "", ""]
    for name, function in vars(hookspecs).items():
        if name.startswith("vlgym_"):
            signature = str(inspect.signature(function)).replace("'", "")
            lines += [f"## `{name}{signature}`\n", inspect.getdoc(function) or "", ""]
    return "\n".join(lines)


def write_errors() -> str:
    """Every error class with its next step."""
    from vlgym import errors

    lines = ["# Errors\n", inspect.getdoc(errors) or "", "", "| error | meaning |", "|---|---|"]
    for name, cls in vars(errors).items():
        if isinstance(cls, type) and issubclass(cls, Exception):
            lines.append(f"| `{name}` | {' '.join((inspect.getdoc(cls) or '').split())} |")
    return "\n".join(lines) + "\n"


def _print_file(match: re.Match[str]) -> str:
    """The mark, and below it the file that it names, or that `vlgym new-plugin` writes with the mark's words."""
    mark, words, name = match.groups()
    with tempfile.TemporaryDirectory() as folder:
        if words is not None:
            from vlgym.cli.app import main as call

            with contextlib.redirect_stdout(io.StringIO()):
                call(["new-plugin", *words.split(), "--out", folder])
        path = Path(folder if words is not None else ROOT) / name
        text = path.read_text(encoding="utf-8").rstrip()
    return f"{mark}\n```{LANGUAGES.get(path.suffix, '')}\n{text}\n```"


def _show(measured: dict[str, float] | None) -> str:
    return f"{measured['success']:.2f}" if measured else "not measured"


def _show_levels(measured: list[dict[str, float]] | None) -> str:
    return f"{len(measured)}: {measured[0]['length']:.1f} to {measured[-1]['length']:.1f}" if measured else ""


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for page, text in generate().items():
        (DOCS / page).write_text(text, encoding="utf-8")
