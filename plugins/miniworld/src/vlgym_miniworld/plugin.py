"""The cards of MiniWorld's 23 environments, and of the newer versions of the small ones.

Listing them imports neither MiniWorld nor OpenGL.
"""

from dataclasses import replace
from typing import Any

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe

PACKAGES = ("libegl1", "libegl-mesa0", "libgl1", "libgl1-mesa-dri", "libglu1-mesa")
REFERENCES = ("https://arxiv.org/abs/2306.13831", "https://miniworld.farama.org")
BOX_RULE = "the robot came near the red box within the limit"

_SKILLS = ("navigation", "3d", "first-person")
_FORWARD = ("move forward",) * 30
_PROBES = (
    Probe("steps and turns", ("turn left", *_FORWARD[:12], "turn right", "turn right", *_FORWARD), index=1),
    Probe("randomised looks", ("turn left", "move forward", "turn right"), kwargs={"domain_rand": True}, index=2),
)

_COMMON: dict[str, Any] = {
    "family": "miniworld",
    "reward_range": (0.0, 1.0),
    "success_rule": BOX_RULE,
    "skills": _SKILLS,
    "interaction": ("a turn, a step or a deed", "a room in first person", "where it has looked"),
    "oracle": "planner",
    "oracle_success": 0.98,
    "system_requirements": PACKAGES,
    "references": REFERENCES,
    "probes": _PROBES,
    "blind": ("vlgym_miniworld.blind:Wanderer", "vlgym_miniworld.blind:Circler"),
}


def _card(name: str, module: str, summary: str, max_turns: int, difficulty: str, **fields: Any) -> EnvSpec:
    return EnvSpec(
        id=f"vlgym/{name}-v0",
        entry_point=f"vlgym_miniworld.{module}:{name}",
        summary=summary,
        max_turns=max_turns,
        difficulty=difficulty,
        **{**_COMMON, **fields},
    )


SPECS = (
    _card("Hallway", "rooms", "walk down a hallway to the red box", 250, "easy"),
    _card(
        "OneRoom", "rooms", "find the red box in a room of 10 x 10 m", 180, "easy",
        probes=(
            *_PROBES,
            Probe("VL-DAC's turns and its last reward", ("turn left",) * 128, kwargs={"compat": "vldac"}, index=1),
        ),
    ),
    _card("OneRoomS6", "rooms", "find the red box in a room of 6 x 6 m", 100, "easy"),
    _card("OneRoomS6Fast", "rooms", "find the red box in a room of 6 x 6 m with large steps", 50, "easy"),
    _card("FourRooms", "rooms", "find the red box in four rooms in a ring", 250, "medium"),
    _card("WallGap", "rooms", "go through a gap in a wall to the red box", 300, "medium"),
    _card(
        "Sidewalk", "rooms", "walk along a sidewalk to the red box without stepping into the street", 150, "easy",
        success_rule="the robot came near the red box within the limit without entering the street first",
        probes=(*_PROBES, *(Probe("into the street", (f"turn {way}",) * 6 + _FORWARD) for way in ("left", "right"))),
    ),
    _card("TMaze", "mazes", "find the red box in one of the arms of a T", 280, "medium"),
    _card("TMazeLeft", "mazes", "find the red box in the left arm of a T", 280, "medium"),
    _card("TMazeRight", "mazes", "find the red box in the right arm of a T", 280, "medium"),
    _card("YMaze", "mazes", "find the red box in one of the arms of a Y", 280, "medium"),
    _card("YMazeLeft", "mazes", "find the red box in the left arm of a Y", 280, "medium"),
    _card("YMazeRight", "mazes", "find the red box in the right arm of a Y", 280, "medium"),
    _card("Maze", "mazes", "find the red box in a maze of 8 x 8 cells", 1536, "hard"),
    _card("MazeS2", "mazes", "find the red box in a maze of 2 x 2 cells", 96, "medium"),
    _card("MazeS3", "mazes", "find the red box in a maze of 3 x 3 cells", 216, "hard"),
    _card("MazeS3Fast", "mazes", "find the red box in a maze of 3 x 3 cells with large steps", 300, "medium"),
    _card(
        "Sign", "mazes", "read a sign, then touch the object of its color and of the shape asked for", 20, "hard",
        reward_range=(-1.0, 1.0),
        success_rule="the first object touched has the shape of the instructions and the color of the sign",
        skills=(*_SKILLS, "reading", "memory"),
        references=("https://arxiv.org/abs/2008.02790", *REFERENCES),
        probes=tuple(
            Probe("the nearest thing in some direction", ("turn left",) * turns + _FORWARD[:12], index=turns)
            for turns in range(3)
        ),
    ),
    _card(
        "ThreeRooms", "objects", "find a named thing in three rooms", 400, "medium",
        success_rule="the robot came near the named thing within the limit",
        skills=(*_SKILLS, "instruction"),
    ),
    _card(
        "RoomObjects", "objects", "go to the named one of three things in a room", 200, "medium",
        success_rule="the robot came near the named thing within the limit",
        skills=(*_SKILLS, "instruction"),
    ),
    _card(
        "PickupObjects", "objects", "pick up five objects in a room", 400, "hard",
        success_rule="all five objects were picked up within the limit",
        skills=(*_SKILLS, "manipulation"),
    ),
    _card(
        "PutNext", "objects", "carry the red box to the yellow box", 250, "hard",
        success_rule="the red box lies near the yellow box, not carried, within the limit",
        skills=(*_SKILLS, "manipulation"),
    ),
    _card(
        "CollectHealth", "objects", "stay alive by picking up health kits", 1000, "hard",
        reward_range=(-100.0, 2.0),
        success_rule="the robot is alive after max_turns steps of the world",
        oracle_success=0.8,
        skills=(*_SKILLS, "survival"),
        probes=(
            *_PROBES,
            Probe("no kit, no life", ("turn left",) * 60, index=3),
            Probe("death at the last step", ("turn left",) * 50, kwargs={"max_turns": 50}, index=3),
        ),
    ),
)  # fmt: skip

