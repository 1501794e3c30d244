"""The numbers and tables of a report as text, the same on the terminal and on the pages."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

NONE = "–"  # stands for a missing value
LONGEST_TEXT = 60_000  # characters of a text in one piece


def write_number(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """Return a number with `digits` digits after the point; there is no minus zero."""
    if value is None:
        return NONE
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def write_interval(value: Mapping[str, Any] | None, name: str = "mean", *, signed: bool = False) -> str:
    """Return `0.53 [0.43, 0.63]` of a mapping; the mean alone without `low` and `high`."""
    if value is None:
        return NONE
    return f"{write_number(value[name], signed=signed)} {write_ends(value, signed=signed)}".rstrip()


def write_ends(value: Mapping[str, Any] | None, *, signed: bool = False) -> str:
    """Return `[0.43, 0.63]`; nothing where the ends are missing."""
    if value is None or value.get("low") is None:
        return ""
    return f"[{write_number(value['low'], signed=signed)}, {write_number(value['high'], signed=signed)}]"


def write_mean(value: Mapping[str, Any] | None) -> str:
    """Return `1.20 ± 0.15` of a mapping with a mean and a standard error."""
    if value is None:
        return NONE
    se = value.get("se")
    return write_number(value["mean"]) + ("" if se is None else f" ± {write_number(se)}")


def write_money(value: float | None) -> str:
    """Return dollars: to the cent, small sums to two digits that are not zero."""
    if value is None:
        return NONE
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.2g}"


def write_count(value: float | None) -> str:
    """Return a whole number with a thin gap between thousands."""
    return NONE if value is None else f"{round(value):,}".replace(",", " ")


def write_short(value: float) -> str:
    """Return a number to four digits, thousands, millions and more by a letter: `12k`, `1.5M`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


def write_share(value: float | None) -> str:
    """Return a share in percent; one below 0.5 % that is not 0 says so."""
    if value is None:
        return NONE
    return "< 1 %" if 0 < value < 0.005 else f"{100 * value:.0f} %"


def write_p(value: float) -> str:
    """Return a p value to three digits after the point; `NONE` of a test that was not made."""
    return NONE if value != value else "< 0.001" if value < 0.0005 else f"{value:.3f}"


def write_episodes(row: Mapping[str, Any]) -> str:
    """Return how many episodes ended, and of how many where some are missing."""
    ended, planned = row["episodes"], row["planned"]
    return write_count(ended) if ended == planned else f"{write_count(ended)} of {write_count(planned)}"


def split_reply(reply: str, span: Sequence[int] | None) -> list[tuple[str, bool]]:
    """Return the pieces of a reply and whether each is what was read as the action."""
    start, end = span if span is not None and 0 <= span[0] <= span[1] <= len(reply) else (len(reply), len(reply))
    pieces = [(reply[:start], False), (reply[start:end], True), (reply[end:], False)]
    return [(text, marked) for text, marked in pieces if text]


def cut_middle(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return the text, or its beginning and its end where it is longer than a page shows."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def write_kinds(counts: Mapping[str, int]) -> str:
    """Return counts by name, the highest first: `tag 40, boxed 2`."""
    return ", ".join(f"{name} {count}" for name, count in Counter(counts).most_common()) or NONE


def write_all_valid(value: Mapping[str, Any]) -> str:
    """Return the success of some episodes and how many they are: `0.67 [0.35, 0.88] of 9`."""
    return f"{write_interval(value, 'rate') if value['episodes'] else NONE} of {value['episodes']}"


def _write_middle(name: str, row: Mapping[str, Any]) -> str:
    return write_number((row.get(name) or {}).get("mean"))


Row = list[str]
Headed = tuple[Row, Mapping[str, Any]]  # first cells of a row, and a part of a report
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
}  # cells of a row on a part, or on all parts
BRIEF: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "ended": lambda row: NONE if row["episodes"] == row["planned"] else write_episodes(row),
    "success": COLUMNS["success"],
    "score": partial(_write_middle, "score"),
    "norm.": partial(_write_middle, "normalized"),
    "sight": partial(_write_middle, "sight_score"),
    **{name: COLUMNS[name] for name in ("invalid", "turns", "cost")},
}  # the same for a terminal of 80 columns: no interval but that of success
READINGS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "invalid": lambda row: write_kinds(row["invalid"]["codes"]),
    "forms": lambda row: write_kinds(row["forms"]),
    "other": lambda row: write_kinds(_count_others(row)),
    "success where valid": lambda row: write_all_valid(row["all_valid"]),
}  # how the replies of a part were read
OTHERS = {"refused": "refused", "empty": "empty reply", "cut": "cut off"}  # without a failure code
PROTOCOL_NOTE = (
    "MageBench's protocol: the mean of the benchmark's own score (of the return, where there is "
    "none) over items and repeats, the half-width of its 95 % interval between repeats, and the "
    "expected best of n repeats."
)
SIGHT_NOTE = (
    "The same episodes were played again without their pictures: plain grey ones, or those of "
    "another episode. What is lost then was seen."
)
READING_NOTE = (
    "Replies of the model from which no legal action was read, by the parser's failure code; the "
    "forms by which the others were read; and all replies that were refused, empty or cut off, or "
    "that came as a native tool_call. Not the model's, and not invalid: reasoning_only (thoughts "
    "without a text), filtered, refused (a prompt that the server does not take). Last, success among "
    "the episodes without an invalid reply, which are no random choice: a long episode has more "
    "replies that can be invalid."
)


