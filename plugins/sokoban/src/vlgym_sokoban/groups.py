"""Levels of episodes: from a file, from MageBench-Sokoban's eight groups, or drawn from the seed.

A file holds plain-text XSB boards, each with the lines `Title:`, `Solution:` and `Checksum:` that
exist. Solutions and checksums are verified. A line that begins with a semicolon is a comment.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from vlgym.errors import UserError, check_choice

from .generator import LevelGenerator, RoomSize
from .level import SYMBOLS, Level
from .solver import SOLVED, UNSOLVABLE, replay, solve

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


def get_group(name: str) -> Group:
    return GROUPS[check_choice("group", name, GROUPS)]


@cache
def load_group(name: str) -> tuple[Level, ...]:
    """Return the shipped levels of a group, their checksums verified."""
    source = resources.files(__package__).joinpath("levels", f"{get_group(name).name}.xsb")
    return tuple(read_levels(source.read_text(encoding="utf-8"), source=source.name))


ANY = "any"  # value of `level`: the seed chooses among the shipped levels, or those of the file
SIZE_LIMITS = {"rows": (5, 20), "columns": (5, 20), "boxes": (1, 6), "gen_steps": (5, 200)}
LONGEST_ALLOWED = 300


class LevelSource:
    """Gives the level of each episode; `sizes` holds rows, columns, boxes and gen_steps."""

    def __init__(
        self,
        name: str,
        level: int | str | None,
        level_file: str | None,
        sizes: dict[str, int | None],
        min_solution: int,
        max_solution: int,
    ) -> None:
        group = get_group(name)
        self._group, self._level, self._file = name, level, level_file
        self.max_steps = group.max_steps
        own = {key: value for key, value in sizes.items() if value is not None}
        _check_sizes(own, min_solution, max_solution)
        self._levels: Sequence[Level] = ()
        self.gen_steps: int | None = None
        if level_file is not None:
            self._levels = _read_file(level_file)
        elif level is not None:
            self._levels = load_group(name)

        # Existing levels have their sizes, of which the picture takes the largest.
        if self._levels:
            if own:
                words = "can be given only for drawn rooms: leave out level and level_file, or these."
                raise UserError(f"{', '.join(own)} {words}")
            self.rows = max(level.rows for level in self._levels)
            self.columns = max(level.columns for level in self._levels)
            self.boxes = max(len(level.boxes) for level in self._levels)
            if level not in (None, ANY):
                self.pick(level)
            return

        # A room of its own size has the package's default walk, others the group's.
        self.rows, self.columns = own.get("rows", group.rows), own.get("columns", group.columns)
        self.boxes = own.get("boxes", group.boxes)
        resized = "rows" in own or "columns" in own
        walk = int(1.7 * (self.rows + self.columns)) if resized else group.gen_steps
        self.gen_steps = steps = own.get("gen_steps", walk)
        size = RoomSize(self.rows, self.columns, self.boxes, steps, min_solution, max_solution)
        self._generator = LevelGenerator(size)

    def next_level(self, rng: np.random.Generator, split: str) -> Level:
        """Return the level of the next episode, with a solution."""
        if not self._levels:
            return self._generator.draw(rng, split)
        if self._level in (None, ANY):
            return _with_solution(self._levels[int(rng.integers(len(self._levels)))])
        return self.pick(self._level)

    def pick(self, number: Any) -> Level:
        """Return a level of group or file by its number, with a solution."""
        levels = self._levels or load_group(self._group)
        whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not whole or not 0 <= number < len(levels):
            place = self._file or f"group {self._group}"
            raise UserError(
                f"level={number!r} does not exist: {place} has levels 0 to {len(levels) - 1}; "
                f"{ANY!r} lets the seed choose."
            )
        return _with_solution(levels[int(number)])


def _check_sizes(own: dict[str, int], low: int, high: int) -> None:
    for name, value in own.items():
        least, most = SIZE_LIMITS[name]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise UserError(f"{name}={value!r} must be an integer from {least} to {most}.")
    if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high <= LONGEST_ALLOWED):
        raise UserError(
            f"min_solution={low!r} and max_solution={high!r} must be integers with "
            f"1 <= min_solution <= max_solution <= {LONGEST_ALLOWED}."
        )


def _read_file(path: str) -> list[Level]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read ({error}). Give the path of a plain-text XSB file."
        raise UserError(f"level_file={path!r} {reason}") from None
    stem, levels = Path(path).stem, read_levels(text, source=path)
    return [replace(level, title=level.title or f"{stem}/{index}") for index, level in enumerate(levels)]


def _with_solution(level: Level) -> Level:
    if level.solution:
        return level
    solution = solve(level)
    if solution.status == UNSOLVABLE:
        raise UserError(f"Level {level.title} has no solution (proved). Move a box or a target.")
    if solution.status != SOLVED:
        raise UserError(
            f"Level {level.title} is too hard for the solver ({solution.nodes} nodes). "
            "Add a line 'Solution: ...' under its board."
        )
    return replace(level, solution=solution.moves)
