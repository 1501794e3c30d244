"""`vlgym suite NAME`: play a named benchmark with a policy that needs no model, and print its table."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import check_choice
from ..policies import IdlePolicy, OraclePolicy, Policy, RandomPolicy
from ..registry import get_registry
from ..spec import PLANNERS
from ..suite_runs import SuiteRow, run_suite
from ..suites import SuitePart
from ..terminal import open_progress, print_rows
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
    check_choice("--policy", policy, POLICIES)
    check_choice("--planner", planner, (None, *PLANNERS))
    every = get_registry().suite(name)
    check_choice("--env", env, (None, *(part.env_id for part in every)))
    parts = [part for part in every if env is None or part.env_id == env]
    total = sum(len(part.items) for part in parts for setting in part.planners if planner in (None, setting))
    with open_progress(open_console(stderr=True)) as progress:
        task = progress.add_task(name, total=total)

        def advance(part: SuitePart, index: int) -> None:
            progress.update(task, advance=1, description=part.env_id)

        rows = run_suite(name, POLICIES[policy], repeats=repeats, planner=planner, only=env, on_item=advance)
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        _print_rows(name, rows)


def _print_rows(name: str, rows: list[SuiteRow]) -> None:
    headers = ("environment", "planner", "items x repeats", "score", "success", "best of", "instructions")
    console = open_console()
    console.print(f"{name}, {rows[0].policy}", style="bold")
    print_rows(console, headers, [_cells(row) for row in rows])


def _cells(row: SuiteRow) -> list[str]:
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
