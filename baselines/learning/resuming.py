"""The rules for resuming: which options a run that goes on may have otherwise than it began."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from vlgym.errors import UserError, nearest

from ..runs import folder
from .config import RunConfig, flag_of

FREE_ON_RESUME = frozenset(
    {
        "out", "resume", "overwrite", "yes", "updates", "env_steps", "save_every", "eval_every", "eval_episodes",
        "threads", "track", "micro_batch", "micro_tokens", "recompute", "export", "export_adapter", "record_every",
        "record_keep", "stop_after", "check", "envs", "env_timeout",
    }
)  # fmt: skip

C = TypeVar("C", bound=RunConfig)


def saved_config(asked: C) -> C:
    """The configuration of the run to resume; what was asked for beyond it must be free to change.

    Raises:
        UserError: no --out, no run there, or an option that differs from the run's.
    """
    if asked.out is None:
        raise UserError("--resume needs the folder of the run: --resume --out runs/...")
    if asked.overwrite:
        raise UserError("--resume continues the run in --out, --overwrite deletes it; leave one of them out.")
    kind, default = type(asked), type(asked)()
    saved = folder.read_run(asked.out)["config"]
    unknown = sorted(set(saved) - {item.name for item in fields(kind)} - {"algorithm"})
    if saved.get("algorithm") == kind.algorithm and unknown:
        raise UserError(
            f"The run in {asked.out} has an option that this version does not know, {unknown[0]!r}; "
            f"resume it with the version that began it.{nearest(unknown[0], [item.name for item in fields(kind)])}"
        )
    values: dict[str, Any] = {}
    for item in fields(kind):
        standard = getattr(default, item.name)
        before = _revive(standard, saved.get(item.name, standard))
        values[item.name] = _resumed(asked.out, item.name, getattr(asked, item.name), standard, before)
    return replace(kind(**values), out=asked.out, resume=True, overwrite=False)


def _resumed(out: Path, name: str, asked: Any, standard: Any, before: Any) -> Any:
    """The value of an option, or of a group of them, in a resumed run: what is asked for, or else what it was.

    Raises:
        UserError: it is asked to be another, and is not free to change.
    """
    if is_dataclass(before) and not isinstance(before, type):
        inner = {
            item.name: _resumed(
                out, f"{name}.{item.name}", *(getattr(options, item.name) for options in (asked, standard, before))
            )
            for item in fields(before)
        }
        return replace(before, **inner)
    if asked == standard:
        return before
    if name.split(".")[0] in FREE_ON_RESUME or asked == before:
        return asked
    raise UserError(
        f"The run in {out} has {flag_of(name)} {before}, but {asked} was asked for. Leave that option out to go on "
        "with the run as it was, or start a new run in another --out."
    )


def _revive(standard: Any, saved: Any) -> Any:
    """A value from JSON as the dataclass had it."""
    if is_dataclass(standard) and isinstance(saved, dict):
        kind: Any = type(standard)
        return kind(**saved)
    if isinstance(standard, tuple) and isinstance(saved, list):
        return tuple(saved)
    return saved
