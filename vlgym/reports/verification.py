"""Replay of a run: the installed environments get the seeds and replies of its records, and each turn is compared.

Checksums find accidental damage alone. A record that was edited and sealed again differs from its replay.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..env import VLEnv
from ..env.arguments import to_plain
from ..errors import FailedError, TrajectoryError, check_writable
from ..evaluation.folder import SESSIONS, read_episodes
from ..evaluation.held_out import ROUNDING
from ..evaluation.plan import Part as Plan
from ..files import find_cache, write_whole
from ..parsers import check_named
from ..play.trajectory import HEADER, METADATA, describe_env, find_differences, without_none
from ..registry import get_registry
from ..types import StepRecord, hash_code
from .records import Part, Run, read_run

CARD = (
    "class",
    "arguments",
    "spec_hash",
    "prompt_version",
    "parser",
    "parser_version",
    "parser_settings",
    "reply_ends",
)
"""Fields of a part in run.json that follow from the installed environment and the part's arguments."""
MOST_OPEN = 8
"""Environments that are kept for their next episode."""


def verify_run(folder: Path | str, advance: Callable[[], object] = lambda: None) -> str:
    """Replay a run's finished episodes, note in the user's cache that they passed, and return a line with the counts.

    Tokens, costs, prompts and the name of the policy are not replayed.

    Args:
        folder: of the run.
        advance: called after each episode.

    Raises:
        FailedError: a turn, or run.json, differs from the installed environment; the message names the first one.
        UserError: an environment is not installed, or run.json holds an import string.
        TrajectoryError: the folder is no evaluation, it holds no finished episode, or a record is malformed.
    """
    run = read_run(folder)
    mark = find_mark(run)
    check_writable("The cache folder", find_cache("verified"))
    plans = {key: _plan(run, part) for key, part in run.parts.items()}
    envs: dict[tuple[str, int], VLEnv] = {}
    episodes = turns = 0
    try:
        for _, episode in read_episodes(run.folder, run.header, images=True):
            plan = plans[episode[0].part]
            place = (plan.key, plan.item_of(episode[0].episode))
            if place not in envs:
                if len(envs) >= MOST_OPEN:
                    envs.pop(next(iter(envs))).close()
                envs[place] = plan.make(place[1])
            _replay(envs[place], episode)
            episodes, turns = episodes + 1, turns + len(episode)
            advance()
    finally:
        for env in envs.values():
            env.close()
    if mark is None or not episodes:
        raise TrajectoryError(f"{run.folder} holds no finished episode.")
    mark.parent.mkdir(parents=True, exist_ok=True)
    write_whole(mark, b"")
    similar = sorted({part.env_id for part in run.parts.values() if not _is_exact(part.env_id)})
    seen = f"; pictures of {', '.join(similar)} are not compared, as machines draw them differently" if similar else ""
    return (
        f"verified: {episodes} episodes, {turns} turns in {len(plans)} part(s) are as the installed environments{seen}"
    )


def is_verified(run: Run) -> bool:
    """True if `verify_run` has passed with these records and this code for this user."""
    mark = find_mark(run)
    return mark is not None and mark.is_file()


def find_mark(run: Run) -> Path | None:
    """Return the file that marks a run's records as verified with the installed code; `None` where there can be none.

    It lies outside of the run's folder, so no folder can bring it along. Its name is a digest of the records, which
    hold those of the pictures, and of the code.
    """
    specs = [get_registry().specs.get(part.env_id) for part in run.parts.values()]
    if None in specs or not (run.folder / METADATA).is_file():
        return None
    modules = {"vlgym", *(spec.entry_point.partition(".")[0].partition(":")[0] for spec in specs if spec)}
    header = {name: value for name, value in run.header.items() if name != SESSIONS}
    digest = hashlib.sha256(
        json.dumps([header, [hash_code(each) for each in sorted(modules)]], sort_keys=True).encode()
    )
    with (run.folder / METADATA).open("rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
    return find_cache("verified") / digest.hexdigest()


def _is_exact(env_id: str) -> bool:
    return get_registry().get(env_id).pictures == "exact"


def _plan(run: Run, part: Part) -> Plan:
    """Return a part as it was planned, once run.json says of it what the installed environment says."""
    given = part.entry.get("given") or {}
    for arguments in (given, *part.items):
        if "parser" in arguments:
            check_named(arguments["parser"], str(run.folder / HEADER))
    plan = Plan(
        part.env_id, run.split, part.seeds, part.repeats, part.planner, part.pictures, given, part.items,
        bool(part.entry.get("fresh_seeds")),
    )  # fmt: skip
    env = plan.make()
    live = {**json.loads(json.dumps(without_none(to_plain(describe_env(env))))), "changed": plan.changed}
    env.close()
    held = {**part.entry, "changed": part.changed}
    one, other = ({name: each.get(name) for name in (*CARD, "changed")} for each in (held, live))
    if found := find_differences(one, other):
        raise FailedError(f"{part.key}: run.json differs from the installed environment in {', '.join(found)}.")
    return plan


def _replay(env: VLEnv, episode: list[StepRecord]) -> None:
    first = episode[0]
    place, field = f"{first.part}, episode {first.episode}", ""
    try:
        observation, _ = env.reset(seed=first.seed)
        for record in episode:
            place = f"{first.part}, episode {first.episode}, turn {record.turn}"
            live: dict[str, Any] = {"text": observation["text"], "level": None}
            if _is_exact(record.env_id) and not np.array_equal(record.image, observation["image"]):
                raise FailedError(f"{place}: the recorded picture is not the replayed one.")
            observation, live["reward"], live["terminated"], live["truncated"], info = env.step(record.reply)
            details = info["vlgym"]
            live |= {"actions": tuple(details["actions"]), "parse": details["parse"], "span": details["span"]}
            live |= {"invalid": info["invalid_action"], "success": info["success"], "score": info.get("score")}
            for field, value in live.items():
                if not _equal(getattr(record, field), value):
                    held, value = _shorten(getattr(record, field), value)
                    raise FailedError(f"{place}: {field} is {held} as recorded and {value} as replayed.")
    except FailedError:
        raise
    except Exception as error:
        raise FailedError(f"{place}: the environment failed: {type(error).__name__}: {error}") from error


def _equal(held: Any, value: Any) -> bool:
    if isinstance(held, float) and isinstance(value, (int, float)):
        return math.isclose(held, value, rel_tol=1e-9, abs_tol=ROUNDING)
    return bool(held == value)


def _shorten(*values: Any) -> list[str]:
    """Return values in words, texts from a little before their first difference."""
    if all(isinstance(value, str) for value in values):
        same = next((at for at, (a, b) in enumerate(zip(*values, strict=False)) if a != b), min(map(len, values)))
        values = tuple(value[max(0, same - 20) :] for value in values)
    return [f"{value!r:.80}" for value in values]
