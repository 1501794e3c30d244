"""Sources of levels: drawn from the seed, shipped, or read from the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vlgym.errors import UserError

from .generator import LevelGenerator, RoomSize
from .groups import get_group, load_group, read_levels
from .level import Level
from .solver import SOLVED, UNSOLVABLE, solve

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
