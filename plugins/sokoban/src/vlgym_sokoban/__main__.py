"""`python -m vlgym_sokoban FILE`: draw levels into a file ahead of training."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vlgym.env.seeding import SPLITS, episode_seed
from vlgym.errors import UserError
from vlgym.files import write_whole

from .generator import LevelGenerator, RoomSize
from .groups import GROUPS, get_group, write_levels
from .package import VERSION


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the levels of a split's episodes; return the exit status."""
    summary = "Draw Sokoban levels into an XSB file."
    parser = argparse.ArgumentParser(prog="python -m vlgym_sokoban", description=summary)
    parser.add_argument("file", type=Path, help="file to write; give it to the environment as level_file")
    parser.add_argument("--group", default="small-v0", help=f"one of {', '.join(GROUPS)}")
    parser.add_argument("--split", default="train", choices=SPLITS)
    parser.add_argument("--count", type=int, default=100, help="number of levels")
    chosen = parser.parse_args(arguments)

    # The levels of the episodes' seeds, so that a file stands for them.
    try:
        group = get_group(chosen.group)
        generator = LevelGenerator(RoomSize(group.rows, group.columns, group.boxes, group.gen_steps))
        levels = []
        for index in range(chosen.count):
            rng = np.random.default_rng(episode_seed("vlgym/Sokoban-v0", chosen.split, index))
            level = generator.draw(rng, chosen.split)
            levels.append(replace(level, title=f"{group.name}/{chosen.split}/{index}"))
        kind = f"group {group.name}, split {chosen.split}"
        comment = f"{len(levels)} levels of {kind}, drawn with gym-sokoban {VERSION}."
        write_whole(chosen.file, write_levels(levels, comment))
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(levels)} levels written to {chosen.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
