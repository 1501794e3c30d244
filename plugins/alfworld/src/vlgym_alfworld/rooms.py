"""The 120 rooms of AI2-THOR as the alfworld package describes them: receptacles and kinds of object.

A receptacle without a position there (stove burner, coffee machine, toaster) is not in the room.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.errors import UserError

from . import package

_SPELLING = (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_"), (",", "_comma_"))


def mangle(name: str) -> str:
    """Spell an id for PDDL."""
    for sign, word in _SPELLING:
        name = name.replace(sign, word)
    return name


def unmangle(name: str) -> str:
    """Undo `mangle`, up to upper and lower case (the engine writes everything in lower case)."""
    for sign, word in _SPELLING:
        name = name.replace(word, sign)
    return name


def position_of(name: str) -> tuple[float, float, float]:
    """Return x, height and z in metres from a thing's id in either spelling."""
    x, y, z = (float(part) for part in unmangle(name).split("|")[1:4])
    return x, y, z


def pose_of(location: str) -> tuple[int, int, int]:
    """Return grid column, grid row and quarter turns from a location's id in either spelling."""
    column, row, turns = (round(float(part)) for part in unmangle(location).split("|")[1:4])
    return column, row, turns % 4


GRID = 0.25  # distance between two grid points of a room, metres


@dataclass(frozen=True)
class Place:
    """A receptacle and where the agent stands to use it."""

    id: str  # the simulator's, `Type|x|y|z` with metres, basins `Sink|x|y|z|SinkBasin`
    kind: str
    stand: tuple[int, int, int, int]  # grid column, row, quarter turns, degrees downwards


@dataclass(frozen=True)
class Room:
    """One room."""

    scene: int  # number of the floor plan, 1 to 430
    kind: str  # `Kitchen`, `LivingRoom`, `Bedroom` or `Bathroom`
    floor: NDArray[np.int64]  # `[n, 2]`, column and row of the grid points in reach
    places: tuple[Place, ...]  # receptacles with a known position, in the order of their ids
    objects: tuple[str, ...]  # types of object that one of the receptacles can hold, sorted
    has_desk_lamp: bool

    @property
    def kinds(self) -> tuple[str, ...]:
        """Receptacle types that occur in the room, sorted."""
        return tuple(sorted({place.kind for place in self.places}))


@lru_cache(maxsize=128)
def load_room(scene: int) -> Room:
    """Read a room from the package's layout files; a `UserError` for another floor plan."""
    if scene not in package.constants().SCENE_NUMBERS:
        raise UserError(
            f"There is no floor plan {scene!r}; kitchens are 1-30, living rooms 201-230, bedrooms "
            "301-330, bathrooms 401-430."
        )

    # The package's table says which receptacles a game may have, and what each can hold.
    openable = _read(scene, "openable")
    listed = set(_read(scene, "objects"))
    table = package.constants().VAL_RECEPTACLE_OBJECTS
    places = []
    for name, (x, z, turn, tilt) in sorted(openable.items()):
        if kind_of(name) in table:
            stand = (round(x / GRID), round(z / GRID), round(turn / 90) % 4, round(tilt))
            places.append(Place(name, kind_of(name), stand))
    objects = listed & set().union(*(table[place.kind] for place in places))
    scene_types = package.constants().SCENE_TYPE.items()
    kind = next(kind for kind, scenes in scene_types if scene in scenes)
    return Room(scene, kind, load_floor(scene), tuple(places), tuple(sorted(objects)), "DeskLamp" in listed)


@lru_cache(maxsize=128)
def load_floor(scene: int) -> NDArray[np.int64]:
    """Return the reachable grid points of a room: `[n, 2] int`, sorted and read-only."""
    path = package.package_folder() / "gen" / "layouts" / f"FloorPlan{scene}-layout.npy"
    points = np.load(path, allow_pickle=False)
    floor: NDArray[np.int64] = np.unique(np.rint(points / GRID).astype(np.int64), axis=0)
    floor.setflags(write=False)
    return floor


def kind_of(name: str) -> str:
    """Return the type of a thing from its id: the first part, or the last one of a basin."""
    parts = name.split("|")
    return parts[-1] if parts[-1].endswith("Basin") else parts[0]


def scene_numbers(seen: bool) -> tuple[int, ...]:
    """Return the official scenes of training (`seen`) or of the unseen test, sorted."""
    tables = package.constants()
    return tuple(sorted(tables.TRAIN_SCENE_NUMBERS if seen else tables.TEST_SCENE_NUMBERS))


def _read(scene: int, part: str) -> Any:
    path = package.package_folder() / "gen" / "layouts" / f"FloorPlan{scene}-{part}.json"
    return json.loads(path.read_text(encoding="utf-8"))
