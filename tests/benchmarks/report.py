"""Tables of the benchmarks: each states hardware, versions and date. Shared by the scripts of this
folder."""

import argparse
import datetime
import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's command line."""
    plain = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=description, formatter_class=plain)


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


def finish(name: str, title: str, body: str, packages: Sequence[str]) -> None:
    """Print the table of `tests/benchmarks/<name>.py`; docs/results.md quotes its figures."""
    print(f"## {title}\n\n`tests/benchmarks/{name}.py`. {describe_machine(packages)}\n\n{body}\n")
