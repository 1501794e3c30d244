"""The parts that integrations share: a turn's message, and its row of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image as PILImage

from ..types import Image

TurnRow = dict[str, Any]


def show_turn(image: Image, text: str) -> list[dict[str, Any]]:
    """Return the parts of a message: `{"type": "image", "image": PIL image}` and the text."""
    return [{"type": "image", "image": PILImage.fromarray(image)}, {"type": "text", "text": text}]


def make_row(reward: Any, info: Mapping[str, Any]) -> TurnRow:
    """Return a turn's `reward`, `success` so far, and its reply's `form` and `invalid`."""
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
