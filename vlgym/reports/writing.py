"""Write report.json, report.md and report.html of a run into the folder of its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import check_writable
from ..files import write_whole
from .compute import report_run
from .page import write_page
from .records import read_episodes, read_run
from .showing import choose_episodes, show_episodes
from .text import write_markdown

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
    episodes = show_episodes(run, choose_episodes(run, played))
    texts = {
        REPORT: json.dumps(report, indent=2) + "\n",
        MARKDOWN: write_markdown(report),
        PAGE: write_page(run, report, episodes),
    }
    for name, text in texts.items():
        write_whole(run.folder / name, text)
    return report
