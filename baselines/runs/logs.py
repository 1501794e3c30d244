"""Outputs of a run's numbers: a JSONL file, a tracker, the terminal, and the learning curve.

One flat dictionary per update; docs/learner.md defines each name. The JSONL file is the truth. The
curve is drawn from it: warm start and reinforcement learning apart, random play, blind play and the
oracle as lines, held-out evaluations with intervals, and their success with other pictures (the
sight curve).
"""

import importlib.util
import io
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vlgym.errors import UserError
from vlgym.files import append_whole, is_cut, make_folder, seal, sync, unseal, write_whole
from vlgym.terminal import Advance, counting, is_live, open_console, open_progress

# ---- trackers ------------------------------------------------------------------------------------

TrackerName = Literal["tensorboard", "wandb", "trackio", "none"]
SERVICES = ("wandb", "trackio")
SAMPLE = "sample"  # the name of a turn that is shown


class Board:
    """TensorBoard's files in a run's folder, without those of a lost future."""

    def __init__(self, out: Path, done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        make_folder(out / "tensorboard")
        self.writer = SummaryWriter(str(out / "tensorboard"), purge_step=done + 1)

    def log(self, row: Mapping[str, float], update: int) -> None:
        """Show the numbers of an update."""
        for name, value in row.items():
            self.writer.add_scalar(name, value, update)

    def show(self, picture: np.ndarray, text: str, update: int) -> None:
        """Show a turn: its picture [h, w, 3] uint8 and the reply."""
        self.writer.add_image(SAMPLE, picture, update, dataformats="HWC")
        self.writer.add_text(SAMPLE, text, update)

    def close(self) -> None:
        """Finish."""
        self.writer.close()


class Service:
    """wandb or trackio, with the methods of `Board`; a resumed run goes on under its name."""

    def __init__(self, module: Any, out: Path, done: int) -> None:
        note = out / "tracker.txt"
        if not done or not note.is_file():
            write_whole(note, f"{out.resolve().name}-{secrets.token_hex(4)}")
        name = note.read_text()
        own = {"id": name, "dir": str(out)} if module.__name__ == "wandb" else {}
        self.module, self.run = module, module.init(project="vlgym", name=name, resume="allow", **own)

    def log(self, row: Mapping[str, float], update: int) -> None:
        self.run.log(dict(row), step=update)

    def show(self, picture: np.ndarray, text: str, update: int) -> None:
        self.run.log({SAMPLE: self.module.Image(picture, caption=text)}, step=update)

    def close(self) -> None:
        self.run.finish()


def check_tracker(name: str) -> None:
    """Raise `UserError` where a tracker's package is missing."""
    if name in SERVICES and importlib.util.find_spec(name) is None:
        raise UserError(f"--tracker {name}: the package {name} is not installed: pip install {name}")


def open_tracker(name: str, out: Path, done: int) -> Board | Service | None:
    """Open a tracker for a run of which `done` updates have been made; None for `none`."""
    if name in SERVICES:
        return Service(importlib.import_module(name), out, done)
    return Board(out, done) if name == "tensorboard" else None


# ---- log -----------------------------------------------------------------------------------------

LOG_FILE = "log.jsonl"
FAILURES_FILE = "failures.jsonl"  # environments that raised, one line each
PRINT_EVERY = 5  # updates between lines where the output is not a terminal
LEAST_EXPLAINED, IDLE_UPDATES = 0.02, 10  # a critic that explains less for so long is warned of


def note_failures(out: Path, failures: Sequence[Mapping[str, Any]], update: int) -> None:
    """Write down in a run's folder which environments failed, and in which update."""
    if failures:
        lines = (json.dumps(seal({"update": update, **failure})) + "\n" for failure in failures)
        append_whole(out / FAILURES_FILE, "".join(lines))


class RunLog:
    """Writes one row per update to every destination.

    Args:
        name: of the learner; total, env_steps: limits of the whole run; tracker: `--tracker`.
        done, steps: updates and environment steps so far; later rows are removed.
        quiet: write and say nothing, in a process that is not the first.
    """

    def __init__(
        self, out: Path, *, name: str, total: int, done: int, steps: int = 0, env_steps: int | None = None,
        tracker: str = "tensorboard", quiet: bool = False,
    ) -> None:  # fmt: skip
        self.quiet, self.idle = quiet, 0
        self.tracker: Board | Service | None = None
        self.console = open_console()
        self.console.quiet = quiet
        self.progress = open_progress(self.console)
        if quiet:
            return

        # Rows of a lost future go before anything is written.
        self.path = out / LOG_FILE
        for path in (self.path, out / FAILURES_FILE):
            forget_later(path, done)
        append_whole(self.path, "")

        # The bar counts what is nearest to its end: updates or environment steps.
        self.tracker = open_tracker(tracker, out, done)
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
        if self.tracker is not None:
            self.tracker.log({k: v for k, v in plain.items() if v is not None and k != "update"}, update)

        # Warn when the value head has been no better than a constant for a while.
        explained = row.get("value/explained_variance", math.nan)
        if not math.isnan(explained):
            self.idle = self.idle + 1 if explained < LEAST_EXPLAINED else 0
            if self.idle == IDLE_UPDATES:
                self.say(
                    f"The value head has explained less than {LEAST_EXPLAINED:.0%} of the variance of returns "
                    f"for {IDLE_UPDATES} updates: advantages are compared with a constant."
                )

        text = summary(row)
        completed, total = self._nearest(row)
        if is_live(self.console):
            self.progress.update(self.task, completed=completed, total=total, note=text)
        elif update % PRINT_EVERY == 0 or completed == total:
            which = "" if completed == update else f"{update}, environment step "
            self.console.print(f"update {which}{completed}/{total}  {text}", soft_wrap=True)

    def _nearest(self, done: Mapping[str, Any]) -> tuple[int, int]:
        """The limit that is nearest to its end: how much is done, and of how much."""
        name = max(self.limits, key=lambda name: done[name] / self.limits[name])
        return min(int(done[name]), self.limits[name]), self.limits[name]

    def sync(self) -> None:
        """Flush rows and failures to the disk: a checkpoint relies on them."""
        if not self.quiet:
            files = (self.path, self.path.with_name(FAILURES_FILE))
            for path in (*(file for file in files if file.exists()), self.path.parent):
                sync(path)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, soft_wrap=True)

    def counting(self, name: str, total: int) -> AbstractContextManager[Advance]:
        """Show a second bar of progress; yield what moves it by one."""
        return counting(self.progress, name, total)

    def close(self) -> None:
        """Finish every destination."""
        self.progress.stop()
        if self.tracker is not None:
            with suppress(OSError):
                self.tracker.close()


