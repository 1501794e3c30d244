"""The credit bench: every estimator of turn-level credit against the true advantage.

    python -m baselines.credit --quick
    python -m baselines.credit --estimator my.py:Mine

Environments are saved and restored exactly, so a turn's advantage can be measured by branching;
NumberLine's is computed. A finished cell is a line of OUT/rows.jsonl: the same command goes on
where it was stopped (docs/credit.md).
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vlgym.errors import check_writable
from vlgym.files import lock_folder, make_folder, seal, unseal, write_whole
from vlgym.terminal import counting, open_console, open_progress, print_rows

from .. import get_ready

get_ready()


@dataclass(frozen=True)
class Config:
    """Compare estimators of turn-level credit with the true advantage."""

    quick: bool = False
    """Four small cells instead of the standard table: two minutes of one core."""
    estimator: str | None = None
    """Your own, as FILE.py:NAME; the file is run. It takes `EpisodeBatch` and returns a number a
    turn, [G, K, T]."""
    out: Path = Path("runs/credit")
    """Folder of rows and plot."""


def run(config: Config) -> None:
    """Run the cells that are missing, print the table and draw the plot."""
    from .cells import POINTS, QUICK, STANDARD, find_points, run_cell
    from .estimators import ESTIMATORS, load_estimator
    from .measures import HEADERS, draw_measures, list_lines

    own, text = load_estimator(config.estimator) if config.estimator else ({}, "")
    estimators, cells = ESTIMATORS | own, QUICK if config.quick else STANDARD
    check_writable("--out", config.out)
    make_folder(config.out)
    file, console = config.out / "rows.jsonl", open_console()

    # A row counts if its plan is the same, the text of an own estimator included.
    with lock_folder(config.out), open_progress(console) as bar:
        lines = file.read_text().splitlines() if file.is_file() else []
        rows = [unseal(json.loads(line)) for line in lines]
        plans = [plain({**asdict(cell), "estimators": [*estimators], "own": text}) for cell in cells]
        ended = [row["plan"] for row in rows]
        missing = [(c, p) for c, p in zip(cells, plans, strict=True) if p not in ended]
        with counting(bar, "cells", len(missing)) as advance:
            for cell, plan in missing:
                points = find_points(config.out, {cell.policy} & POINTS.keys(), console.print)
                rows.append(plain(run_cell(cell, estimators, points) | {"plan": plan}))
                write_whole(file, "".join(json.dumps(seal(row)) + "\n" for row in rows))
                console.print(f"{cell.name}: {rows[-1]['seconds']:.0f} s")
                advance()
    rows = [row for row in rows if row["plan"] in plans]
    print_rows(console, HEADERS, list_lines(rows))
    draw_measures(rows, config.out / "credit.png")
    console.print(f"rows: {file}; plot: {config.out / 'credit.png'}")


def plain(value: Any) -> Any:
    """Return a value as JSON has it, with None for what is no number."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)
