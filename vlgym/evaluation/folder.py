"""The folder of an evaluation: its plan, its finished episodes, and the resumption of a run.

Episodes are written whole, as they end. A resumed run drops what a kill left behind them, and plays
those episodes again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..env.prompts import PromptBuilder
from ..env.seeding import episode_seed
from ..env_groups import LOCAL, EnvGroup
from ..errors import TrajectoryError, UserError, check_writable
from ..files import LOCK, append_whole, list_folder, lock_folder, open_end, seal, write_whole
from ..play.env_failures import Failure
from ..play.policies import Policy
from ..play.trajectory import (
    HEADER,
    MALFORMED,
    METADATA,
    SEED_RULE,
    TrajectoryWriter,
    assemble_run,
    describe_env,
    describe_policy,
    encode_header,
    find_differences,
    read_header,
    read_numbered,
)
from ..types import StepRecord
from .plan import Part
from .summary import find_wrong_reward

KIND = "evaluation"
SESSIONS = "sessions"
FAILURES = "failures.jsonl"  # a line for each `vlgym.play.env_failures.Failure`


def describe_evaluation(
    parts: Sequence[Part], policy: Policy, *, builders: dict[str, PromptBuilder], group: EnvGroup = LOCAL, **more: Any
) -> dict[str, Any]:
    """Return what an evaluation's numbers depend on, as plain data; makes each part's environment.

    `more` is whatever else belongs to the run; `None` is left out.

    Raises:
        UserError: an environment cannot be made, parts share a name or differ in the split.
    """
    splits = sorted({part.split for part in parts})
    if len(splits) != 1:
        raise UserError(f"A run has one split, this one has {', '.join(splits) or 'no parts'}.")

    # The environment itself says which arguments are in force.
    described: dict[str, Any] = {}
    for part in parts:
        if part.key in described:
            raise UserError(f"Two parts of the plan are {part.key!r}; play them into separate folders.")
        env = part.make(group=group)
        entry = describe_env(env, builders.get(part.key))
        entry |= builders[part.key].describe_additions(entry["prompt_hash"]) if part.key in builders else {}
        env.close()
        setting = {name: value for name, value in vars(part).items() if name != "arguments"}
        extra = {"changed": part.changed, "given": part.arguments or None}
        described[part.key] = {**setting, **extra, "fresh_seeds": part.fresh_seeds or None, **entry}
    return assemble_run(
        described, kind=KIND, policy=describe_policy(policy), split=splits[0], parts=described,
        seeds=SEED_RULE, **more,
    )  # fmt: skip


class EvaluationFolder:
    """Opens a folder for a run, new or resumed, and writes its episodes. A context manager.

    Args:
        session: how it is played this time, for example the command: kept, but not compared.

    Attributes:
        finished: (part, number) of each episode that is on disk.

    Raises:
        UserError: the folder holds something else, another run, or this one while `resume` is not
            set; or another process writes to it. Nothing is overwritten.
    """

    def __init__(self, folder: Path, run: dict[str, Any], *, session: dict[str, Any], resume: bool) -> None:
        self.folder = folder
        if begun := check_folder(folder, resume):
            recorded = {name: value for name, value in read_header(folder).items() if name != SESSIONS}
            if different := find_differences(recorded, json.loads(json.dumps(run))):
                raise UserError(
                    f"--resume: {folder} holds another run. Different: {', '.join(different)}. "
                    "Give the same command, or choose another folder."
                )
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock_folder(folder)

        # Under the lock: bytes that a kill left after the last whole episode are dropped.
        try:
            self.finished, end = _read_finished(folder)
            if (folder / METADATA).exists():
                with open_end(folder / METADATA) as file:
                    file.truncate(end)
            header = read_header(folder) if begun else {**run, SESSIONS: []}
            header[SESSIONS] = [*header[SESSIONS], session]
            write_whole(folder / HEADER, encode_header(header))
            self._writer = TrajectoryWriter(folder, header)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> EvaluationFolder:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._writer.sync()
        finally:
            self._lock.close()

    def write(self, episode: list[StepRecord]) -> None:
        """Write a finished episode; no kill loses it when this has returned."""
        place = (episode[0].part, episode[0].episode)
        if place in self.finished:
            raise TrajectoryError(f"Episode {place[1]} of {place[0]} was played twice.")
        self._writer.write(episode)
        self.finished.add(place)

    def note(self, failure: Failure) -> None:
        """Append a failure to `FAILURES`."""
        append_whole(self.folder / FAILURES, json.dumps(seal(failure)) + "\n")


def check_folder(folder: Path, resume: bool) -> bool:
    """Check that a run may begin or continue in a folder; return whether it holds one."""
    check_writable("--out", folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--out {folder} is a file; name a folder.")

    # A run is never overwritten.
    if (folder / HEADER).exists():
        header = read_header(folder)
        if not isinstance(header, dict) or header.get("kind") != KIND:
            raise UserError(f"--out {folder} holds another kind of run; choose another folder.")
        if not resume:
            raise UserError(f"--out {folder} holds a run already. Continue it with --resume, or choose another.")
        return True
    if any(path.name != LOCK for path in list_folder(folder)):
        raise UserError(f"--out {folder} is not empty and holds no {HEADER}; choose another folder.")
    return False


def count_finished(folder: Path) -> int:
    """Return how many whole episodes a folder holds."""
    return len(_read_finished(folder)[0])


def _read_finished(folder: Path) -> tuple[set[tuple[str, int]], int]:
    """Return the whole episodes of a folder, and the byte after the last of them."""
    if not (folder / METADATA).exists():
        return set(), 0
    episodes = read_episodes(folder, read_header(folder))
    ends = {(episode[0].part, episode[0].episode): end for end, episode in episodes}
    return set(ends), max(ends.values(), default=0)


def read_episodes(
    folder: Path, header: Mapping[str, Any], *, images: bool = False
) -> Iterator[tuple[int, list[StepRecord]]]:
    """Yield each whole episode of a folder (see `read_trajectories`), with the byte after it.

    Raises:
        TrajectoryError: a line is malformed, a picture is missing, a turn or an episode is missing
            or doubled, or the run that `header` describes cannot have had it.
    """
    places = set()
    for end, episode in read_numbered(folder, images=images, unfinished=False):
        try:
            wrong = _find_wrong(header, episode)
        except (*MALFORMED, ArithmeticError, AttributeError) as error:
            raise TrajectoryError(f"{folder / HEADER} is malformed: {type(error).__name__}: {error}.") from None
        place = (episode[0].part, episode[0].episode)
        if wrong or place in places:
            name = f"episode {place[1]!r} of {place[0]}"
            raise TrajectoryError(f"{folder / METADATA}: {name} {wrong or 'is recorded twice'}.")
        places.add(place)
        yield end, episode


def _find_wrong(header: Mapping[str, Any], episode: Sequence[StepRecord]) -> str | None:
    """Return in words what no episode of a run can have, if anything."""
    first, part = episode[0], header["parts"].get(episode[0].part)
    if part is None:
        return "is of no part that run.json names"
    planned = len(part["items"]) * part["episodes"] * part["repeats"]
    if not 0 <= first.episode < planned:
        return f"is not one of the {planned} planned"

    # Place and seed follow from the episode's number.
    index, repeat = divmod(first.episode, part["repeats"])
    index = first.episode if part.get("fresh_seeds") else index
    env_id, seed = part["env_id"], episode_seed(part["env_id"], header["split"], index)
    due = (first.part, env_id, first.episode, repeat, seed)
    for turn, record in enumerate(episode):
        place = (record.part, record.env_id, record.episode, record.repeat, record.seed)
        if (place, record.turn) != (due, turn):
            return (
                f"should have seed {seed}, repeat {repeat} and turn {turn} at its turn {turn}, but has "
                f"seed {record.seed!r}, repeat {record.repeat!r} and turn {record.turn!r}"
            )
        if wrong := find_wrong_reward(env_id, bool(part.get("changed")), record):
            return wrong
    return None
