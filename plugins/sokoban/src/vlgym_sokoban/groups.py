"""Level files, and MageBench-Sokoban's eight groups with gym-sokoban's sizes and limits.

A file holds plain-text XSB boards, each with the lines `Title:`, `Solution:` and `Checksum:` that
exist. Solutions and checksums are verified. A line that begins with a semicolon is a comment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from vlgym.errors import UserError, check_choice

from .level import SYMBOLS, Level
from .solver import replay

_FIELDS = ("Title", "Solution", "Checksum")


def read_levels(text: str, source: str = "levels") -> list[Level]:
    """Read all levels of a file."""
    levels: list[Level] = []
    rows: list[str] = []
    fields: dict[str, str] = {}
    begin = 0
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        line = raw.rstrip()
        if line.startswith(";"):
            continue
        name, colon, value = line.partition(":")
        field = colon and name in _FIELDS

        # A blank line, or a board after fields, ends a level.
        if (rows or fields) and (not line or (fields and not field)):
            try:
                levels.append(_build(rows, fields))
            except UserError as error:
                raise UserError(f"{source}, board at line {begin}: {error}") from None
            rows, fields = [], {}
        if not rows and not fields:
            begin = number

        # The line itself belongs to the next one.
        if field:
            fields[name] = value.strip()
        elif line.lstrip()[:1] == "#" or set(line) <= set(SYMBOLS):
            rows += [line] if line else []
        else:
            raise UserError(
                f"{source}, line {number}: {line!r:.60} is neither a board row (# space . $ * @ +), nor Title:, "
                "Solution:, Checksum:, nor a comment (;). Fix the line."
            )
    if not levels:
        raise UserError(f"{source} holds no level; write boards with # (wall), . (target), $ (box), @ (player).")
    return levels


def write_levels(levels: Iterable[Level], comment: str = "") -> str:
    """Return the text of a level file, each level with title, solution and checksum."""
    parts = ["".join(f"; {line}\n" for line in comment.splitlines())] if comment else []
    for level in levels:
        fields = f"Title: {level.title}\nSolution: {level.solution}\nChecksum: {level.checksum()}\n"
        parts.append("\n".join([*level.to_rows(), fields]))
    return "\n".join(parts)


def _build(rows: list[str], fields: dict[str, str]) -> Level:
    if not rows:
        raise UserError(f"{next(iter(fields))} stands without a board; put the board before it.")

    # A checksum or a solution that does not fit shows a damaged board.
    level = Level.from_rows(rows, title=fields.get("Title", ""))
    wanted, solution = fields.get("Checksum"), fields.get("Solution", "")
    if wanted and wanted != level.checksum():
        raise UserError(
            f"the checksum is {wanted}, but the board's is {level.checksum()}. "
            "Restore the board, or write the new checksum if you changed it on purpose."
        )
    if solution and not replay(level, solution).solved:
        raise UserError("the solution leaves a box off target. Fix or remove the Solution line.")
    return replace(level, solution=solution)


@dataclass(frozen=True)
class Group:
    """One group."""

    name: str
    rows: int
    columns: int
    boxes: int
    max_steps: int
    gen_steps: int


_GROUPS = (
    Group("small-v0", 7, 7, 2, 200, 23),
    Group("small-v1", 7, 7, 3, 200, 23),
    Group("v0", 10, 10, 3, 200, 34),
    Group("v1", 10, 10, 4, 120, 34),
    Group("v2", 10, 10, 5, 200, 40),
    Group("large-v0", 13, 11, 3, 300, 43),
    Group("large-v1", 13, 11, 4, 300, 43),
    Group("huge-v0", 13, 13, 5, 300, 50),
)
GROUPS = {group.name: group for group in _GROUPS}
LONGEST_SOLUTION = 50  # steps of a level's shortest solution, and MageBench's Online limit


def get_group(name: str) -> Group:
    return GROUPS[check_choice("group", name, GROUPS)]


@cache
def load_group(name: str) -> tuple[Level, ...]:
    """Return the shipped levels of a group, their checksums verified."""
    source = resources.files(__package__).joinpath("levels", f"{get_group(name).name}.xsb")
    return tuple(read_levels(source.read_text(encoding="utf-8"), source=source.name))