def summary(row: Mapping[str, Any]) -> str:
    """The metrics of the progress bar, those that this update has a number of."""
    shown = [
        ("success", "episode/success", ".2f"), ("return", "episode/return", "+.2f"),
        ("invalid", "rollout/invalid_rate", ".2f"), ("kl", "loss/kl", ".3f"), ("clip", "loss/clip_fraction", ".2f"),
        ("value", "loss/value", ".3f"), ("ev", "value/explained_variance", "+.2f"),
        ("steps/s", "speed/env_steps_per_s", ".0f"), ("tokens/s", "speed/tokens_per_s", ".0f"),
    ]  # fmt: skip
    known = (each for each in shown if math.isfinite(row.get(each[1], math.nan)))
    return "  ".join(f"{label} {row[name]:{style}}" for label, name, style in known)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL log, whole ones; a `UserError` names a damaged line."""
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
                    f"{path}, line {number}: {error}. Nothing was changed. The other lines are whole as far "
                    "as they were read: remove this one to go on."
                ) from None
    return rows


def forget_later(path: Path, done: int) -> None:
    """Remove the rows of a JSONL file of a lost future, after update `done`."""
    if path.exists():
        rows = read_rows(path)
        text = "".join(json.dumps(seal(row)) + "\n" for row in rows if row["update"] <= done)
        if text.encode() != path.read_bytes():
            write_whole(path, text)


# ---- learning curve ------------------------------------------------------------------------------

SMOOTH = 5  # updates in the running mean
PLAYED, LEVEL_MEAN = "curriculum/", "curriculum/level_mean"  # metrics: turns by place, mean level


def draw_success(
    path: Path, rows: Sequence[Mapping[str, Any]], *, title: str, name: str, num_envs: int,
    warm: Sequence[tuple[int, float]], evaluations: Sequence[Mapping[str, Any]], floor: Mapping[str, float] | None,
    oracle: Mapping[str, float] | None, blind: Mapping[str, float] | None = None,
    controls: Mapping[str, Sequence[tuple[int, float]]] | None = None,
) -> None:  # fmt: skip
    """Write the picture of the log's `rows`.

    Args:
        num_envs: training is drawn once as many episodes have ended: before, only short ones have.
        warm: (gradient step, validation success) of the warm start.
        evaluations: reports on held-out episodes, with `env_steps`.
        floor, oracle, blind: `{"success", "return", "se"}` (`se`: the return's standard error) of random
            play, the oracle and the best blind policies; None where unknown.
        controls: (environment steps, success) with other pictures, by the name of these.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    # One panel for each question: warm start, success, return, replies, critic, levels.
    played = [name for name in rows[-1] if name.startswith(PLAYED) and name != LEVEL_MEAN] if rows else []
    figure = Figure(figsize=(14.5, 6.2 if played else 4.2))
    panels = figure.subplot_mosaic(
        [["warm", "success", "return", name] for name in ("replies", "critic", *["levels"] * bool(played))],
        width_ratios=(1, 2.2, 2.2, 1.5),
    )  # fmt: skip
    left, middle, right, replies, critic = (panels[n] for n in ("warm", "success", "return", "replies", "critic"))
    shares: Any = {"ylim": (-0.03, 1.05)}
    left.set(title="supervised warm start", xlabel="gradient steps", ylabel="success", **shares)
    middle.set(title=f"reinforcement learning ({name})", xlabel="environment steps", ylabel="success", **shares)
    right.set(title="return", xlabel="environment steps")
    replies.set(title="share of replies", **shares)
    critic.set(title="explained variance of the critic", xlabel="environment steps", ylim=(-0.5, 1.05))
    for axis in panels.values():
        axis.grid(alpha=0.2)
        axis.locator_params(axis="x", nbins=6)

    left.plot([step for step, _ in warm], [value for _, value in warm], "o-", color="tab:gray", markersize=3)
    settled = drop_short(rows, num_envs)
    _draw_training(middle, _metric(settled, "episode/success"), f", from {num_envs} episodes on")
    _draw_training(right, _metric(settled, "episode/return"), f", from {num_envs} episodes on")

    # Held-out episodes, and constant play to compare them with.
    at = [e["env_steps"] for e in evaluations]
    if at:
        marks: Any = {"fmt": "s", "color": "tab:red", "capsize": 4}
        marks["label"] = "held-out episodes, 95 % interval"
        low = [max(0.0, e["success"] - e["success_low"]) for e in evaluations]
        high = [max(0.0, e["success_high"] - e["success"]) for e in evaluations]
        middle.errorbar(at, [e["success"] for e in evaluations], yerr=(low, high), **marks)
        half = [1.96 * e["return_se"] for e in evaluations]
        right.errorbar(at, [e["mean_return"] for e in evaluations], yerr=half, **marks)
    for (pictures, points), marker in zip((controls or {}).items(), "ox", strict=False):
        line: Any = {"color": "0.4", "linestyle": "--", "marker": marker}
        middle.plot(*zip(*points, strict=True), label=f"held-out episodes, {pictures} pictures", **line)
    for known, word, color, style in (
        (oracle, "oracle", "tab:green", "--"), (blind, "blind", "tab:pink", "-."),
        (floor, "random", "tab:orange", ":"),
    ):  # fmt: skip
        if known is not None:
            line = {"color": color, "linestyle": style}
            left.axhline(known["success"], **line)
            middle.axhline(known["success"], label=f"{word} {known['success']:.2f}", **line)
            error = f"± {known['se']:.2f} (standard error)"
            right.axhline(known["return"], label=f"{word} {known['return']:.2f} {error}", **line)

    for share, word, color in (("invalid_rate", "unreadable", "tab:purple"), ("cut_rate", "cut", "tab:brown")):
        replies.plot(*_metric(rows, f"rollout/{share}"), color=color, alpha=0.6, label=f"{word}, training")
        replies.plot(at, [e[share] for e in evaluations], "s", color=color, label=f"{word}, held-out")
    _draw_training(critic, _metric(rows, "value/explained_variance"))
    for axis in (middle, right, replies, critic):
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))  # 12.5k: five digits run into each other
    for axis in (middle, right, replies):
        axis.legend(loc="best", fontsize=8)
    if played:
        _draw_levels(panels["levels"], rows, played)
    figure.suptitle(title)
    figure.tight_layout()
    write_figure(figure, path)


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, format="png")
    write_whole(path, picture.getvalue())


