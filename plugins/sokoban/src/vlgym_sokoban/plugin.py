"""The plugin's specs and its parts of the MageBench suites. It imports no environment code."""

from dataclasses import replace

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe
from vlgym.registry.suites import SuitePart

# Number of levels of MageBench's groups.
LEVELS = {
    "small-v0": 50, "small-v1": 20, "v0": 15, "v1": 24, "v2": 22, "large-v0": 14, "large-v1": 18, "huge-v0": 19,
}  # fmt: skip

# The levels (group, level) of the mini set.
MINI: tuple[tuple[str, int], ...] = (
    *(("small-v0", index) for index in (5, 6, 7, 16, 17, 24, 29, 38, 48)),
    *(("small-v1", index) for index in (1, 4, 14)),
    *(("v0", index) for index in (6, 8)),
    ("v1", 21),
    *(("large-v0", index) for index in (3, 7, 13)),
    *(("huge-v0", index) for index in (7, 13)),
)

_STIR = ("up", "left", "down", "down", "right", "right", "up", "up", "left", "down")
_GYM = ("no operation", *(f"{verb} {way}" for way in (*_STIR, *_STIR) for verb in ("move", "push")))
_NEAR = {"rows": 5, "columns": 6, "boxes": 1}
_CROWD = {"rows": 6, "columns": 6, "boxes": 3}

SOKOBAN = EnvSpec(
    id="vlgym/Sokoban-v0",
    entry_point="vlgym_sokoban.sokoban:Sokoban",
    summary="Push every box onto a target; 182 benchmark levels in eight groups and unlimited drawn ones.",
    family="sokoban",
    max_turns=50,
    reward_range=(-1.1, 10.9),
    success_rule="all boxes are on targets",
    skills=("perception", "spatial reasoning", "planning"),
    interaction=("a step in four directions", "a grid from above", "nothing"),
    planners=("online", "global"),
    difficulty="hard",
    history_turns=5,
    history_images=1,
    image_size=(224, 224),
    pictures="exact",
    random_success_below=0.25,
    references=("MageBench, arXiv 2412.04531", "gym-sokoban 0.0.6"),
    probes=(
        Probe("a box off its target again", ("right", "up", "right", "down", "@oracle..."), {"level": 0}),
        Probe("back to the start", ("right", "up", "right", "restart", "@oracle..."), {"level": 0}, {"restart": True}),
        Probe("moves that push, that do not, and none", _GYM, kwargs={"action_set": "gym", **_NEAR}),
        Probe("boxes against boxes and walls", _STIR * 6, kwargs=_CROWD),
        Probe("the limit of steps", _STIR * 2, kwargs={"max_steps": 6}),
        Probe("a shipped level, from its number", ("@oracle...",), {"level": 3}, {"group": "small-v0"}),
        Probe("another group, in symbols too", ("@oracle",) * 4, {"level": 1}, {"group": "v1", "modality": "both"}),
    ),
)

SOKOBAN_DRAWN = replace(
    SOKOBAN,
    id="vlgym/SokobanDrawn-v0",
    entry_point="vlgym_sokoban.drawn:SokobanDrawn",
    summary="Push every box onto a target, in drawn rooms of six difficulty levels.",
    probes=tuple(Probe("a level", ("@oracle...",), {"level": level}, index=level) for level in range(6)),
    levels=(
        "6 x 6 cells, one box, a solution of 1 to 6 steps",
        "7 x 7 cells, one box, a solution of 6 to 16 steps",
        "7 x 7 cells, two boxes, a solution of 8 to 20 steps",
        "7 x 7 cells, two boxes, a solution of 18 to 35 steps",
        "8 x 8 cells, three boxes, a solution of 25 to 45 steps",
        "9 x 9 cells, three boxes, a solution of 30 to 50 steps",
    ),
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [SOKOBAN, SOKOBAN_DRAWN]


@hookimpl
def vlgym_suites() -> list[SuitePart]:
    """MageBench's 182 levels, and the 20 of its mini set; three repeats of each, as published."""
    every = [(group, index) for group, count in LEVELS.items() for index in range(count)]
    parts = []
    for suite, levels in (("magebench", every), ("magebench-mini", MINI)):
        items = tuple({"group": group, "level": index} for group, index in levels)
        parts.append(SuitePart(suite, SOKOBAN.id, items, repeats=3, planners=("global", "online")))
    return parts
