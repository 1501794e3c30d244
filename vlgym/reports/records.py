"""A run of `vlgym eval` on disk, read and checked: its plan (run.json) and its finished episodes.

What a kill left at the end (a line cut short, an episode without its last turn) is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..env.arguments import fits
from ..env.seeding import SPLITS
from ..env.spec import ID_PATTERN, PLANNERS
from ..errors import GREATEST, TrajectoryError
from ..evaluation import plan, without_images
from ..evaluation.folder import read_episodes
from ..play.controls import PICTURES
from ..play.trajectory import HEADER, READABLE, read_header
from ..types import StepRecord

Episode = list[StepRecord]
FIELDS: dict[str, Callable[[Any], Any]] = {
    "env_id": lambda value: isinstance(value, str) and ID_PATTERN.match(value),
    "planner": lambda value: value in PLANNERS,
    "pictures": lambda value: value in PICTURES,
    "items": lambda value: isinstance(value, list) and value and all(isinstance(each, dict) for each in value),
    "episodes": lambda value: type(value) is int and value > 0,
    "repeats": lambda value: type(value) is int and value > 0,
}  # fields of a part in run.json, and their valid values


@dataclass(frozen=True)
class RecordedPart(plan.Part):
    """One environment of a run, with a planner and a kind of pictures; `entry` is its run.json."""

    entry: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """As run.json says it."""
        return bool(self.entry.get("changed"))


@dataclass(frozen=True)
class RecordedRun:
    """An evaluation run, as read from its records."""

    folder: Path
    header: Mapping[str, Any]
    policy: str
    split: str
    parts: dict[str, RecordedPart]

    @cached_property
    def played(self) -> dict[str, list[Episode]]:
        """Key -> finished episodes by number, without pictures; or `TrajectoryError`."""
        by_part: dict[str, dict[int, Episode]] = {key: {} for key in self.parts}
        for _, episode in read_episodes(self.folder, self.header):
            by_part[episode[0].part][episode[0].episode] = [*map(without_images, episode)]
        return {key: [episodes[at] for at in sorted(episodes)] for key, episodes in by_part.items()}


def read_run(folder: Path | str) -> RecordedRun:
    """Read and check a folder's run.json, or raise `TrajectoryError`."""
    folder = Path(folder)
    if not (folder / HEADER).is_file():
        problem = "holds no run.json" if folder.is_dir() else "is not a folder"
        raise TrajectoryError(f"{folder} {problem}; name the folder that `vlgym eval --out` wrote.")
    header = read_header(folder)
    if not isinstance(header, dict) or header.get("kind") != "evaluation":
        raise TrajectoryError(f"{folder} holds no evaluation; name the folder that `vlgym eval --out` wrote.")
    if header.get("format") not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise TrajectoryError(f"{folder / HEADER} has format {header.get('format')!r}; this version reads {known}.")

    # A run.json from elsewhere may hold anything.
    try:
        policy, split = header["policy"]["name"], header["split"]
        _require(isinstance(policy, str) and policy.isprintable(), "policy.name", policy)
        _require(split in SPLITS, "split", split)
        _require(isinstance(header["parts"], dict) and bool(header["parts"]), "parts", header["parts"])
        parts = {key: _read_part(key, header["parts"][key], split) for key in sorted(header["parts"])}
        if (prices := header.get("prices")) is not None:
            valid = all(fits(each, float) and 0 <= each <= GREATEST for each in (prices["in"], prices["out"]))
            _require(valid, "prices", prices)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise TrajectoryError(f"{folder / HEADER} is malformed: {reason}.") from None
    return RecordedRun(folder, header, policy, split, parts)


def _read_part(key: str, entry: Any, split: str) -> RecordedPart:
    _require(isinstance(entry, dict), key, entry)
    for name, fits_in in FIELDS.items():
        _require(bool(fits_in(entry[name])), f"{key}: {name}", entry[name])
    arguments = entry.get("given", {})
    _require(isinstance(arguments, dict), f"{key}: given", arguments)
    values = {name: entry[name] for name in FIELDS}
    fresh = bool(entry.get("fresh_seeds"))
    part = RecordedPart(**values, split=split, arguments=arguments, fresh_seeds=fresh, entry=entry)
    _require(key == part.key, "the name of a part", key)
    return part


def _require(condition: bool, name: str, value: Any) -> None:
    if not condition:
        raise ValueError(f"{name} is {value!r}"[:200])
