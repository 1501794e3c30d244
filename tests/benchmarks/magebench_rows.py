"""Rows of MageBench's mini set that need no model: idle, random and oracle, beside the published table.

    python tests/benchmarks/magebench_rows.py --part sokoban --part webui --write
    python tests/benchmarks/magebench_rows.py --part football --write

Each part is kept in docs/benchmarks/magebench_rows.json with its own date and versions, so that one part can be
measured by itself; the page is written from all that is there. Without `--write` only what was just measured is shown.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from report import PAGES, describe_machine, finish, parse_write, table

from vlgym.evaluation import run_evaluation
from vlgym.evaluation.plan import plan_suite
from vlgym.making import unwrap
from vlgym.policies import IdlePolicy, OraclePolicy, Policy, RandomPolicy
from vlgym.registry import get_registry
from vlgym.reports.compute import compute_report
from vlgym.types import Reply, Turn

SUITE = "magebench-mini"
NAME = "magebench_rows"
STORE = PAGES / f"{NAME}.json"

PACKAGES = {
    "sokoban": ("vlgym", "vlgym-sokoban", "gym-sokoban"),
    "webui": ("vlgym", "vlgym-webui", "selenium"),
    "football": ("vlgym", "vlgym-football", "gfootball"),
}
TITLES = {"sokoban": "Sokoban", "webui": "WebUI", "football": "Football"}

NOTES = {
    "sokoban": " The levels have the published sizes, box counts and solution lengths; the boards are others. Under "
    "the Global planner `random` is a plan of one random action; the paper does not say how many its random player "
    "takes.",
    "webui": " The projects are ours. `random` writes the smallest code blocks, which draw nothing.",
    "football": " The situations' places are ours. `idle` answers nothing, and an unreadable reply plays no frame; the "
    "published idle player lets the game run.",
}

COLUMNS = ("WebUI, Global", "WebUI, Online", "Sokoban, Global", "Sokoban, Online", "Football, Online")
HALF_WIDTHS = ("2.0", "2.6", "1.9", "1.8", "2.2")
PUBLISHED = (
    ("idle", "0.00", "0.00", "41.18", "41.18", "2.53"),
    ("random", "0.00", "0.00", "46.61", "46.61", "17.33"),
    ("best model", "64.11 (Claude-3.5-Sonnet)", "62.08 (Claude-3.5-Sonnet)", "48.26 (Claude-3.5-Sonnet)",
     "53.03 (GPT-4o)", "21.20 (GPT-4o)"),
    ("human", "68.71", "94.32", "83.63", "96.85", "54.68"),
)  # fmt: skip
"""Published, MageBench arXiv 2412.04531, table 2 (mini set). The best model is that of each column."""


class RandomPlanPolicy:
    """Writes plans of as many random actions as the Online planner has replies; `RandomPolicy` writes one action."""

    name = "random, 50 actions"

    def reply(self, turns: Sequence[Turn]) -> list[Reply]:
        """Draw each plan from the episode's seed."""
        replies = []
        for turn in turns:
            env = unwrap(turn.env)
            legal = env.legal_actions()
            drawn = np.random.default_rng(turn.seed).integers(len(legal), size=50)
            replies.append(Reply(env.parser.format([legal[index] for index in drawn])))
        return replies


def measure(part: str, repeats: int | None) -> dict[str, Any]:
    """Play one part of the suite with the three policies; return its rows and where they were measured."""
    env_id = next(env_id for env_id, spec in get_registry().specs.items() if spec.family == part)
    if part == "webui":
        from vlgym_webui.browser import POOL, Browser

        from vlgym.chromium import Limits

        # These pages are harmless, and the score must not depend on what else the machine is doing.
        POOL.make = lambda: Browser(Limits(wall_s=100, cpu_s=30))
    plays: list[tuple[Policy, str | None]] = [(IdlePolicy(), None), (RandomPolicy(), None)]
    if part == "sokoban":
        plays.append((RandomPlanPolicy(), "global"))
    plays.append((OraclePolicy(fallback=True), None))
    rows = [row for policy, planner in plays for row in play(policy, env_id, repeats=repeats, planner=planner)]
    published = next(found.repeats for found in get_registry().suite(SUITE) if found.env_id == env_id)
    return {"machine": describe_machine(PACKAGES[part]), "published_repeats": published, "rows": rows}


