"""Outputs of a run's numbers: a JSONL file, TensorBoard, the terminal.

One flat dictionary per update; docs/learner.md defines each name. The JSONL file is the truth, the curve is drawn from
it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from vlgym.errors import UserError
from vlgym.files import append_whole, is_cut, make_folder, seal, sync, unseal, write_whole
from vlgym.terminal import Advance, counting, is_live, open_console, open_progress

LOG_FILE = "log.jsonl"
FAILURES_FILE = "failures.jsonl"  # environments that raised, one line each
PRINT_EVERY = 5  # updates between lines where the output is not a terminal
LEAST_EXPLAINED, IDLE_UPDATES = 0.02, 10  # a critic that explains less of the returns' variance for so long is told of


def note_failures(out: Path, failures: Sequence[Mapping[str, Any]], update: int) -> None:
    """Write down in a run's folder which environments failed, and in which update."""
    if failures:
        lines = (json.dumps(seal({"update": update, **failure})) + "\n" for failure in failures)
        append_whole(out / FAILURES_FILE, "".join(lines))


class RunLog:
    """Writes one row per update to every destination.

    Args:
        out: folder of the run; name: of the learner.
        total, env_steps: updates and environment steps of the whole run; None for no limit.
        done, steps: updates and environment steps that the run had when it was resumed; later rows in the file are
            from a lost future and are removed.
        quiet: write and say nothing: the log of a process that is not the first.
    """

    def __init__(
        self,
        out: Path,
        *,
        name: str,
        total: int,
        done: int,
        steps: int = 0,
        env_steps: int | None = None,
        quiet: bool = False,
    ) -> None:
        self.quiet, self.idle = quiet, 0
        if quiet:
            return
        self.path = out / LOG_FILE
        for path in (self.path, out / FAILURES_FILE):
            forget_later(path, done)
        append_whole(self.path, "")
        make_folder(out / "tensorboard")
        self.board = SummaryWriter(str(out / "tensorboard"), purge_step=done + 1)
        self.console = open_console()
        self.progress = open_progress(self.console)
        self.progress.start()
        self.limits = {"update": total} | ({} if env_steps is None else {"env_steps": env_steps})
        completed, shown = self._nearest({"update": done, "env_steps": steps})
        self.task = self.progress.add_task(name, total=shown, completed=completed)

    def write(self, row: Mapping[str, Any]) -> None:
        """Record one update; NaN becomes null in the file."""
        if self.quiet:
            return
        update = int(row["update"])
        plain = {k: (None if isinstance(v, float) and not math.isfinite(v) else v) for k, v in row.items()}
        append_whole(self.path, json.dumps(seal(plain)) + "\n")
        for name, value in plain.items():
            if isinstance(value, (int, float)) and name != "update":
                self.board.add_scalar(name, value, update)
        self._watch_critic(row.get("value/explained_variance", math.nan))
        text = summary(row)
        completed, total = self._nearest(row)
        if is_live(self.console):
            self.progress.update(self.task, completed=completed, total=total, note=text)
        elif update % PRINT_EVERY == 0 or completed == total:
            which = "" if completed == update else f"{update}, environment step "
            self.console.print(f"update {which}{completed}/{total}  {text}", soft_wrap=True)

    def _watch_critic(self, explained: float) -> None:
        """Warn when the value head has been no better than a constant for `IDLE_UPDATES`; NaN counts for nothing."""
        if not math.isnan(explained):
            self.idle = self.idle + 1 if explained < LEAST_EXPLAINED else 0
        if self.idle == IDLE_UPDATES and not math.isnan(explained):
            self.say(
                f"The value head has explained less than {LEAST_EXPLAINED:.0%} of the variance of returns for "
                f"{IDLE_UPDATES} updates: advantages are compared with a constant."
            )

    def _nearest(self, done: Mapping[str, Any]) -> tuple[int, int]:
        """Return the limit that is nearest to its end: how much is done, and of how much."""
        name = max(self.limits, key=lambda name: done[name] / self.limits[name])
        return min(int(done[name]), self.limits[name]), self.limits[name]

    def sync(self) -> None:
        """Flush the rows, and what was written of failures, to the disk: a checkpoint relies on them."""
        if self.quiet:
            return
        for path in (self.path, self.path.with_name(FAILURES_FILE)):
            if path.exists():
                sync(path)
        sync(self.path.parent)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self.quiet:
            return
        self.console.print(text, soft_wrap=True)

    @contextmanager
    def counting(self, name: str, total: int) -> Iterator[Advance]:
        """Show the progress of something other than the updates, below their bar; the yielded function moves it by
        one.
        """
        if self.quiet:
            yield lambda *_: None
            return
        with counting(self.progress, name, total) as advance:
            yield advance

    def close(self) -> None:
        """Finish every destination."""
        if self.quiet:
            return
        self.progress.stop()
        with suppress(OSError):
            self.board.close()


def summary(row: Mapping[str, Any]) -> str:
    """The metrics of the progress bar; what this update has no number of (no episode ended) is left out."""
    shown = [
        ("success", "episode/success", ".2f"), ("return", "episode/return", "+.2f"),
        ("invalid", "rollout/invalid_rate", ".2f"), ("kl", "loss/kl", ".3f"), ("clip", "loss/clip_fraction", ".2f"),
        ("value", "loss/value", ".3f"), ("ev", "value/explained_variance", "+.2f"),
        ("steps/s", "speed/env_steps_per_s", ".0f"), ("tokens/s", "speed/tokens_per_s", ".0f"),
    ]  # fmt: skip
    return "  ".join(
        f"{label} {row[name]:{style}}" for label, name, style in shown if math.isfinite(row.get(name, math.nan))
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL log, without their checksums; a half-written last line is left out.

    Raises:
        UserError: a line is damaged; the message names it.
    """
    rows: list[dict[str, Any]] = []
    if not path.exists():
        return rows
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if is_cut(line):
                break
            try:
                rows.append(unseal(json.loads(line.decode())))
                if not isinstance(rows[-1].get("update"), int):
                    raise ValueError("it says of no update")
            except (ValueError, RecursionError) as error:
                raise UserError(
                    f"{path}, line {number}: {error}. Nothing was changed. The other lines are whole as far as they "
                    "were read: remove this one to go on."
                ) from None
    return rows


def forget_later(path: Path, done: int) -> None:
    """Remove the rows of a JSONL file that come after update `done`: they are of a lost future."""
    if path.exists():
        rows = read_rows(path)
        text = "".join(json.dumps(seal(row)) + "\n" for row in rows if row["update"] <= done)
        if text.encode() != path.read_bytes():
            write_whole(path, text)
