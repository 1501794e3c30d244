"""Scenarios: places of 22 players and the ball, and endings, read from YAML.

All places are pitch coordinates: x from -1 (our goal line) to 1 (theirs), y from -0.42 (top
touchline of the picture) to 0.42. We attack to the right.
"""

from __future__ import annotations

import functools
import re
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from vlgym.errors import UserError, check_choice, check_number, nearest
from vlgym.registry.limited_yaml import read_fields, read_yaml

from .plugin import GROUPS, MAGEBENCH, PACKAGE

ROLES = ("GK", "CB", "LB", "RB", "DM", "CM", "LM", "RM", "AM", "CF")  # in the engine's order
LENGTH_X, LENGTH_Y = 54.4, 83.6  # metres per unit of x and of y in the engine
METRES = np.array([LENGTH_X, LENGTH_Y])
FOLDER = Path(__file__).parent / "scenarios"


@dataclass(frozen=True)
class Player:
    """A player's start. A `lazy` one does not move; an agent may get a `controllable` one."""

    role: str
    x: float
    y: float
    lazy: bool = False
    controllable: bool = True


@dataclass(frozen=True)
class Scenario:
    """One situation."""

    name: str  # unique in its file
    ball: tuple[float, float]
    left: tuple[Player, ...]  # our players, the goalkeeper first
    right: tuple[Player, ...]  # the opponents likewise
    title: str = ""  # in words
    duration: int = 400  # frames, ten a second
    left_difficulty: float = 1.0  # skill of our engine-led players, 0 to 1
    right_difficulty: float = 0.0  # skill of the opponents
    offsides: bool = False
    end_on_score: bool = True
    end_on_out_of_play: bool = True  # or a foul
    end_on_possession_change: bool = True
    deterministic: bool = False  # the engine's seed is always the same
    second_half: int | None = None  # frame of its beginning
    swap_sides: bool = False  # half of the seeds exchange the teams' places (both kick off)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-able data; `from_dict` reads it back."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        teams = {side: [list(astuple(player)) for player in data[side]] for side in ("left", "right")}
        return data | {"ball": list(self.ball)} | teams

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Scenario:
        """Build from `to_dict`'s form."""
        teams = {side: tuple(Player(*player) for player in data[side]) for side in ("left", "right")}
        return cls(**{**data, **teams, "ball": tuple(data["ball"])})

    def swapped(self) -> Scenario:
        """Return the situation with the teams' places exchanged by a half turn of the pitch."""
        left, right = (tuple(replace(p, x=-p.x, y=-p.y) for p in team) for team in (self.right, self.left))
        return replace(self, left=left, right=right, ball=(-self.ball[0], -self.ball[1]))

    def jittered(self, rng: np.random.Generator, metres: float) -> Scenario:
        """Return the situation with all but keepers and ball carrier moved by up to `metres`."""
        carrier = min(self.left, key=lambda p: distance((p.x, p.y), self.ball))

        def move(p: Player) -> Player:
            dx, dy = rng.uniform(-metres, metres, size=2)
            if p.role == "GK" or p is carrier:
                return p
            x, y = np.clip(p.x + dx / LENGTH_X, -1, 1), np.clip(p.y + dy / LENGTH_Y, -0.42, 0.42)
            return replace(p, x=float(x), y=float(y))

        return replace(self, left=tuple(map(move, self.left)), right=tuple(map(move, self.right)))


def distance(a: Any, b: Any) -> float:
    """Return the distance of two places in metres."""
    return float(np.hypot((a[0] - b[0]) * LENGTH_X, (a[1] - b[1]) * LENGTH_Y))


def lane_clearance(start: NDArray[np.float64], end: NDArray[np.float64], opponents: NDArray[np.float64]) -> float:
    """Return the metres from the segment `start`-`end` to the nearest opponent, `[n, 2]`.

    The first metre is left out: an opponent at the passer's back does not close a lane.
    """
    a, b, p = start * METRES, end * METRES, opponents * METRES
    if len(p) == 0:
        return float("inf")
    way = b - a
    length = float(np.hypot(*way))
    if length < 1e-6:
        return float(np.min(np.hypot(*(p - a).T)))

    # The points of the segment that are nearest to the opponents.
    along = np.clip((p - a) @ way / length, min(1.0, length), length)
    nearest = a + along[:, None] * (way / length)
    return float(np.min(np.hypot(*(p - nearest).T)))