def drop_short(rows: Sequence[Mapping[str, Any]], num_envs: int) -> Sequence[Mapping[str, Any]]:
    """The rows from which on as many episodes have ended as there are environments."""
    ended = accumulate(row.get("episode/count") or 0 for row in rows)
    return rows[next((place for place, count in enumerate(ended) if count >= num_envs), len(rows)) :]


def _draw_levels(axis: Any, rows: Sequence[Mapping[str, Any]], played: Sequence[str]) -> None:
    from matplotlib import colormaps

    steps = [row["env_steps"] for row in rows]
    totals = [sum(row[name] for name in played) for row in rows]
    shares = [[row[name] / total for row, total in zip(rows, totals, strict=True)] for name in played]
    shades = [colormaps["viridis"](at / max(1, len(played) - 1)) for at in range(len(played))]
    names = [name.removeprefix(PLAYED) for name in played]
    if len({name.partition("/")[0] for name in names}) == 1:
        names = [name.partition("/")[2] for name in names]
    axis.stackplot(steps, shares, colors=shades, labels=names, step="mid")
    axis.set(title="levels played, share of turns", xlabel="environment steps", ylim=(0, 1))
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7, reverse=True)


def _metric(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[list[int], list[float]]:
    known = [row for row in rows if row.get(name) is not None]
    return [row["env_steps"] for row in known], [row[name] for row in known]


def _draw_training(axis: Any, series: tuple[list[int], list[float]], note: str = "") -> None:
    """A metric of training, and its running mean."""
    steps, values = series
    windows = [values[max(0, i - SMOOTH + 1) : i + 1] for i in range(len(values))]
    axis.plot(steps, values, color="tab:blue", alpha=0.3, linewidth=1)
    means = [sum(window) / len(window) for window in windows]
    axis.plot(steps, means, color="tab:blue", label=f"training (mean of {SMOOTH} updates{note})")
