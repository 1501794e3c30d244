"""The limits of a model's training, in a small file next to its weights, for a later evaluation.

Without it an evaluation would give the model other limits than those it learnt with.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vlgym.errors import UserError

FILE = "vlgym.json"
EVALUATION = "evaluation.json"  # next to a model that was chosen by its scores: the scores
MOST_TEMPERATURE = 100.0
NEW_TOKENS = 128  # longest reply where neither an option, a warm start nor the model's own training says


@dataclass(frozen=True)
class Limits:
    """Limits and prompt layout of a model's training; `None` where that left it open.

    Attributes:
        max_new_tokens: longest reply in tokens.
        image_tokens: most tokens per image.
        history_turns: past turns in the prompt.
        history_images: images in the prompt.
        parser: reply style.
        system: the system message.
        temperature: of the distribution that was trained.
    """

    max_new_tokens: int | None = None
    image_tokens: int | None = None
    history_turns: int | None = None
    history_images: int | None = None
    parser: str | None = None
    system: str | None = None
    temperature: float | None = None

    def note(self) -> dict[str, Any]:
        """Name and content of the file, for a model's folder."""
        return {FILE: asdict(self)}


def read_limits(model: str) -> Limits:
    """Read the limits of a saved model; all open for `tiny`, a Hub name, or a folder without the file.

    Raises:
        UserError: the file is not what `Limits.note` says.
    """
    path = Path(model) / FILE
    if not path.is_file():
        return Limits()
    try:
        data = json.loads(path.read_text())
        limits = Limits(**data)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path} cannot be read ({error}). Delete it to go on with the defaults.") from None
    for name, value in asdict(limits).items():
        if value is not None and not _is_valid(name, value):
            raise UserError(f"{path}: {name} is {value!r}. Delete the file to go on with the defaults.")
    return limits


def _is_valid(name: str, value: Any) -> bool:
    if name in ("parser", "system"):
        return isinstance(value, str)
    if name == "temperature":
        return type(value) in (int, float) and 0 < value <= MOST_TEMPERATURE
    return type(value) is int and value >= 0
