"""What every benchmark page states: hardware, versions, date; and how a page is written. Shared by the scripts of
this folder."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

PAGES = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"


def parse_write(description: str, parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    """Parse the command line of a benchmark: `--write` writes its page."""
    parser = parser or argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.description = description
    parser.add_argument("--write", action="store_true", help="write the page in docs/benchmarks/")
    return parser.parse_args()


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])


def describe_machine(packages: Sequence[str]) -> str:
    """Return one paragraph: processor, cores, operating system, versions, date."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine()
    )
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    today = datetime.date.today().isoformat()
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{today}; {model}, {cores} cores; {system}, {versions}."


def finish(name: str, title: str, body: str, packages: Sequence[str], write: bool, script: str | None = None) -> None:
    """Print the page, and write it to `docs/benchmarks/<name>.md` if asked to."""
    script = script or f"tests/benchmarks/{name}.py"
    page = f"# {title}\n\nWritten by `{script}`. {describe_machine(packages)}\n\n{body}\n"
    print(page)
    if write:
        (PAGES / f"{name}.md").write_text(page, encoding="utf-8")


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