def list_rows(report: Mapping[str, Any]) -> tuple[Row, list[Row]]:
    """Return headers and cells of the table of parts."""
    parts = {**report["parts"], "over all": report["overall"]}
    return _fill(["part"], [([key], part) for key, part in parts.items()])


def list_brief(report: Mapping[str, Any]) -> tuple[Row, list[Row]]:
    """Return headers and cells of the terminal's table: a row for each part, then the mean."""
    parts = [([key.removeprefix("vlgym/")], part) for key, part in report["parts"].items()]
    return _fill(["environment"], [*parts, (["mean"], report["overall"])], BRIEF)


def list_results(reports: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[Row, list[Row]]:
    """Return headers and cells of one table of named reports: over all, then part by part.

    Over all, more parts are first, then the higher success; in a part, the best return.
    """

    def rank(named: tuple[str, Mapping[str, Any]]) -> tuple[int, float]:
        overall = named[1]["overall"]
        return -overall["parts"], -overall.get("success", {"mean": 0.0})["mean"]

    reports = sorted(reports, key=rank)
    words = {True: "over all, verified", False: "over all"}  # not in the column with folders' names
    rows = [([words[bool(each.get("verified"))], name], each["overall"]) for name, each in reports]
    for key in dict.fromkeys(key for _, report in reports for key in report["parts"]):
        named = [(name, report["parts"].get(key)) for name, report in reports]
        part_rows = [([key, name], part) for name, part in named if part]
        rows += sorted(part_rows, key=lambda row: -row[1]["return"]["mean"])
    return _fill(["part", "run"], rows)


def list_readings(names: Row, rows: Sequence[Headed]) -> tuple[Row, list[Row]]:
    """Return headers and cells of the table on how replies were read (see `describe_replies`).

    Rows whose replies were all valid, of the form asked for and of no other kind are left out.
    """
    unusual = [
        (head, row)
        for head, row in rows
        if row["invalid"]["codes"] or row["forms"].keys() - {row.get("asked")} or _count_others(row)
    ]
    return _fill(names, unusual, READINGS)


def _fill(names: Row, rows: Sequence[Headed], writers: Any = COLUMNS) -> tuple[Row, list[Row]]:
    """Return headers and cells of a table; a column in which nothing has a value is left out."""
    columns = {name: [write(row) for _, row in rows] for name, write in writers.items()}
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


def explain_foreign(foreign: Mapping[str, Any]) -> str:
    """Return in a sentence how many replies are not the model's."""
    kinds = foreign["statuses"]
    return f"{sum(kinds.values())} of {foreign['replies']} replies are not the model's: {write_kinds(kinds)}."


def list_tables(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return title, headers, rows and note of the tables that follow the results and have rows."""
    parts = {key: part for key, part in report["parts"].items() if "invalid" in part}

    # Repeats as MageBench reports them, where a part has any.
    protocol = [
        [
            key, f"{row['items']} x {row['repeats']}",
            write_mean({"mean": row["mean"], "se": row.get("half_width")}),
            ", ".join(map(write_number, row["best_of"])), row.get("instruction_error", "followed"),
        ]
        for key, part in parts.items()
        if (row := part.get("benchmark"))
    ]  # fmt: skip

    # Controls against the parts that they belong to.
    sight = [
        [
            row["control"], str(row["pairs"]), write_number(row["success"]["shown"]),
            write_number(row["success"]["control"]), write_interval(row["success"], "difference", signed=True),
            write_interval(row["return"], "difference", signed=True), explain_sight(row),
        ]
        for row in report["sight"]
        if "success" in row
    ]  # fmt: skip

    # Most runs have rows for one of these tables, or for none.
    headers, readings = list_readings(["part"], [([key], part) for key, part in parts.items()])
    tables: list[tuple[str, Sequence[str], list[Row], str]] = [
        ("Repeats", ("part", "items x repeats", "score", "best of 1, 2, ...", "instructions"), protocol, PROTOCOL_NOTE),
        (
            "How much needs sight",
            ("control", "pairs", "with pictures", "without", "difference", "of return", ""), sight, SIGHT_NOTE,
        ),
        ("How replies were read", headers, readings, READING_NOTE),
    ]  # fmt: skip
    names = ("title", "headers", "rows", "note")
    return [dict(zip(names, table, strict=True)) for table in tables if table[2]]


def _count_others(part: Mapping[str, Any]) -> dict[str, int]:
    """Return how many replies were of each kind without a failure code."""
    counts = {words: round(part[name] * part["replies"]) for name, words in OTHERS.items()}
    counts["environment failed"] = part["env_errors"]
    counts |= {f"status {status}": count for status, count in part.get("statuses", {}).items()}
    return {words: count for words, count in counts.items() if count}