def play(policy: Policy, env_id: str, *, repeats: int | None, planner: str | None) -> list[dict[str, Any]]:
    """Play a policy's rows of one environment, one for each planner."""
    every, _ = plan_suite(SUITE, repeats=repeats, planner=planner)
    parts = [part for part in every if part.env_id == env_id]
    with tempfile.TemporaryDirectory() as folder:
        run_evaluation(parts, policy, Path(folder) / "run", num_envs=1)
        found = compute_report(Path(folder) / "run")["parts"]
    rows = []
    for part in parts:
        scores = found[part.key]["benchmark"]
        rows.append(
            {
                "policy": policy.name, "planner": part.planner, "items": scores["items"], "repeats": scores["repeats"],
                "mean": scores["mean"], "half_width": scores.get("half_width"),
                "success": found[part.key]["success"]["rate"], "instruction_error": scores.get("instruction_error"),
            }
        )  # fmt: skip
    return rows


def write_part(part: str, found: dict[str, Any]) -> str:
    """Return a part's section of the page."""
    header = ("policy", "planner", "items x repeats", "mean score", "half-width", "success", "instruction following")
    rows = [
        (
            row["policy"], row["planner"], f"{row['items']} x {row['repeats']}", f"{row['mean']:.3f}",
            "none (one repeat)" if row["half_width"] is None else f"{row['half_width']:.2f}", f"{row['success']:.3f}",
            f"error: {row['instruction_error']}" if row["instruction_error"] else "no error",
        )
        for row in found["rows"]
    ]  # fmt: skip
    played = {row["repeats"] for row in found["rows"]}
    wanted = found["published_repeats"]
    note = "" if played == {wanted} else f" Fewer repeats than the published {wanted}, to save time."
    return f"## {TITLES[part]}, ours\n\nMeasured {found['machine']}{note}{NOTES[part]}\n\n{table(header, rows)}"


def write_published() -> str:
    """Return the section with the paper's numbers."""
    rows = [*PUBLISHED, ("half-width given there", *HALF_WIDTHS)]
    return (
        "## Published, MageBench arXiv 2412.04531\n\n"
        "Copied from the paper's table 2, not measured here. They belong to its own boards, situations and projects; "
        f"[magebench.md](../magebench.md) says what compares with ours.\n\n{table(('row', *COLUMNS), rows)}"
    )


def main() -> None:
    """Measure the chosen parts and write the page from all that were measured."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=sorted(PACKAGES), help="may be repeated; default: all")
    parser.add_argument("--repeats", type=int, help="instead of each part's published number")
    chosen = parse_write(__doc__ or "", parser)
    measured = {part: measure(part, chosen.repeats) for part in chosen.part or sorted(PACKAGES)}
    if chosen.write:
        kept = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
        measured = {**kept, **measured}
        STORE.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    body = (
        "The mini set (20 items of each part) through `vlgym.evaluation`. The half-width is that of the 95 % interval "
        "over repeats (`vlgym/benchmark_scores.py`); it is 0 where every repeat gives the same. An "
        "instruction-following error means that more than 90 % of the replies could not be read, or at least 90 % of "
        "the actions were the same.\n\n"
    )
    sections = [write_part(part, measured[part]) for part in ("sokoban", "webui", "football") if part in measured]
    finish(
        NAME, "MageBench without a model", body + "\n\n".join([*sections, write_published()]), ["vlgym"], chosen.write
    )


if __name__ == "__main__":
    main()
