"""Report and table files of runs, and the templates of all pages.

Values of records pass through jinja2's escaping; report.html's own policy also forbids scripts.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ..errors import RegistryFileError, TrajectoryError, check_writable
from ..files import write_whole
from ..play.controls import SHOWN
from ..play.trajectory import METADATA
from ..registry.registry_file import find_edit
from . import text
from .charts import draw_curve
from .compare import check_comparable
from .compute import compute_report
from .records import RecordedRun, read_run
from .turns import RULE, choose_episodes, show_episodes
from .verification import is_verified

REPORT, PAGE = "report.json", "report.html"
TEMPLATES = Path(__file__).parents[1] / "templates"


def write_report(folder: Path | str) -> dict[str, Any]:
    """Compute a run's report, write report.json and report.html, and return it (`compute_report`).

    Raises:
        TrajectoryError: the folder is no evaluation, or a record is malformed; nothing is written.
        RegistryFileError: registry.yaml, which holds floors and ceilings, was changed.
    """
    run = read_run(folder)
    check_writable("the run's folder", run.folder)
    if edit := find_edit():
        raise RegistryFileError(edit)

    # Both files are complete before the first is written.
    report = compute_report(run)
    page = render(
        "report.html", **describe_results(run, report), episodes=show_episodes(run, choose_episodes(run)), rule=RULE,
        record=json.dumps(run.header, indent=2),
    )  # fmt: skip
    write_whole(run.folder / REPORT, json.dumps(report, indent=2) + "\n")
    write_whole(run.folder / PAGE, page)
    return report


def write_table(folders: Sequence[Path], path: Path) -> None:
    """Write a page with one table of all parts of the runs whose pictures were shown.

    Raises:
        UserError: two runs are of different splits, or played a part under different conditions.
        TrajectoryError: a folder is no evaluation, or holds neither records nor a report.
    """
    check_writable("--html", path)
    runs = [read_run(folder) for folder in folders]
    for first, second in combinations(runs, 2):
        check_comparable(first, second)
    reports = [(run.folder.resolve().name, {**_read_report(run), "verified": is_verified(run)}) for run in runs]
    headers, rows = text.list_results(reports)
    write_whole(path, render("results.html", split=runs[0].split, headers=headers, rows=rows))


def _read_report(run: RecordedRun) -> dict[str, Any]:
    """Return the report of a run: computed, or the written one where its records are missing."""
    try:
        if (run.folder / METADATA).is_file():
            report = compute_report(run)
        else:
            report = json.loads((run.folder / REPORT).read_text(encoding="utf-8"))

        # A report from elsewhere may hold anything: the table is filled on trial.
        shown = {key: row for key, row in report["parts"].items() if row["pictures"] == SHOWN}
        report = {**report, "parts": {key: row for key, row in shown.items() if row["episodes"]}}
        text.list_results([("", report)])
    except FileNotFoundError:
        raise TrajectoryError(f"{run.folder} holds neither {METADATA} nor {REPORT}.") from None
    except (ValueError, OSError, LookupError, TypeError, AttributeError) as error:
        raise TrajectoryError(f"{run.folder / REPORT} is malformed ({type(error).__name__}).") from None
    return report


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
    names = [name for name in dir(text) if name.startswith(("write_", "split_reply"))]
    environment.globals.update({name: getattr(text, name) for name in names})
    environment.filters["shorten"] = text.cut_middle
    return environment


def describe_results(run: RecordedRun, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `sections.html` shows of a run's report."""
    headers, rows = text.list_rows(report)
    ended = {key: part for key, part in report["parts"].items() if part["episodes"]}
    return {
        "name": run.policy, "report": report, "overall": report["overall"], "headers": headers, "rows": rows,
        "ended": ended, "tables": text.list_tables(report), "curves": [
            draw_curve(key, [(0.0, 0.0), *enumerate(part["won_within"], 1)], "turns", (0.0, 1.0))
            for key, part in ended.items() if part["pictures"] == SHOWN
        ],
    }  # fmt: skip
