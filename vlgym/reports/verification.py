"""Replay of a run: the installed environments get its seeds and replies, and turns are compared.

Checksums find accidental damage alone. A record that was edited and sealed differs from its replay.
"""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from ..env import VLEnv
from ..env.arguments import to_plain
from ..errors import FailedError, TrajectoryError, UserError, check_writable
from ..evaluation import plan
from ..evaluation.folder import SESSIONS, read_episodes
from ..files import find_cache, write_whole
from ..parsers import check_named
from ..play.replay import is_exact, replay
from ..play.trajectory import HEADER, METADATA, describe_env, find_differences, without_none
from ..registry import get_registry
from ..registry.versions import hash_code
from .records import RecordedPart, RecordedRun, read_run

CARD_FIELDS = (  # fields in run.json that follow from the installed environment and the arguments
    "class", "arguments", "spec_hash", "prompt_version", "parser", "parser_version", "parser_settings", "reply_ends",
)  # fmt: skip
FOREIGN = re.compile(r'"class": "[^"]*"|"[^"]*/(?![A-Za-z][\w-]*-v\d+")[^"]*"')
"""An object in JSON, or a text with a slash and no id: a device or a server may never answer."""


def verify_run(folder: Path | str, advance: Callable[[], object] = lambda: None) -> str:
    """Replay a run's finished episodes, mark them in the user's cache, and return a line of counts.

    Prompts, tokens, costs and the name of the policy are not replayed.

    Args:
        advance: called after each episode.

    Raises:
        FailedError: a turn, or run.json, differs from the installed environment.
        UserError: an environment is missing, run.json names code, or records are malformed.
    """
    run = read_run(folder)
    mark = find_mark(run)
    check_writable("The cache folder", find_cache("verified"))
    for part in run.parts.values():
        _check_part(run, part)

    # Environments are kept between the episodes of an item: making one may take seconds.
    envs: dict[tuple[str, int], VLEnv] = {}
    episodes = turns = 0
    try:
        for _, episode in read_episodes(run.folder, run.header, images=True):
            part = run.parts[episode[0].part]
            place = (part.key, part.item_of(episode[0].episode))
            if place not in envs:
                if len(envs) >= 8:  # enough for the items that were played side by side
                    envs.pop(next(iter(envs))).close()
                envs[place] = part.make(place[1])
            replay(envs[place], episode)
            episodes, turns = episodes + 1, turns + len(episode)
            advance()
    finally:
        for env in envs.values():
            env.close()

    # The mark is written last, and only where something was replayed.
    if mark is None or not episodes:
        raise TrajectoryError(f"{run.folder} holds no finished episode.")
    mark.parent.mkdir(parents=True, exist_ok=True)
    write_whole(mark, b"")
    drawn = len({part.env_id for part in run.parts.values() if not is_exact(part.env_id)})
    unseen = f"; pictures of {drawn} environment(s), which machines draw differently, are not compared" if drawn else ""
    return f"verified: {episodes} episodes, {turns} turns are as the installed environments play them{unseen}"


def find_mark(run: RecordedRun) -> Path | None:
    """Return the file that marks a run's records as verified with the installed code.

    It lies outside of the run's folder, so no folder can bring it along. Its name is a digest of
    the code and of the records, which hold the hashes of the pictures.
    """
    specs = [get_registry().specs.get(part.env_id) for part in run.parts.values()]
    if None in specs or not (run.folder / METADATA).is_file():
        return None
    places = {"vlgym", *(spec.entry_point for spec in specs if spec)}
    code = [hash_code(place) for place in sorted(places)]
    header = {name: value for name, value in run.header.items() if name != SESSIONS}
    digest = hashlib.sha256(json.dumps([header, code], sort_keys=True).encode())
    with (run.folder / METADATA).open("rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
    return find_cache("verified") / digest.hexdigest()


def is_verified(run: RecordedRun) -> bool:
    """True if `verify_run` has passed with these records and this code for this user."""
    mark = find_mark(run)
    return mark is not None and mark.is_file()


def _check_part(run: RecordedRun, part: RecordedPart) -> None:
    """Compare run.json's entry of a part with the installed environment."""
    for arguments in (part.arguments, *part.items):
        check_named(arguments, str(run.folder / HEADER))
        if foreign := FOREIGN.search(json.dumps(arguments)):
            raise UserError(
                f"{run.folder / HEADER} says {foreign[0][:80]}: no object, path or address of a record is used; "
                "the run cannot be replayed."
            )

    # Only now is it safe to construct the environment.
    env = part.make()
    live = json.loads(json.dumps(without_none(to_plain(describe_env(env)))))
    env.close()
    recorded, live = ({name: each.get(name) for name in CARD_FIELDS} for each in (part.entry, live))
    recorded["changed"], live["changed"] = part.changed, plan.Part.changed.__get__(part)
    if differences := find_differences(recorded, live):
        raise FailedError(f"{part.key}: run.json differs from the installed environment in {', '.join(differences)}.")