# The newer versions of the small worlds: title -> metres between robot and box at the start, and
# turns. They are enough for the oracle's longest ways, and too few to come upon the box by wandering.
_FAR_STARTS: dict[str, tuple[float, int]] = {
    "Hallway": (5.0, 120),
    "OneRoom": (4.5, 120),
    "OneRoomS6": (3.0, 60),
    "OneRoomS6Fast": (3.5, 14),
    "MazeS2": (3.5, 80),
    "MazeS3": (5.0, 180),
    "MazeS3Fast": (5.0, 60),
}
ASIDE = 45.0  # least degrees to the box at their start; a square picture shows 30 to each side

_ROOM_LEVELS = (
    "4 x 4 m, box at least 2 m away, anywhere",
    "6 x 6 m, box at least 3 m away, not faced",
    "10 x 10 m, box at least 4.5 m away, not faced",
    "10 x 10 m, three boxes of other colours",
    "12 x 12 m, five boxes of other colours, box at least 6.5 m away",
    "14 x 14 m, eight boxes of other colours, box at least 8.5 m away",
)
_LEVELS = {
    "OneRoom": _ROOM_LEVELS,
    "OneRoomS6Fast": _ROOM_LEVELS,
    "MazeS3Fast": (
        "2 x 2 cells, box at least 1.8 m away, anywhere",
        "2 x 2 cells, box at least 4 m away, not faced",
        "3 x 3 cells, box at least 5 m away, not faced",
        "4 x 4 cells, box at least 6.5 m away, not faced",
        "5 x 5 cells, box at least 8 m away, not faced",
        "6 x 6 cells, box at least 9.75 m away, not faced",
    ),
}


def _looked_for(spec: EnvSpec) -> EnvSpec:
    distance, turns = _FAR_STARTS[spec.title]
    return replace(
        spec,
        id=f"vlgym/{spec.title}-v1",
        summary=f"{spec.summary}, from a start that is away from it and does not face it",
        max_turns=turns,
        kwargs={"min_bearing": ASIDE, "min_distance": distance},
        random_success_below=0.2,
        probes=_PROBES,
        levels=_LEVELS.get(spec.title, ()),
    )


SPECS_1 = tuple(_looked_for(spec) for spec in SPECS if spec.title in _FAR_STARTS)

_PUBLISHED = tuple(
    replace(spec, replaced_by=f"vlgym/{spec.title}-v1") if spec.title in _FAR_STARTS else spec for spec in SPECS
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    return [*_PUBLISHED, *SPECS_1]