def get_scenario(name: str) -> Scenario:
    if name in PACKAGE:
        return read_file(FOLDER / "package.yaml")[name]
    if name in MAGEBENCH:
        return read_file(FOLDER / f"region{name[1]}.yaml")[name]
    raise UserError(
        f"There is no scenario {name!r}. Known: R1_P_1 to R9_R_4, {len(PACKAGE)} names of the package "
        "(academy_corner, ...), or any, mini, package to draw one by the seed; "
        f"scenario_file= loads your own.{nearest(str(name), (*MAGEBENCH, *PACKAGE, *GROUPS))}"
    )


@functools.lru_cache(maxsize=16)
def read_file(path: Path) -> dict[str, Scenario]:
    """Return the scenarios of a YAML file by name; shared, so treat as read-only."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read: {error}. Give the path of a YAML file."
        raise UserError(f"The scenario file {path} {reason}") from None
    return parse_scenarios(text, str(path))


def parse_scenarios(text: str, source: str) -> dict[str, Scenario]:
    """Return the scenarios of a YAML text by name, in its order; `source` is named in messages."""
    try:
        data = read_yaml(text, most_characters=500_000)
    except yaml.YAMLError as error:
        raise UserError(f"{source}: not valid YAML: {error}.") from None
    situations = read_fields(data, source, ("scenarios",), ("scenarios",))["scenarios"]
    if not isinstance(situations, dict) or not situations:
        raise UserError(f"{source}: scenarios must be a mapping of names to situations.")
    return {name: _read_scenario(name, value, f"{source}: {name}") for name, value in situations.items()}


def _read_scenario(name: Any, value: Any, where: str) -> Scenario:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,79}", name):
        raise UserError(f"{where}: the name is not usable; use letters, digits, _ . and - (80 at most).")
    known = {item.name: item.default for item in fields(Scenario) if item.name != "name"}
    values = dict(read_fields(value, where, tuple(known), ("ball", "left", "right")))

    # The kind of a value follows from its name or from the default.
    for key, entry in values.items():
        place = f"{where}: {key}"
        if key == "ball":
            values[key] = _read_place(entry, place)
        elif key in ("left", "right"):
            values[key] = _read_team(entry, place)
        elif key == "title":
            values[key] = str(entry)
        elif key.endswith("_difficulty"):
            check_number(place, entry, 0, 1)
            values[key] = float(entry)
        elif isinstance(known[key], bool):
            if not isinstance(entry, bool):
                raise UserError(f"{place} is {entry!r:.60}; give true or false.")
        elif key == "duration" or entry is not None:
            check_number(place, entry, 1, 100_000)
            if not isinstance(entry, int):
                raise UserError(f"{place} is {entry!r}; give a whole number of frames.")

    # The agent needs somebody to play.
    if not any(player.controllable for player in values["left"]):
        raise UserError(f"{where}: no player of ours is controllable; leave out controllable=false for one.")
    return Scenario(name=name, **values)


def _read_team(value: Any, where: str) -> tuple[Player, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 11:
        raise UserError(f"{where}: a list of 1 to 11 players is needed here.")
    players = tuple(_read_player(player, f"{where}, player {number}") for number, player in enumerate(value, 1))
    if [player.role == "GK" for player in players] != [True] + [False] * (len(players) - 1):
        raise UserError(f"{where} needs one goalkeeper (GK), named first; begin the list with [GK, x, y].")
    return players


def _read_player(value: Any, where: str) -> Player:
    sized = isinstance(value, list) and 3 <= len(value) <= 5
    if not sized or not all(isinstance(flag, bool) for flag in value[3:]):
        wanted = "[role, x, y], and then true or false for lazy, controllable"
        raise UserError(f"{where} is {value!r:.60}; write {wanted}.")
    role = check_choice(f"{where}: role", value[0], ROLES)
    return Player(role, *_read_place(value[1:3], where), *value[3:])


def _read_place(value: Any, where: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise UserError(f"{where} is {value!r:.60}; write [x, y].")
    check_number(f"{where}: x", value[0], -1, 1)
    check_number(f"{where}: y", value[1], -0.42, 0.42)
    return float(value[0]), float(value[1])
