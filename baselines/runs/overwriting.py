"""Check that a folder may be filled, and `--overwrite`: delete what an earlier run left, and nothing else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from vlgym.errors import UserError, check_writable

from .folder import LOCK_FILE, RUN_FILE, claim, read_run


@dataclass(frozen=True)
class Kind:
    """The files that a command leaves in its folder.

    Attributes:
        name: as a message says it.
        mark: the file that every such folder holds.
        parts: names of all there is; `*` stands for anything.
    """

    name: str
    mark: str
    parts: Sequence[str]


RUN = Kind(
    "run", RUN_FILE,
    (
        LOCK_FILE, "adapter", "base", "base.safetensors", "best", "checkpoints", "curve.png", "episodes",
        "evaluation.json", "failures.jsonl", "log.jsonl", "model", "pool", "rating", "tensorboard", "*.part", "*.old",
        RUN_FILE,
    ),
)  # fmt: skip


def check_folder(out: Path, kind: Kind = RUN, *, overwrite: bool = False, yes: bool = False) -> None:
    """Check, before any work, that a new run may begin in a folder: a new or empty one, one in which a run ended before
    its first checkpoint, or with `overwrite` that of an earlier run, after asking.

    Args:
        out: the folder.
        kind: what will be put there.
        overwrite: an earlier run there is to be deleted.
        yes: do not ask.

    Raises:
        UserError: it holds something that is not to be deleted, or cannot be written to.
    """
    _check(out, kind, overwrite)
    if not _is_used(out) or yes:
        return
    what = _list(out, kind)
    if not sys.stdin.isatty():
        raise UserError(f"--overwrite would delete {what}; there is no terminal to ask. If it is meant, add --yes.")
    if input(f"--overwrite deletes {what}. Delete it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise UserError("Nothing was deleted; choose another --out.")


def prepare_folder(out: Path, kind: Kind = RUN, *, overwrite: bool = False) -> None:
    """Make a folder that `check_folder` found good; what may be deleted there is deleted now.

    Raises:
        UserError: as `check_folder`, which asks.
    """
    _check(out, kind, overwrite)
    if _is_used(out):
        _delete(out, kind)
    out.mkdir(parents=True, exist_ok=True)


def _check(out: Path, kind: Kind, overwrite: bool) -> None:
    check_writable("--out", out)
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; choose a folder.")
    if not _is_used(out):
        return
    ours = (out / kind.mark).is_file()
    if not overwrite or not ours:
        ways = [f"go on with it by --resume --out {out}"] if ours and kind is RUN else []
        ways += ["choose another folder", *([f"delete the {kind.name} there with --overwrite"] if ours else [])]
        raise UserError(
            f"--out {out} already holds {_describe(out, kind)}; nothing was overwritten. You can {', or '.join(ways)}."
        )
    if strange := [path.name for path in sorted(out.iterdir()) if not any(fnmatch(path.name, p) for p in kind.parts)]:
        raise UserError(
            f"--overwrite: {out} also holds {', '.join(strange)}, which is not the {kind.name}'s; nothing was deleted. "
            "Move it away first, or choose another folder."
        )


def _is_used(out: Path) -> bool:
    """True if the folder holds anything but the beginning of a run, which may begin again."""
    if not out.is_dir():
        return False
    begun = (out / RUN_FILE).is_file() and not any((out / "checkpoints").glob("update-*"))
    return any(out.iterdir()) and not (begun and not (out / "model").exists())


def _describe(out: Path, kind: Kind) -> str:
    if (out / RUN_FILE).is_file():
        return str(read_run(out).get("title", "another run"))
    return f"a {kind.name}" if (out / kind.mark).is_file() else "other files"


def _list(out: Path, kind: Kind) -> str:
    """Return what is deleted, in words."""
    files = [path for path in out.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files) / 1e6
    names = ", ".join(sorted(path.name for path in out.iterdir() if path.name != LOCK_FILE))
    return f"{_describe(out, kind)} in {out} ({names}: {len(files)} files, {size:.1f} MB)"


def _delete(out: Path, kind: Kind) -> None:
    """Delete the parts of a run; its mark last, so that a kill leaves a folder that is still a run's."""
    what = _list(out, kind)
    with claim(out):
        for path in sorted(out.iterdir(), key=lambda path: (path.name == kind.mark, path.name)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    print(f"deleted {what}", flush=True)
