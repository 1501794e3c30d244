"""The sections of docs/benchmarks.md: each states hardware, versions and date. Shared by the scripts of this folder."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"


def parse_write(description: str, parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    """Parse the command line of a benchmark: `--write` writes its section."""
    parser = parser or argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.description = description
    parser.add_argument("--write", action="store_true", help="replace the script's section in docs/benchmarks.md")
    return parser.parse_args()


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])


def describe_machine(packages: Sequence[str]) -> str:
    """Return one paragraph: date, processor, cores, operating system, versions."""
    cpu = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.*)$", cpu.read_text() if cpu.exists() else "", re.MULTILINE)
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{datetime.date.today()}; {(models or [platform.machine()])[0]}, {cores} cores; {system}, {versions}."


def finish(name: str, title: str, body: str, packages: Sequence[str], write: bool) -> None:
    """Print the section of `tests/benchmarks/<name>.py`, and put it into docs/benchmarks.md if asked to.

    A section begins with its title's heading and ends before the next heading of that level.
    """
    section = f"## {title}\n\n`tests/benchmarks/{name}.py`. {describe_machine(packages)}\n\n{body}\n\n"
    print(section)
    if write:
        text = PAGE.read_text(encoding="utf-8")
        old = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
        if old is None:
            raise SystemExit(f"docs/benchmarks.md has no section {title!r}")
        PAGE.write_text(text[: old.start()] + section + text[old.end() :], encoding="utf-8")
