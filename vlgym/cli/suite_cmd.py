"""`vlgym suite NAME`: play a named benchmark with a policy that needs no model, and print its table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..errors import check_choice
from ..policies import IdlePolicy, OraclePolicy, Policy, RandomPolicy
from ..registry import get_registry
from ..spec import PLANNERS
from ..suite_runs import SuiteRow, run_suite
from ..suites import SuitePart
from .console import open_console, print_json
from .list_cmd import AsJson

POLICIES: dict[str, Policy] = {
    "idle": IdlePolicy(), "random": RandomPolicy(), "oracle": OraclePolicy(fallback=True),
}  # fmt: skip


def suite(
    name: Annotated[str, typer.Argument(help="For example magebench-mini.")],
    policy: Annotated[str, typer.Option(help=f"Who plays: {', '.join(POLICIES)}.")] = "random",
    planner: Annotated[str | None, typer.Option(help=f"Only this setting: {' or '.join(PLANNERS)}.")] = None,
    env: Annotated[str | None, typer.Option(metavar="ID", help="Only this environment.")] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Instead of each environment's own number.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play a suite that the installed plugins contribute to, and print scores with half-widths."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    check_choice("--policy", policy, POLICIES)
    check_choice("--planner", planner, (None, *PLANNERS))
    every = get_registry().suite(name)
    check_choice("--env", env, (None, *(part.env_id for part in every)))
    parts = [part for part in every if env is None or part.env_id == env]
    total = sum(len(part.items) for part in parts for setting in part.planners if planner in (None, setting))
    console = open_console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=total)

        def advance(part: SuitePart, index: int) -> None:
            progress.update(task, advance=1, description=f"{part.env_id} {index + 1}/{len(part.items)}")

        rows = run_suite(name, POLICIES[policy], repeats=repeats, planner=planner, only=env, on_item=advance)
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        _print_rows(name, rows)


def _print_rows(name: str, rows: list[SuiteRow]) -> None:
    from rich.table import Table

    table = Table(title=f"{name}, {rows[0].policy}")
    for header in ("environment", "planner", "items x repeats", "score", "success", "best of", "instructions"):
        table.add_column(header)
    for row in rows:
        table.add_row(*_cells(row))
    open_console().print(table)


def _cells(row: SuiteRow) -> list[Any]:
    result = row.result
    half = "" if result.half_width is None else f" ± {result.half_width:.2f}"
    return [
        row.env_id,
        row.planner,
        f"{row.items} x {result.repeats}",
        f"{result.mean:.2f}{half}",
        f"{row.success:.2f}",
        ", ".join(f"{value:.2f}" for value in result.best_of),
        result.instruction_error or "followed",
    ]
