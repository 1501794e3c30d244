"""The plugin's specs and its parts of the MageBench suites; importing this module imports no environment code."""

from __future__ import annotations

from vlgym.hookspecs import hookimpl
from vlgym.probes import Probe
from vlgym.spec import EnvSpec
from vlgym.suites import SuitePart

from .published import MINI, SOLUTION_STEPS

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
        Probe("another group, in symbols too", ("@oracle",) * 4, {"level": 1}, {"group": "v1", "grid_text": True}),
    ),
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [SOKOBAN]


@hookimpl
def vlgym_suites() -> list[SuitePart]:
    """MageBench's 182 levels, and the 20 of its mini set; three repeats of each, as published."""
    every = tuple((group, index) for group, lengths in SOLUTION_STEPS.items() for index in range(len(lengths)))
    return [
        SuitePart(
            suite=name,
            env_id=SOKOBAN.id,
            items=tuple({"group": group, "level": index} for group, index in chosen),
            repeats=3,
            planners=("global", "online"),
        )
        for name, chosen in (("magebench", every), ("magebench-mini", MINI))
    ]
