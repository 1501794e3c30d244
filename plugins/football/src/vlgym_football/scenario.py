"""Scenarios: where 22 players and the ball start, and what ends the episode. Read from YAML, checked, never executed.

Every place is given in pitch coordinates for both teams: x from -1 (our goal line) to 1 (theirs), y from -0.42 (top
touchline of the picture) to 0.42. We attack to the right.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from vlgym.errors import UserError, nearest
from vlgym.limited_yaml import check_yaml

from .names import MAGEBENCH, PACKAGE

ROLES = ("GK", "CB", "LB", "RB", "DM", "CM", "LM", "RM", "AM", "CF")
"""Roles, in the engine's order."""

LENGTH_X, LENGTH_Y = 54.4, 83.6
"""Metres per unit of x and of y in the engine."""

METRES = np.array([LENGTH_X, LENGTH_Y])

FOLDER = Path(__file__).parent / "scenarios"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Player:
    """A player's start: role, place, `lazy` (the engine does not move it), `controllable` (the agent can be given
    it)."""

    role: str
    x: float
    y: float
    lazy: bool = False
    controllable: bool = True


@dataclass(frozen=True)
class Scenario:
    """One situation.

    Attributes:
        name: short name, unique in its file.
        ball: x, y.
        left: our players, the goalkeeper first.
        right: the opponents, the goalkeeper first, in pitch coordinates as well.
        title: the situation in words.
        duration: frames until the end (ten a second).
        left_difficulty: skill of our engine-led players, 0 to 1.
        right_difficulty: skill of the opponents, 0 to 1.
        offsides: whether the offside rule holds.
        end_on_score: a goal ends the episode.
        end_on_out_of_play: ball out of play, or a foul, ends it.
        end_on_possession_change: it ends when the other team takes the ball.
        deterministic: the engine's seed is always the same.
        second_half: frame at which the second half begins, or `None`.
        swap_sides: half of the seeds play with both teams' places exchanged (both teams kick off).
    """

    name: str
    ball: tuple[float, float]
    left: tuple[Player, ...]
    right: tuple[Player, ...]
    title: str = ""
    duration: int = 400
    left_difficulty: float = 1.0
    right_difficulty: float = 0.0
    offsides: bool = False
    end_on_score: bool = True
    end_on_out_of_play: bool = True
    end_on_possession_change: bool = True
    deterministic: bool = False
    second_half: int | None = None
    swap_sides: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-able data; `from_dict` reads it back."""
        teams = {side: [list(astuple(player)) for player in getattr(self, side)] for side in ("left", "right")}
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"ball": list(self.ball)} | teams

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Scenario:
        """Build from `to_dict`'s form."""
        teams = {side: tuple(Player(*player) for player in data[side]) for side in ("left", "right")}
        return cls(**{**data, **teams, "ball": tuple(data["ball"])})

    def swapped(self) -> Scenario:
        """Return the situation with the teams' places exchanged by a half turn of the pitch."""
        turn = [tuple(replace(p, x=-p.x, y=-p.y) for p in team) for team in (self.right, self.left)]
        return replace(self, left=turn[0], right=turn[1], ball=(-self.ball[0], -self.ball[1]))

    def jittered(self, rng: np.random.Generator, metres: float) -> Scenario:
        """Return the situation with every player but the goalkeepers and the one at the ball moved by up to `metres`
        each way."""
        carrier = min(self.left, key=lambda p: distance((p.x, p.y), self.ball))

        def move(p: Player) -> Player:
            dx, dy = rng.uniform(-metres, metres, size=2)
            if p.role == "GK" or p is carrier:
                return p
            return replace(
                p, x=float(np.clip(p.x + dx / LENGTH_X, -1, 1)), y=float(np.clip(p.y + dy / LENGTH_Y, -0.42, 0.42))
            )

        return replace(self, left=tuple(move(p) for p in self.left), right=tuple(move(p) for p in self.right))


def distance(a: Any, b: Any) -> float:
    """Return the distance of two places in metres."""
    return float(np.hypot((a[0] - b[0]) * LENGTH_X, (a[1] - b[1]) * LENGTH_Y))


def lane_clearance(start: NDArray[np.float64], end: NDArray[np.float64], opponents: NDArray[np.float64]) -> float:
    """Return the distance in metres of the nearest opponent to the segment `start`-`end` (all in pitch coordinates;
    opponents `[n, 2]`).

    The first metre is left out: an opponent at the passer's back does not close a lane.
    """
    a, b, p = start * METRES, end * METRES, opponents * METRES
    if len(p) == 0:
        return float("inf")
    way = b - a
    length = float(np.hypot(*way))
    if length < 1e-6:
        return float(np.min(np.hypot(*(p - a).T)))
    along = np.clip((p - a) @ way / length, min(1.0, length), length)
    nearest = a + along[:, None] * (way / length)
    return float(np.min(np.hypot(*(p - nearest).T)))


def get_scenario(name: str) -> Scenario:
    if name in PACKAGE:
        return read_file(FOLDER / "package.yaml")[name]
    if name in MAGEBENCH:
        return read_file(FOLDER / f"region{name[1]}.yaml")[name]
    known = (*MAGEBENCH, *PACKAGE, "any", "mini", "package")
    raise UserError(
        f"There is no scenario {name!r}. Known: R1_P_1 to R9_R_4, {len(PACKAGE)} names of the package "
        "(academy_corner, ...), or any, mini, package to draw one by the seed; "
        f"scenario_file= loads your own.{nearest(str(name), known)}"
    )


