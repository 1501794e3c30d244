"""Write report.json, report.md and report.html of a run into the folder of its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import check_writable
from ..files import write_whole
from .compute import report_run
from .page import describe_results, render
from .records import read_episodes, read_run
from .turns import RULE, choose_episodes, show_episodes

REPORT, MARKDOWN, PAGE = "report.json", "report.md", "report.html"


def write_report(folder: Path | str) -> dict[str, Any]:
    """Compute a run's report, write its three files into the folder and return it (see `compute_report`).

    Raises:
        TrajectoryError: the folder is no evaluation, or a record is malformed; nothing is written then.
    """
    run = read_run(folder)
    check_writable("the run's folder", run.folder)
    played = read_episodes(run)
    report = report_run(run, played)
    results = describe_results(run, report)
    texts = {
        REPORT: json.dumps(report, indent=2) + "\n",
        MARKDOWN: render("report.md", **results),
        PAGE: render(
            "report.html", **results, episodes=show_episodes(run, choose_episodes(run, played)), rule=RULE,
            record=json.dumps(run.header, indent=2),
        ),
    }  # fmt: skip
    for name, text in texts.items():
        write_whole(run.folder / name, text)
    return report
