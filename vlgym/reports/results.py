"""Results in one table: runs that were played on the test split as registry.yaml describes the environments.

That is: its card, prompt, parser, history and arguments are those of registry.yaml, and all its episodes ended. Numbers
are computed from the records; without these they are the report's, whose floors and ceilings must be registry.yaml's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import TrajectoryError, UserError, VlgymError, check_writable
from ..files import write_whole
from ..play.controls import SHOWN
from ..play.trajectory import METADATA
from ..registry import get_registry
from ..registry.making import make
from ..registry.recorded import hash_texts
from ..registry.registry_file import find_suite_parts
from .compute import find_bounds, report_run
from .page import render
from .records import Part, Run, read_episodes, read_run
from .text import list_results
from .writing import REPORT

SPLIT = "test"


def write_table(folders: Sequence[Path], path: Path) -> list[str]:
    """Write a page with one table of all parts of the runs whose pictures were shown.

    Return a line for each run that is refused, with the reason.

    Raises:
        UserError: no run may stand in the table.
    """
    check_writable("--html", path)
    reports, refused = [], []
    for folder in folders:
        try:
            reports.append((folder.resolve().name, read_result(folder)))
        except VlgymError as error:
            refused.append(f"{folder} {error}")
    if not reports:
        raise UserError(f"No run may stand in the table: {'; '.join(refused)}")
    headers, rows = list_results(reports)
    write_whole(path, render("results.html", headers=headers, rows=rows))
    return refused


def read_result(folder: Path) -> dict[str, Any]:
    """Return the report of a run, of its parts whose pictures were shown."""
    run = read_run(folder)
    for part in run.parts.values():
        if reason := find_mismatch(part, run.split):
            raise UserError(f"{part.key} {reason}")
    report = report_run(run, read_episodes(run)) if (folder / METADATA).is_file() else _read_report(folder, run)
    for key, part in run.parts.items():
        if report["parts"][key]["episodes"] != part.planned:
            raise UserError(f"is not finished: {report['parts'][key]['episodes']} of {part.planned} episodes of {key}")
    parts = {key: report["parts"][key] for key, part in run.parts.items() if part.pictures == SHOWN}
    if not parts:
        raise UserError("has no part with its pictures shown")
    return {**report, "parts": parts}


def find_mismatch(part: Part, split: str) -> str | None:
    """Return in what a part is not the task that registry.yaml describes; `None` where it is."""
    known = get_registry().known.get(part.env_id)
    if known is None:
        return "is not in registry.yaml"
    if split != SPLIT:
        return f"was played on split {split}; the table holds {SPLIT}"
    spec, entry = known["spec"], part.entry
    if part.planner == "online":
        due = {"prompt_hash": known["prompt_hash"], "parser_hash": known["parser_hash"]}
    else:
        try:
            due = _hash_made(part.env_id, part.planner)
        except VlgymError as error:
            return f"cannot be checked under planner {part.planner}: {error}"
    history = {"turns": spec.history_turns, "images": spec.history_images}
    for label, found, right in (
        ("card", entry.get("spec_hash"), spec.digest()),
        ("prompt", entry.get("prompt_hash"), due["prompt_hash"]),
        ("parser", f"{entry.get('parser')}-v{entry.get('parser_version')}", due["parser_hash"]),
        ("history", entry.get("history"), history),
    ):
        if found != right:
            return f"was played with another {label} ({found}) than registry.yaml's ({right})"
    given = entry.get("given")
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name != "parser":  # its hash was compared
            return f"was played with {name}={value!r}, which is not the environment's own"
    if (part.changed or part.items != ({},)) and not is_suite(part):
        return "was played under other arguments than registry.yaml's"
    return None


def is_suite(part: Part) -> bool:
    """True if a suite of registry.yaml has exactly these items of the environment."""
    return bool(find_suite_parts(part.env_id, part.planner, part.items))


def _read_report(folder: Path, run: Run) -> dict[str, Any]:
    """The report of a run whose records are not here."""
    try:
        report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        if report["policy"] != run.header["policy"] or report["parts"].keys() != run.parts.keys():
            raise UserError(f"{REPORT} is not of this run")
        for key, row in report["parts"].items():
            bounds = find_bounds(run.parts[key])
            for name in ("floor", "ceiling", *(["blind"] if "blind" in row else [])):
                if row.get(name) != bounds.get(name):
                    raise UserError(
                        f"{REPORT}: {name} of {key} is {row.get(name)}, registry.yaml's is {bounds.get(name)}"
                    )
        list_results([("", report)])
    except FileNotFoundError:
        raise UserError(f"holds neither {METADATA} nor {REPORT}") from None
    except (ValueError, OSError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise TrajectoryError(f"{REPORT} is malformed ({type(error).__name__})") from None
    return report


@cache
def _hash_made(env_id: str, planner: str) -> dict[str, str]:
    env = make(env_id, planner=planner)
    try:
        return hash_texts(env)
    finally:
        env.close()
