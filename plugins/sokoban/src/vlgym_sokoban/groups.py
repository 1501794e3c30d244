"""The eight groups of MageBench-Sokoban: gym-sokoban's sizes, boxes and limits, and shipped levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from vlgym.errors import check_choice

from .level import Level
from .xsb import read_levels


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
