"""The tables of a report as text, for the terminal and the pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .words import (
    NONE,
    write_count,
    write_episodes,
    write_interval,
    write_mean,
    write_money,
    write_number,
    write_share,
)

Row = list[str]
COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "episodes": write_episodes,
    "success": lambda row: write_interval(row.get("success"), "rate" if "invalid" in row else "mean"),
    "return": lambda row: write_mean(row.get("return")),
    "score": lambda row: write_mean(row.get("score")),
    "normalized": lambda row: write_interval(row.get("normalized")),
    "sight score": lambda row: write_interval(row.get("sight_score")),
    "invalid": lambda row: write_share(row.get("invalid", {}).get("rate")),
    "turns": lambda row: write_number(row.get("turns", {}).get("mean"), 1),
    "tokens": lambda row: write_count(row.get("reply_tokens", {}).get("mean")),
    "cost": lambda row: write_money(row.get("cost")),
}
"""What a row of the results says of a part, or of all parts."""

OTHERS = {"refused": "refused", "empty": "empty reply", "cut": "cut off"}
"""Kinds of replies that are counted in addition to the failure codes."""

PROTOCOL = (
    "MageBench's protocol: the mean of the benchmark's own score (of the return, where there is none) over items and "
    "repeats, the half-width of its 95 % interval between repeats, and the expected best of n repeats."
)
SIGHT = (
    "The same episodes were played again without their pictures: plain grey ones, or those of another episode. What is "
    "lost then was seen."
)
INVALID = (
    "Replies from which no legal action was read, by the parser's failure code; and those refused, empty or cut off."
)


@dataclass(frozen=True)
class Table:
    """A table of a report, as text."""

    title: str
    headers: Sequence[str]
    rows: list[Row]
    note: str = ""


def list_rows(report: Mapping[str, Any]) -> tuple[Row, list[Row]]:
    """Return headers and cells of the table of parts; a column in which nothing has a value is left out."""
    return _fill(["part"], [([key], part) for key, part in [*report["parts"].items(), ("over all", report["overall"])]])


def list_results(reports: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Row, list[Row]]:
    """Return headers and cells of one table of named reports: over all first, then part by part, best return first.

    Over all, who played more parts is first, then who has the higher success.
    """

    def rank(named: tuple[str, Mapping[str, Any]]) -> tuple[int, float]:
        overall = named[1]["overall"]
        return -overall["parts"], -overall.get("success", {"mean": 0.0})["mean"]

    reports = sorted(reports, key=rank)
    rows = [(["over all", name], report["overall"]) for name, report in reports]
    for key in dict.fromkeys(key for _, report in reports for key in report["parts"]):
        found = [([key, name], report["parts"][key]) for name, report in reports if key in report["parts"]]
        rows += sorted(found, key=lambda row: -row[1]["return"]["mean"])
    return _fill(["part", "run"], rows)


def _fill(names: Row, rows: Sequence[tuple[Row, Mapping[str, Any]]]) -> tuple[Row, list[Row]]:
    """Return headers and cells of a table; a column in which nothing has a value is left out."""
    columns = {name: [write(row) for _, row in rows] for name, write in COLUMNS.items()}
    columns = {name: cells for name, cells in columns.items() if {*cells} != {NONE}}
    cells = zip(*columns.values(), strict=True)
    return [*names, *columns], [[*head, *row] for (head, _), row in zip(rows, cells, strict=True)]


def explain_sight(row: Mapping[str, Any]) -> str:
    """Return in a sentence what a control says of its part."""
    success = row.get("success")
    if success is None:
        return "No episode with equal seeds has ended in both."
    if success["low"] > 0:
        return "This policy wins more with the pictures than without."
    if success["high"] < 0:
        return "This policy wins less with the pictures than without."
    if row["return"].get("low", 0) > 0:
        return "This policy earns more with the pictures; whether it wins more is not certain."
    return "As far as these episodes tell, this policy does no better with the pictures than without."


def list_tables(report: Mapping[str, Any]) -> list[Table]:
    """Return the tables that follow the results; those without rows are left out."""
    parts = {key: part for key, part in report["parts"].items() if "invalid" in part}
    protocol = [
        [
            key, f"{found['items']} x {found['repeats']}",
            write_number(found["mean"]) + (f" ± {write_number(found['half_width'])}" if "half_width" in found else ""),
            ", ".join(map(write_number, found["best_of"])), found.get("instruction_error", "followed"),
        ]
        for key, part in parts.items()
        if (found := part.get("benchmark"))
    ]  # fmt: skip
    sight = [
        [
            row["control"], str(row["pairs"]), write_number(row["success"]["shown"]),
            write_number(row["success"]["control"]), write_interval(row["success"], "difference", signed=True),
            write_interval(row["return"], "difference", signed=True), explain_sight(row),
        ]
        for row in report["sight"]
        if "success" in row
    ]  # fmt: skip
    invalid = [
        [key, code, str(count), write_share(count / part["replies"])]
        for key, part in parts.items()
        for code, count in {**part["invalid"]["codes"], **_count_others(part)}.items()
    ]
    tables = [
        Table("Repeats", ("part", "items x repeats", "score", "best of 1, 2, ...", "instructions"), protocol, PROTOCOL),
        Table(
            "How much needs sight",
            ("control", "pairs", "with pictures", "without", "difference", "of return", ""), sight, SIGHT,
        ),
        Table("Invalid replies", ("part", "why", "replies", "share"), invalid, INVALID),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def _count_others(part: Mapping[str, Any]) -> dict[str, int]:
    """Return how many replies were of each kind that is counted in addition to the failure codes."""
    counts = {words: round(part[name] * part["replies"]) for name, words in OTHERS.items()}
    counts["environment failed"] = part["env_errors"]
    return {words: count for words, count in counts.items() if count}
