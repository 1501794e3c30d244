"""The folder of a run: its files, and the record of how the run was made."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from vlgym.env.prompts import PromptBuilder
from vlgym.env_groups import LOCAL, EnvGroup
from vlgym.errors import UserError, check_writable
from vlgym.files import list_folder, seal, unseal, write_whole
from vlgym.play.trajectory import describe_run, is_sealed
from vlgym.registry import get_registry

RUN_FILE = "run.json"
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors")


def environment_ids(text: str) -> list[str]:
    """Split `a,b` into known environment ids.

    Raises:
        UserError: none given, one twice, or one that cannot be made.
    """
    ids = [part.strip() for part in text.split(",") if part.strip()]
    if not ids:
        raise UserError("--env names no environment; for example --env vlgym/NumberLine-v1. All ids: vlgym list")
    if len(set(ids)) < len(ids):
        raise UserError(f"--env {text} names an environment twice; each id once, they are mixed evenly.")
    for env_id in ids:
        get_registry().get(env_id)
    return ids


def check_new(out: Path, mark: str = RUN_FILE) -> None:
    """Check, before any work, that a run may begin in a folder: a new or empty one, or one in which a run ended before
    its first checkpoint. `mark` is the file that says what a folder of this kind holds.

    Raises:
        UserError: it holds something, or cannot be written to.
    """
    check_writable("--out", out)
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; choose a folder.")
    begun = (out / RUN_FILE).is_file() and not any((out / "checkpoints").glob("update-*")) and mark == RUN_FILE
    if not list_folder(out) or (begun and not (out / "model").exists()):
        return
    ours = mark == RUN_FILE and (out / RUN_FILE).is_file()
    held = str(read_run(out).get("title", "another run")) if ours else "other files"
    raise UserError(
        f"--out {out} already holds {held}; nothing was overwritten. "
        f"{f'Continue it with --resume --out {out}, choose' if ours else 'Choose'} another folder, or remove that one."
    )


def next_folder(base: Path, stem: str) -> Path:
    """The first of `base/stem-001`, `base/stem-002`, ... that does not exist."""
    number = 1
    while (base / f"{stem}-{number:03d}").exists():
        number += 1
    return base / f"{stem}-{number:03d}"


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON, whole or not at all; paths become strings."""
    write_whole(path, encode_json(data))


def encode_json(data: Any) -> bytes:
    """Return the bytes that `write_json` writes."""
    return (json.dumps(data, indent=1, default=str) + "\n").encode()


def write_record(path: Path, data: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Write an object, or a list of objects, as `write_json` does, each with its checksum."""
    write_json(path, seal(data) if isinstance(data, Mapping) else [seal(each) for each in data])


def read_record(path: Path) -> Any:
    """Read what `write_record` wrote, without the checksums.

    Raises:
        UserError: it is damaged.
    """
    try:
        data = json.loads(path.read_bytes())
        return [unseal(each) for each in data] if isinstance(data, list) else unseal(data)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None


def read_run(out: Path) -> dict[str, Any]:
    """Read a run's record.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    path = out / RUN_FILE
    try:
        record = json.loads(path.read_bytes())
        if isinstance(record, dict):
            record = unseal(record, required=is_sealed(record))
        if not isinstance(record, dict) or not all(isinstance(record.get(n), dict) for n in ("config", "environments")):
            raise ValueError("it is no record of a run")
        return record
    except FileNotFoundError:
        raise UserError(f"{out} holds no run ({RUN_FILE} is missing); start one without --resume.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}. Start a new run in another --out.") from None


def describe(
    title: str,
    config: Mapping[str, Any],
    env_ids: list[str],
    env_kwargs: Mapping[str, Any],
    *,
    builder: PromptBuilder | None = None,
    episodes: Mapping[str, Any] | None = None,
    policy: Any = None,
    group: EnvGroup = LOCAL,
) -> dict[str, Any]:
    """The record of a run: what `describe_run` says of its environments, its configuration, and the versions of the
    learners' packages.

    The value of an option that is left out of `config` stands elsewhere in the record (history, parser and penalty with
    each environment, token limits with the model). `episodes` says by purpose which split and numbers are played.
    """
    envs = [group.make(env_id, **env_kwargs) for env_id in env_ids]
    record = describe_run(envs, builder=builder, policy=policy, title=title, config=config)
    if episodes is not None:
        record["episodes"] = dict(episodes)
    for env in envs:
        env.close()
    record["versions"] |= {package: metadata.version(package) for package in PACKAGES}
    record["machine"] = {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()}
    return record


def check_same(saved: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with another learner's run, or with environments that have changed since.

    Raises:
        UserError: naming the first difference.
    """
    if saved["config"].get("algorithm") != now["config"].get("algorithm"):
        raise UserError(
            f"That run is of {saved['config'].get('algorithm')}, not of {now['config'].get('algorithm')}; "
            "resume it with its own command."
        )
    if saved.get("format") != now["format"]:
        raise UserError(
            f"That run was recorded by another version of vlgym (record format {saved.get('format')}, here "
            f"{now['format']}). Resume it with that version, or start a new run."
        )
    changed = [name for name, entry in now["environments"].items() if saved["environments"].get(name) != entry]
    if changed:
        raise UserError(
            f"Arguments, prompt, parser or spec of {', '.join(changed)} changed since that run began; "
            "its results would mix two versions. Start a new run."
        )
