"""The templates of all pages, and what those of a run's results show.

Everything that comes from a record passes through jinja2's escaping; report.html's own policy also forbids scripts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..play.controls import SHOWN
from . import words
from .charts import draw_curve
from .records import Run
from .text import list_rows, list_tables

TEMPLATES = Path(__file__).parents[1] / "templates"


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
    environment.globals["split_reply"] = words.split_reply
    environment.filters["shorten"] = words.shorten
    return environment


def describe_results(run: Run, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `sections.html` shows of a run's report."""
    headers, rows = list_rows(report)
    ended = {key: part for key, part in report["parts"].items() if part["episodes"]}
    return {
        "name": run.policy,
        "report": report,
        "overall": report["overall"],
        "headers": headers,
        "rows": rows,
        "ended": ended,
        "curves": [
            draw_curve(key, [(0.0, 0.0), *enumerate(part["won_within"], 1)], "turns", (0.0, 1.0))
            for key, part in ended.items()
            if part["pictures"] == SHOWN
        ],
        "tables": list_tables(report),
    }
