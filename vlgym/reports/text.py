"""A report as lines of text: the table that `vlgym report` prints, and report.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .words import (
    write_count,
    write_episodes,
    write_interval,
    write_mean,
    write_money,
    write_number,
    write_share,
)

Row = list[str]
HEADERS = (
    "part", "episodes", "success", "return", "score", "normalized", "sight score", "invalid", "turns", "tokens", "cost",
)  # fmt: skip

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
    rows = [_cells(key, part) for key, part in report["parts"].items()]
    rows.append(["over all", *_overall_cells(report["overall"])])
    return _leave_out(HEADERS, rows)


def list_results(reports: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Row, list[Row]]:
    """Return headers and cells of one table of named reports: over all first, then part by part, best return first.

    Over all, who played more parts is first, then who has the higher success.
    """

    def rank(report: Mapping[str, Any]) -> tuple[int, float]:
        success = report["overall"].get("success")
        return -report["overall"]["parts"], -success["mean"] if success else 0.0

    reports = sorted(reports, key=lambda row: rank(row[1]))
    rows = [["over all", name, *_overall_cells(report["overall"])] for name, report in reports]
    for key in dict.fromkeys(key for _, report in reports for key in report["parts"]):
        found = [(name, report["parts"][key]) for name, report in reports if key in report["parts"]]
        found.sort(key=lambda row: -row[1]["return"]["mean"])
        rows += [[key, name, *_cells(key, part)[1:]] for name, part in found]
    return _leave_out((HEADERS[0], "run", *HEADERS[1:]), rows)


def _leave_out(headers: Sequence[str], rows: Sequence[Row]) -> tuple[Row, list[Row]]:
    kept = [column for column in range(len(headers)) if any(row[column] not in ("", "–") for row in rows)]
    return [headers[column] for column in kept], [[row[column] for column in kept] for row in rows]


def _cells(key: str, part: Mapping[str, Any]) -> Row:
    invalid = part.get("invalid")
    return [
        key,
        write_episodes(part),
        write_interval(part.get("success"), "rate"),
        write_mean(part.get("return")),
        write_mean(part.get("score")),
        write_interval(part.get("normalized")),
        write_interval(part.get("sight_score")),
        write_share(invalid["rate"] if invalid else None),
        write_number(part["turns"]["mean"] if "turns" in part else None, 1),
        write_count(part["reply_tokens"]["mean"] if "reply_tokens" in part else None),
        write_money(part.get("cost")),
    ]


def _overall_cells(overall: Mapping[str, Any]) -> Row:
    success, place, sight = (overall.get(name) for name in ("success", "normalized", "sight_score"))
    return [
        write_episodes(overall), write_interval(success), "", "", write_interval(place) if place else "",
        write_interval(sight) if sight else "", "", "",
        write_count(overall["reply_tokens"]["mean"]) if "reply_tokens" in overall else "",
        write_money(overall["cost"]) if "cost" in overall else "",
    ]  # fmt: skip


def explain_sight(row: Mapping[str, Any]) -> str:
    """Return in a sentence what a control says of its part."""
    success = row.get("success")
    if success is None:
        return "No episode with equal seeds has ended in both."
    if success["low"] > 0:
        return "This policy wins more with the pictures than without."
    if success["high"] < 0:
        return "This policy wins less with the pictures than without."
    returned = row["return"]
    if returned.get("low", 0) > 0:
        return "This policy earns more with the pictures; whether it wins more is not certain."
    return "As far as these episodes tell, this policy does no better with the pictures than without."


def write_markdown(report: Mapping[str, Any]) -> str:
    """Return report.md."""
    overall, spent = report["overall"], report["spent"]
    lines = [f"# {escape(report['policy']['name'])}", ""]
    for name, words in (("success", "success"), ("normalized", "normalized score"), ("sight_score", "sight score")):
        if found := overall.get(name):
            count = f"{found['parts']} of {overall['parts']}" if name == "sight_score" else str(found["parts"])
            lines.append(f"- {words}: {write_interval(found)}, mean over {count} environment(s)")
    lines.append(f"- episodes: {write_episodes(overall)}, split {report['split']}")
    if seen := report.get("can_it_see"):
        lines += [f"- can-it-see: {escape(line)}" for line in seen["warnings"] or ["the model sees its pictures"]]
    if "prompt_tokens" in spent:
        tokens = f"{write_count(spent['prompt_tokens']['total'])} in, {write_count(spent['reply_tokens']['total'])} out"
        lines.append(f"- tokens: {tokens}" + (f", {write_money(spent['cost'])}" if "cost" in spent else ""))
    lines += ["", *_table(*list_rows(report)), ""]
    for table in list_tables(report):
        lines += [f"## {table.title}", "", *([table.note, ""] if table.note else [])]
        lines += [*_table(table.headers, table.rows), ""]
    lines += [
        "Success and normalized score come with 95 % intervals, the return with its standard error. The normalized "
        "score is (return - floor) / (ceiling - floor) with the floor and the ceiling of registry.yaml; the sight "
        "score is (return - blind) / (ceiling - blind) in [-1, 1]: 0 is what needs no sight. A part has none where the "
        "blind floor was not measured, or leaves less than a fifth of the way from floor to ceiling.",
    ]
    return "\n".join(lines) + "\n"


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
    items = [
        [
            key, ", ".join(f"{name}={value}" for name, value in item["arguments"].items()), str(item["episodes"]),
            write_interval(item["success"], "rate"),
        ]
        for key, part in parts.items()
        for item in part.get("items", ())
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
        Table("Items", ("part", "item", "episodes", "success"), items),
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


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(headers), ["---"] * len(headers), *([escape(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def escape(text: str) -> str:
    """Return text that Markdown shows as it is, whatever is in it, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&~])", r"\\\1", " ".join(text.split()))
