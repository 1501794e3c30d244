"""Make the 182 shipped levels again, in a quarter of an hour on one core.

    python plugins/sokoban/scripts/make_levels.py FOLDER

Levels are drawn from the benchmark split of the generator with a fixed seed per group, so the result is always the
same. A drawn level takes the first free place of its group that asks for its solution length
(`published.SOLUTION_STEPS`), or is dropped. Solutions are shortest.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from vlgym_sokoban.generator import BENCHMARK, LevelGenerator, RoomSize
from vlgym_sokoban.groups import GROUPS, Group
from vlgym_sokoban.level import Level
from vlgym_sokoban.published import SOLUTION_STEPS
from vlgym_sokoban.xsb import write_levels

SOLVER_NODES = {"huge-v0": 60_000}
"""Nodes after which the solver gives a room up, where that is not `MOST_NODES`: it saves half the time."""

MOST_NODES = 400_000


def make_group(group: Group) -> list[Level]:
    """Return the levels of one group."""
    seed = int.from_bytes(hashlib.sha256(f"vlgym Sokoban levels, {group.name}".encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    wanted = SOLUTION_STEPS[group.name]
    size = RoomSize(group.rows, group.columns, group.boxes, group.gen_steps, min(wanted), max(wanted))
    generator = LevelGenerator(size, SOLVER_NODES.get(group.name, MOST_NODES))
    found: dict[int, Level] = {}
    boards: set[str] = set()
    while len(found) < len(wanted):
        level = generator.draw(rng, BENCHMARK)
        free = [place for place, steps in enumerate(wanted) if steps == len(level.solution) and place not in found]
        if free and level.checksum() not in boards:
            boards.add(level.checksum())
            found[free[0]] = replace(level, title=f"{group.name}/{free[0]}")
    return [found[place] for place in range(len(wanted))]


def write_group(group: Group) -> str:
    """Return the text of one group's file."""
    comment = (
        f"Group {group.name}: {group.count} levels of {group.rows} x {group.columns} cells with {group.boxes} boxes.\n"
        "Made with the room generator of gym-sokoban 0.0.6 by scripts/make_levels.py; solutions are shortest (steps)."
    )
    return write_levels(make_group(group), comment)


def main(folder: Path) -> None:
    """Write one file per group."""
    for group in GROUPS.values():
        (folder / f"{group.name}.xsb").write_text(write_group(group), encoding="utf-8")
        print(f"{group.name}: {group.count} levels", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "src" / "vlgym_sokoban" / "levels")
