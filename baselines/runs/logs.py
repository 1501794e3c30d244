"""Where a run's numbers go: a JSONL file, TensorBoard, the terminal, and Weights & Biases or trackio if asked for and
installed.

One flat dictionary per update; docs/learner.md defines each name. The JSONL file is the truth, the curve is drawn from
it.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from vlgym.errors import UserError, check_choice
from vlgym.terminal import Advance, counting, is_live, open_console, open_progress

LOG_FILE = "log.jsonl"
PRINT_EVERY = 5  # updates between lines where the output is not a terminal
TRACKERS = ("none", "wandb", "trackio")


class RunLog:
    """Writes one row per update to every destination.

    Args:
        out: folder of the run.
        name: of the learner.
        total: updates of the whole run.
        done: updates that the run had when it was resumed; later rows in the file are from a lost future and are
            removed.
        track: `none`, `wandb` or `trackio`.
        config: shown by the tracker.
        quiet: write and say nothing: the log of a process that is not the first.

    Raises:
        UserError: the tracker is unknown or not installed.
    """

    def __init__(
        self, out: Path, *, name: str, total: int, done: int, track: str, config: Mapping[str, Any], quiet: bool = False
    ) -> None:
        self.quiet = quiet
        if quiet:
            return
        self.path = out / LOG_FILE
        rows = [row for row in read_rows(self.path) if row["update"] <= done]
        self.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.file = self.path.open("a")
        self.board = SummaryWriter(str(out / "tensorboard"), purge_step=done + 1)
        self.tracker = _start_tracker(track, out.name, config)
        self.console = open_console()
        self.progress = open_progress(self.console)
        self.progress.start()
        self.task = self.progress.add_task(name, total=total, completed=done)
        self.total = total

    def write(self, row: Mapping[str, Any]) -> None:
        """Record one update; NaN becomes null in the file."""
        if self.quiet:
            return
        update = int(row["update"])
        plain = {k: (None if isinstance(v, float) and not math.isfinite(v) else v) for k, v in row.items()}
        self.file.write(json.dumps(plain) + "\n")
        self.file.flush()
        numbers = {k: v for k, v in plain.items() if isinstance(v, (int, float)) and k != "update"}
        for name, value in numbers.items():
            self.board.add_scalar(name, value, update)
        if self.tracker is not None:
            self.tracker.log(numbers, step=update)
        text = summary(row)
        if is_live(self.console):
            self.progress.update(self.task, completed=update, note=text)
        elif update % PRINT_EVERY == 0 or update == self.total:
            self.console.print(f"update {update}/{self.total}  {text}", soft_wrap=True)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self.quiet:
            return
        self.console.print(text, soft_wrap=True)

    @contextmanager
    def counting(self, name: str, total: int) -> Iterator[Advance]:
        """Show how far something beside the updates is, below their bar; what is yielded moves it by one."""
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
        self.file.close()
        self.board.close()
        if self.tracker is not None:
            self.tracker.finish()


def summary(row: Mapping[str, Any]) -> str:
    """The metrics of the progress bar; what this update has no number of (no episode ended) is left out."""
    shown = [
        ("success", "episode/success", ".2f"), ("return", "episode/return", "+.2f"),
        ("invalid", "rollout/invalid_rate", ".2f"), ("kl", "loss/kl", ".3f"), ("clip", "loss/clip_fraction", ".2f"),
        ("value", "loss/value", ".3f"), ("steps/s", "speed/env_steps_per_s", ".0f"),
    ]  # fmt: skip
    return "  ".join(
        f"{label} {row[name]:{style}}" for label, name, style in shown if math.isfinite(row.get(name, math.nan))
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL log; a half-written last line is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def _start_tracker(name: str, run: str, config: Mapping[str, Any]) -> Any:
    check_choice("--track", name, TRACKERS)
    if name == "none":
        return None
    try:
        tracker = importlib.import_module(name)
    except ImportError:
        raise UserError(f"--track {name}: {name} is not installed. Install it: pip install {name}") from None
    tracker.init(project="vlgym", name=run, config=dict(config))
    return tracker
