"""The credit bench: every estimator of turn-level credit against the true advantage.

    python -m baselines.credit --quick
    python -m baselines.credit --estimator my.py:Mine

Environments are saved and restored exactly, so the advantage of a turn can be measured by branching; NumberLine's is
computed. A finished cell is a row of OUT/rows.jsonl: the same command goes on where it was stopped. Figures and what
follows from them: docs/credit.md.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vlgym.errors import check_writable
from vlgym.files import lock_folder, make_folder, seal, unseal, write_whole
from vlgym.terminal import counting, open_console, open_progress, print_rows

from .cells import POINTS, QUICK, STANDARD, find_points, run_cell
from .estimators import ESTIMATORS, load_estimator
from .summary import HEADERS, draw, summarise

ROWS, PLOT = "rows.jsonl", "credit.png"


@dataclass(frozen=True)
class Config:
    """Compare estimators of turn-level credit with the true advantage."""

    quick: bool = False
    """Four small cells instead of the standard table: two minutes instead of an hour of one core."""
    estimator: str | None = None
    """An estimator of your own, as FILE.py:NAME; the file is run. It takes episodes (baselines/credit/episodes.py) and
    returns a number for each turn, [G, K, T]."""
    out: Path = Path("runs/credit")
    """Folder of rows and plot; another for other options."""


def run(config: Config) -> Path:
    """Run the cells that are missing, print the table, draw the plot; return the folder.

    Raises:
        UserError: the estimator cannot be loaded, or the folder cannot be written to.
    """
    estimators, own = dict(ESTIMATORS), ""
    if config.estimator is not None:
        name, estimator, own = load_estimator(config.estimator)
        estimators[name] = estimator
    check_writable("--out", config.out)
    make_folder(config.out)
    lock, console = lock_folder(config.out), open_console()
    cells, file = QUICK if config.quick else STANDARD, config.out / ROWS

    # A row counts if it was made by the same plan, the text of one's own estimator included.
    plans = {cell: plain({**asdict(cell), "estimators": [*estimators], "own": own}) for cell in cells}
    rows = [unseal(json.loads(line)) for line in file.read_text().splitlines()] if file.is_file() else []
    done = [row["plan"] for row in rows]
    missing = [cell for cell in cells if plans[cell] not in done]
    wanted = {cell.policy for cell in missing} & POINTS.keys() or {cell.policy for cell in cells} & POINTS.keys()
    points = find_points(config.out, wanted, console.print) if missing else {}
    with open_progress(console) as bar, counting(bar, "cells", len(missing)) as advance:
        for cell in missing:
            row = run_cell(cell, estimators, points) | {"plan": plans[cell]}
            rows.append(plain(row))
            write_whole(file, "".join(json.dumps(seal(each)) + "\n" for each in rows))
            console.print(f"{cell.name}: {row['seconds']:.0f} s")
            advance()
    lock.close()
    rows = [row for row in rows if row["plan"] in plans.values()]
    print_rows(console, HEADERS, summarise(rows))
    draw(rows, config.out / PLOT)
    console.print(f"rows: {file}; plot: {config.out / PLOT}", soft_wrap=True)
    return config.out


def plain(value: Any) -> Any:
    """Return a value with None for what is no number."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
