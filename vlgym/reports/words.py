"""Format of a report's numbers, the same on the terminal and on the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NONE = "–"
"""Stands for a missing value."""

LONGEST = 60_000  # characters of a text in one piece


def write_number(value: float | None, digits: int = 2, *, signed: bool = False) -> str:
    """Return a number with `digits` digits after the point; `NONE` for none. There is no minus zero."""
    if value is None:
        return NONE
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def write_interval(value: Mapping[str, Any] | None, name: str = "mean", *, signed: bool = False) -> str:
    """Return `0.53 [0.43, 0.63]` of a mapping with `low` and `high`; the mean alone where these are missing."""
    if value is None:
        return NONE
    middle = write_number(value[name], signed=signed)
    ends = write_ends(value, signed=signed)
    return f"{middle} {ends}" if ends else middle


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
    """Return a p value to three digits after the point."""
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def write_episodes(row: Mapping[str, Any]) -> str:
    """Return how many episodes ended, and of how many where some are missing."""
    ended, planned = row["episodes"], row["planned"]
    return write_count(ended) if ended == planned else f"{write_count(ended)} of {write_count(planned)}"


def split_reply(reply: str, span: Sequence[int] | None) -> list[tuple[str, bool]]:
    """Return the pieces of a reply and whether each is what was read as the action."""
    start, end = span if span is not None and 0 <= span[0] <= span[1] <= len(reply) else (len(reply), len(reply))
    pieces = [(reply[:start], False), (reply[start:end], True), (reply[end:], False)]
    return [(text, marked) for text, marked in pieces if text]


def shorten(text: str, longest: int = LONGEST) -> str:
    """Return the text, or its beginning and its end where it has more characters than a page shows."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
