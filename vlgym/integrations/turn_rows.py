"""One row of plain values for each turn of an episode, which integrations hand over with the return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TurnRow = dict[str, Any]


def make_row(reward: Any, info: Mapping[str, Any]) -> TurnRow:
    """Return a turn's `reward`, `invalid` (the reply was), `form` (by which the reply was read, or `None`) and
    `success` (so far)."""
    return {
        "reward": float(reward),
        "invalid": bool(info["invalid_action"]),
        "form": info["vlgym"]["form"],
        "success": bool(info["success"]),
    }


def measure_rows(rows: Sequence[TurnRow]) -> dict[str, float]:
    """Return `success` and `invalid_turns` of an episode; without a turn both are 0."""
    success = bool(rows) and rows[-1]["success"]
    return {"success": float(success), "invalid_turns": float(sum(row["invalid"] for row in rows))}
