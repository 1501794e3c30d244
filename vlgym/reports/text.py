"""A report as lines of text: the table that `vlgym report` prints, and report.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
    if overall.get("success"):
        lines.append(f"- success: {write_interval(overall['success'])}, mean over {overall['parts']} environment(s)")
    if overall.get("normalized"):
        place = overall["normalized"]
        lines.append(f"- normalized score: {write_interval(place)}, mean over {place['parts']} environment(s)")
    if overall.get("sight_score"):
        sight = overall["sight_score"]
        share = f"{sight['parts']} of {overall['parts']}"
        lines.append(f"- sight score: {write_interval(sight)}, mean over {share} environment(s)")
    lines.append(f"- episodes: {write_episodes(overall)}, split {report['split']}")
    if seen := report.get("can_it_see"):
        lines += [f"- can-it-see: {escape(line)}" for line in seen["warnings"] or ["the model sees its pictures"]]
    if "prompt_tokens" in spent:
        tokens = f"{write_count(spent['prompt_tokens']['total'])} in, {write_count(spent['reply_tokens']['total'])} out"
        lines.append(f"- tokens: {tokens}" + (f", {write_money(spent['cost'])}" if "cost" in spent else ""))
    lines += ["", *_table(*list_rows(report)), ""]
    lines += [*_list_protocol(report), *_list_items(report), *_list_sight(report), *_list_codes(report)]
    lines += [
        "Success and normalized score come with 95 % intervals, the return with its standard error. The normalized "
        "score is (return - floor) / (ceiling - floor) with the floor and the ceiling of registry.yaml; the sight "
        "score is (return - blind) / (ceiling - blind) in [-1, 1]: 0 is what needs no sight. A part has none where the "
        "blind floor was not measured, or leaves less than a fifth of the way from floor to ceiling.",
    ]
    return "\n".join(lines) + "\n"


def _list_protocol(report: Mapping[str, Any]) -> list[str]:
    rows = []
    for key, part in report["parts"].items():
        if found := part.get("benchmark"):
            half = found.get("half_width")
            rows.append(
                [
                    key, f"{found['items']} x {found['repeats']}",
                    write_number(found["mean"]) + ("" if half is None else f" ± {write_number(half)}"),
                    ", ".join(map(write_number, found["best_of"])), found.get("instruction_error", "followed"),
                ]
            )  # fmt: skip
    headers = ["part", "items x repeats", "score", "best of 1, 2, ...", "instructions"]
    return ["## Repeats", "", *_table(headers, rows), ""] if rows else []


def _list_items(report: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            key, ", ".join(f"{name}={value}" for name, value in item["arguments"].items()), str(item["episodes"]),
            write_interval(item["success"], "rate"),
        ]
        for key, part in report["parts"].items()
        for item in part.get("items", ())
    ]  # fmt: skip
    return ["## Items", "", *_table(["part", "item", "episodes", "success"], rows), ""] if rows else []


def _list_sight(report: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            row["control"], str(row["pairs"]), write_number(row["success"]["shown"]),
            write_number(row["success"]["control"]),
            write_interval(row["success"], "difference", signed=True), explain_sight(row),
        ]
        for row in report["sight"]
        if "success" in row
    ]  # fmt: skip
    headers = ["control", "pairs", "success with pictures", "without", "difference", ""]
    return ["## How much needs sight", "", *_table(headers, rows), ""] if rows else []


def _list_codes(report: Mapping[str, Any]) -> list[str]:
    rows = [
        [key, code, str(count), write_share(count / part["replies"])]
        for key, part in report["parts"].items()
        if "invalid" in part
        for code, count in part["invalid"]["codes"].items()
    ]
    headers = ["part", "why a reply was invalid", "replies", "share"]
    return ["## Invalid replies", "", *_table(headers, rows), ""] if rows else []


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(headers), ["---"] * len(headers), *([escape(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def escape(text: str) -> str:
    """Return text that Markdown shows as it is, whatever is in it, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&~])", r"\\\1", " ".join(text.split()))
