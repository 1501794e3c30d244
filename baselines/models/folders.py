"""Folders of models and of adapters: written whole, never over something else, with the limits of their training.

Without these an evaluation would give a model other limits than those it learnt with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vlgym.errors import UserError, check_writable
from vlgym.files import CHECKSUMS, check_files, list_folder, write_whole

FILE = "vlgym.json"
EVALUATION = "evaluation.json"  # next to a model that was chosen by its scores: the scores
MOST_TEMPERATURE = 100.0
NEW_TOKENS = 128  # longest reply where neither an option, a warm start nor the model's own training says


def check_whole(folder: Path) -> None:
    """Raise `UserError` where a file of a folder is not what its checksums say; one without checksums passes."""
    if (folder / CHECKSUMS).is_file():
        try:
            check_files(folder)
        except ValueError as error:
            raise UserError(
                f"--model {folder} is damaged: {error}. Save the model again; if you changed that file yourself, "
                f"delete {CHECKSUMS} there."
            ) from None


def write_notes(folder: Path, notes: Mapping[str, Any]) -> None:
    """Write JSON data into a folder: the name of each file -> its data."""
    for name, data in notes.items():
        write_whole(folder / name, json.dumps(data, indent=2, default=str))


def check_replaceable(folder: Path, name: str, files: Sequence[str], config: str, what: str) -> None:
    """Check, before any work, that a folder can be written to: new, empty, or an older one of its kind.

    Args:
        folder: where; name: the option that says so.
        files: patterns of the names that such a folder may hold; config: the one that it must hold.
        what: what the folder is for, in words: "model", "adapter".

    Raises:
        UserError: it holds something else, or cannot be written to.
    """
    check_writable(name, folder)
    held = [path.name for path in list_folder(folder)]
    strange = [file for file in held if not any(fnmatch(file, part) for part in files)]
    if strange or (held and config not in held) or folder.is_file():
        raise UserError(
            f"{name} {folder} holds {', '.join(strange[:3]) or 'files'}, which is no {what}'s; choose a new or empty "
            f"folder for the {what}."
        )


# ---- limits of a training --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits and prompt layout of a model's training, by the names of its options; `None` where that left it open."""

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
