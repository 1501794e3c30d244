"""Level files: plain-text XSB boards, each with the lines `Title:`, `Solution:` and `Checksum:` that exist.

Solutions and checksums are verified. A line that begins with a semicolon is a comment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vlgym.errors import UserError

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