@functools.lru_cache(maxsize=16)
def read_file(path: Path) -> dict[str, Scenario]:
    """Return the scenarios of a YAML file by name; shared, so treat as read-only."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The scenario file {path} cannot be read: {error}. Give the path of a YAML file.") from None
    return parse_scenarios(text, str(path))


def parse_scenarios(text: str, source: str) -> dict[str, Scenario]:
    """Return the scenarios of a YAML text by name, in its order; `source` is named in messages."""
    try:
        check_yaml(text, most_characters=500_000)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise UserError(
            f"{source}:{mark.line + 1 if mark else 1}: not valid YAML: {getattr(error, 'problem', error)}."
        ) from None
    reader = _Reader(source)
    if root is None:
        raise UserError(f"{source}:1: the file is empty; it needs a mapping `scenarios:` of names.")
    top = dict(reader.mapping(root, ("scenarios",), required=("scenarios",)))
    found = {name: reader.scenario(name, node) for name, node in reader.mapping(top["scenarios"])}
    if not found:
        raise reader.error(top["scenarios"], "scenarios is empty", "add at least one")
    return found


class _Reader:
    """Turns YAML nodes into scenarios; every complaint names file and line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._constructor = yaml.constructor.SafeConstructor()

    def error(self, node: yaml.Node, finding: str, fix: str) -> UserError:
        return UserError(f"{self.source}:{node.start_mark.line + 1}: {finding}; {fix}.")

    def mapping(
        self, node: yaml.Node, known: tuple[str, ...] | None = None, required: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, "a mapping (name: value) is needed here", "see the shipped files for the form")
        pairs: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value)
            if known is not None and name not in known:
                raise self.error(
                    key, f"unknown key {name!r}", f"use {', '.join(known)}.{nearest(name, known)}".rstrip(".")
                )
            if name in pairs:
                raise self.error(key, f"{name!r} occurs twice", "remove one")
            pairs[name] = value
        missing = [name for name in required if name not in pairs]
        if missing:
            raise self.error(node, f"{', '.join(missing)} missing", "add it")
        return iter(pairs.items())

    def scenario(self, name: str, node: yaml.Node) -> Scenario:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,79}", name):
            raise self.error(node, f"the name {name!r} is not usable", "use letters, digits, _ . and - (80 at most)")
        known = tuple(item.name for item in fields(Scenario) if item.name != "name")
        values: dict[str, Any] = {}
        for key, value in self.mapping(node, known, required=("ball", "left", "right")):
            values[key] = self._value(key, value)
        if not any(p.controllable for p in values["left"]):
            raise self.error(node, f"{name}: no player of ours is controllable", "leave out controllable=false for one")
        return Scenario(name=name, **values)

    def _value(self, key: str, node: yaml.Node) -> Any:
        if key == "ball":
            return self._place(self._items(node, 2, 2))
        if key in ("left", "right"):
            players = tuple(self._player(item) for item in self._items(node, 1, 11))
            if [p.role == "GK" for p in players] != [True] + [False] * (len(players) - 1):
                raise self.error(
                    node, f"{key} needs one goalkeeper (GK), named first", "begin the list with [GK, x, y]"
                )
            return players
        if key == "title":
            return self._scalar(node)
        if key in ("duration", "second_half"):
            if key == "second_half" and self._plain(node) is None:
                return None
            number = self._plain(node)
            if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= 100_000:
                raise self.error(node, f"{key} is {number!r}", "give a whole number of frames from 1 to 100000")
            return number
        if key.endswith("_difficulty"):
            return self._number(node, key, 0.0, 1.0)
        flag = self._plain(node)
        if not isinstance(flag, bool):
            raise self.error(node, f"{key} is {flag!r}", "give true or false")
        return flag

    def _player(self, node: yaml.Node) -> Player:
        items = self._items(node, 3, 5)
        role = self._scalar(items[0])
        if role not in ROLES:
            raise self.error(
                items[0], f"unknown role {role!r}", f"use {', '.join(ROLES)}.{nearest(role, ROLES)}".rstrip(".")
            )
        flags = [self._plain(item) for item in items[3:]]
        if not all(isinstance(flag, bool) for flag in flags):
            raise self.error(
                node, "after role, x and y come lazy and controllable", "give true or false for them, or leave them out"
            )
        return Player(role, *self._place(items[1:3]), *flags)

    def _place(self, items: list[yaml.Node]) -> tuple[float, float]:
        return self._number(items[0], "x", -1.0, 1.0), self._number(items[1], "y", -0.42, 0.42)

    def _items(self, node: yaml.Node, least: int, most: int) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode) or not least <= len(node.value) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            raise self.error(node, f"a list of {count} items is needed here", "ball is [x, y], a player [role, x, y]")
        return node.value

    def _number(self, node: yaml.Node, name: str, low: float, high: float) -> float:
        number = self._plain(node)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not low <= number <= high:
            raise self.error(node, f"{name} is {number!r}", f"give a number from {low:g} to {high:g}")
        return float(number)

    def _scalar(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, "a single value is needed here", "remove the brackets")
        return str(node.value)

    def _plain(self, node: yaml.Node) -> Any:
        self._scalar(node)
        return self._constructor.construct_object(node)
