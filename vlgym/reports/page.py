"""The templates of all pages, and report.html: one file without outside assets and scripts, for screen and paper.

Everything that comes from a record passes through jinja2's escaping; report.html's own policy also forbids scripts.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..evaluation.plan import PICTURES
from . import words
from .charts import draw_curve, list_steps, make_axis, make_bar
from .records import Run
from .showing import RULE, ShownEpisode
from .text import list_rows, list_tables

TEMPLATES = Path(__file__).parents[1] / "templates"
HASHES = ("spec_hash", "prompt_hash", "prompt_version", "parser", "parser_version")


def render(template: str, **values: Any) -> str:
    """Fill in one of the package's templates; every value is escaped."""
    return _open_templates().get_template(template).render(**values)


@functools.cache
def _open_templates() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([TEMPLATES / "pages", TEMPLATES / "static"]), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals.update({name: getattr(words, name) for name in dir(words) if name.startswith("write_")})
    return environment


def write_page(run: Run, report: Mapping[str, Any], episodes: Sequence[ShownEpisode]) -> str:
    """Return report.html."""
    return render("report.html", **describe_results(run, report), episodes=episodes, rule=RULE)


def describe_results(run: Run, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the templates of a run's results (`results.html`) show of its report."""
    parts = report["parts"]
    headers, rows = list_rows(report)
    axis = make_axis(part.get("normalized") for part in parts.values())
    return {
        "name": run.policy,
        "report": report,
        "overall": report["overall"],
        "headers": headers,
        "rows": rows,
        "axis": axis,
        "bars": [_describe_bars(key, part, axis) for key, part in parts.items() if part["episodes"]],
        "curves": [
            draw_curve(key, list_steps(part["won_within"]), "turns", (0.0, 1.0))
            for key, part in parts.items()
            if part["episodes"] and part["pictures"] == PICTURES[0]
        ],
        "tables": list_tables(report),
        "made": list(describe_making(run)),
        "hashes": [
            (key, [str(part.entry.get(name, words.NONE)) for name in HASHES], part.entry.get("history", {}))
            for key, part in run.parts.items()
        ],
    }


def describe_making(run: Run) -> list[tuple[str, str]]:
    """Return name and value of what run.json says of the whole run, as text."""
    header = run.header
    policy = {name: value for name, value in header["policy"].items() if name != "name"}
    lines = [("policy", run.policy), *((str(name), str(value)) for name, value in policy.items())]
    lines.append(("split", run.split))
    if "seed" in header:
        lines.append(("seed of the policy", str(header["seed"])))
    if "prices" in header:
        prices = header["prices"]
        lines.append(("prices", f"${prices['in']} in, ${prices['out']} out, for a million tokens"))
    sessions = [each for each in _list(header.get("sessions")) if isinstance(each, Mapping)]
    if sessions:
        first = sessions[0]
        lines.append(("command", shlex.join(map(str, _list(first.get("command"))))))
        begun = str(first.get("started", words.NONE))
        lines.append(("begun", begun + (f", gone on with {len(sessions) - 1} time(s)" if len(sessions) > 1 else "")))
    versions = header.get("versions")
    if isinstance(versions, Mapping):
        lines.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    return lines


def _describe_bars(key: str, part: Mapping[str, Any], axis: Any) -> dict[str, Any]:
    floor, ceiling = part.get("floor"), part.get("ceiling")
    return {
        "key": key,
        "success": part["success"],
        "normalized": part.get("normalized"),
        "control": part["pictures"] != PICTURES[0],
        "floor": floor,
        "blind": part.get("blind"),
        "ceiling": ceiling,
        "success_bar": make_bar(
            part["success"], "rate", floor=(floor or {}).get("success"), ceiling=(ceiling or {}).get("success")
        ),
        "normalized_bar": make_bar(part.get("normalized"), axis=axis, floor=0.0, ceiling=1.0),
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
