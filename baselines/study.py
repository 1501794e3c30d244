"""Studies: several learners, several seeds, one command, one table and one plot.

    python -m baselines.study numberline --workers 2
    python -m baselines.study numberline --seeds 2 --env-steps 2048
    python -m baselines.study oneroom --write

Every run is an ordinary run of a learner in its own process and folder, from a warm start that all arms of a seed
share, with the same number of environment steps. The command can be stopped (Ctrl-C) and given again: finished runs
are kept, others go on from their newest checkpoint. The studies are data: `baselines/studies/arms.py`.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from vlgym.errors import FailedError, UserError, check_choice, check_number, check_writable
from vlgym.files import write_whole
from vlgym.play.controls import GREY, SHUFFLED
from vlgym.terminal import INTERRUPTED, TERMINATED, Terminated, open_console, open_progress

from .learning.command import main, parse
from .runs.checkpoint import checkpoints
from .runs.folder import claim, encode_json, read_record, write_json
from .runs.logs import LOG_FILE, read_rows
from .studies.arms import STUDIES, Arm, Study
from .studies.report import draw, page

MOST_WORKERS = 256
DONE, WARM_REPORT = "done.json", "warm.json"
KEPT = Path(__file__).parents[1] / "docs" / "studies"


@dataclass(frozen=True)
class Config:
    """Run a study, or go on with it, and write its table, plot and raw runs."""

    name: Annotated[str, tyro.conf.Positional]
    """numberline, ezpoints, oneroom, oneroom-fast, or sight-NAME for NumberLine, EZPoints, OneRoomS6Fast (-v0, -v1)."""
    out: Path = Path("runs/studies")
    """Parent of the study's folder."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    seeds: int | None = None
    """Seeds per arm; default the study's."""
    env_steps: int | None = None
    """Environment steps per run; default the study's."""
    options: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Further options for every run, as --options=--eval-episodes=20; giving it again adds."""
    write: bool = False
    """Copy plot and raw runs to docs/studies/ when all runs have ended."""


class Runs:
    """The processes of one study, and how to stop them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stopping = threading.Event()
        self.failures: list[str] = []
        self.running: set[subprocess.Popen[bytes]] = set()

    def call(self, arguments: Sequence[str], log: Path) -> bool:
        """Run one module as a command, its output in a file; whether it ended well."""
        if self.stopping.is_set():
            return False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=file, stderr=file)
            self.running.add(process)
            code = process.wait()
            self.running.discard(process)
        if code not in (0, INTERRUPTED, TERMINATED) and not self.stopping.is_set():
            self.failures.append(f"{' '.join(arguments)} ended with code {code}; see {log}")
        return code == 0

    def stop(self, reason: KeyboardInterrupt) -> None:
        """Begin nothing more, and let what runs save and end. Ctrl-C reaches it by itself, SIGTERM does not."""
        self.stopping.set()
        if isinstance(reason, Terminated):
            for process in list(self.running):
                process.terminate()

    def warm(self, study: Study, seed: int) -> Path:
        """The folder of the warm start that all arms of a seed share; made if missing."""
        out = self.folder / "warm" / f"seed-{seed}"
        if not (out / WARM_REPORT).is_file():
            shutil.rmtree(out, ignore_errors=True)
            arguments = [
                "baselines.sft", "--env", study.env, "--seed", str(seed), "--out", str(out),
                "--threads", "1", *study.warm_options,
            ]  # fmt: skip
            self.call(arguments, self.folder / "logs" / f"warm-{seed}.txt")
        return out

    def train(self, study: Study, arm: Arm, seed: int, options: Sequence[str]) -> None:
        """One run of one arm, unless it is done."""
        out, warm = self.folder / "runs" / f"{arm.slug}-{seed}", self.folder / "warm" / f"seed-{seed}"
        log = self.folder / "logs" / f"{arm.slug}-{seed}.txt"
        if (out / DONE).is_file() or not (warm / WARM_REPORT).is_file() or self.stopping.is_set():
            return
        steps = str(study.env_steps)
        if checkpoints(out / "checkpoints"):
            arguments = [arm.module, "--resume", "--out", str(out), "--env-steps", steps]
        else:
            shutil.rmtree(out, ignore_errors=True)
            limit = read_record(warm / WARM_REPORT)["report"]["max_new_tokens"]
            arguments = [
                arm.module, "--env", study.env, "--model", str(warm), "--seed", str(seed), "--out", str(out),
                "--max-new-tokens", str(limit), "--updates", "1000000", "--env-steps", steps, "--threads", "1",
                *([] if arm == study.arms[0] else ["--no-eval-before"]), *study.options, *arm.options, *options,
            ]  # fmt: skip
        if not self.call(arguments, log) or not (out / "model" / "config.json").is_file():
            return  # failed, or stopped and resumable
        write_json(out / DONE, {"arm": arm.label, "seed": seed})


def collect(folder: Path, study: Study) -> list[dict[str, Any]]:
    """The raw runs: per arm and seed the training curve and the held-out evaluations."""
    found = []
    for arm in study.arms:
        for seed in range(study.seeds):
            out = folder / "runs" / f"{arm.slug}-{seed}"
            if not (out / DONE).is_file():
                continue
            names = ("env_steps", "episode/success", "episode/return", "rollout/invalid_rate", "episode/count")
            rows = read_rows(out / LOG_FILE)
            curve = [[row.get(name) for name in names] for row in rows]
            evaluation = out / "evaluation.json"
            evaluations = read_record(evaluation) if evaluation.is_file() else []
            if evaluations and evaluations[0]["update"]:
                start = find_start(folder, seed)
                if not start:
                    continue
                evaluations = [*start, *evaluations]
            for entry in evaluations:
                for report in (entry, *(entry.get(control, {}) for control in (GREY, SHUFFLED))):
                    report.pop("policy", None)  # it names a folder of this machine
            found.append(
                {
                    "arm": arm.label, "seed": seed, "curve_columns": list(names), "curve": curve,
                    "gradient_steps": int(sum(row["policy/gradient_steps"] for row in rows)),
                    "explained_variance": average_half(rows, "value/explained_variance"),
                    "evaluations": evaluations,
                }
            )  # fmt: skip
    return found


def average_half(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Mean of a metric over the second half of a run's updates; None where no row has a number of it."""
    values = [row[name] for row in rows[len(rows) // 2 :] if row.get(name) is not None]
    return sum(values) / len(values) if values else None


def find_start(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Return the warm start's result on held-out episodes, which the first arm measures for all; empty till it has."""
    for path in sorted((folder / "runs").glob(f"*-{seed}/evaluation.json")):
        if rows := [row for row in read_record(path) if row["update"] == 0]:
            return rows
    return []


def check_options(study: Study, options: Sequence[str]) -> None:
    """Check the further options of the runs with their own parsers, before the warm starts take time.

    Raises:
        UserError: a value is out of its range; a name that a parser does not know ends the program.
    """
    for module in sorted({arm.module for arm in study.arms}) if options else ():
        parse(importlib.import_module(module).Config, None, options).resolve()


def run(config: Config) -> Path:
    """Run what is missing of a study; return its folder.

    Raises:
        UserError: no such study, or an option out of range.
        FailedError: runs have failed.
    """
    study = STUDIES[check_choice("study", config.name, STUDIES)]
    if config.seeds is not None:
        study = replace(study, seeds=config.seeds)
    if config.env_steps is not None:
        study = replace(study, env_steps=config.env_steps)
    check_number("--workers", config.workers, 1, MOST_WORKERS)
    check_number("--seeds", study.seeds, 1)
    check_number("--env-steps", study.env_steps, 1)
    check_options(study, config.options)
    folder = config.out / config.name
    check_writable("--out", folder)
    plan = {"study": config.name, "env_steps": study.env_steps, "options": list(config.options)}
    if (folder / "study.json").is_file() and (folder / "study.json").read_bytes() != encode_json(plan):
        raise UserError(f"{folder} holds this study with other options; take another --out, or remove that folder.")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "study.json", plan)
    lock = claim(folder)
    stopped: KeyboardInterrupt | None = None
    every = [(arm, seed) for seed in range(study.seeds) for arm in study.arms]
    runs = Runs(folder)
    with (
        open_progress(open_console()) as bar,
        ThreadPoolExecutor(config.workers) as pool,
    ):
        warming = bar.add_task("warm starts", total=study.seeds)
        training = bar.add_task("runs", total=len(every))
        try:
            for _ in pool.map(lambda seed: runs.warm(study, seed), range(study.seeds)):
                bar.advance(warming)
            for _ in pool.map(lambda job: runs.train(study, job[0], job[1], config.options), every):
                bar.advance(training)
        except KeyboardInterrupt as reason:
            stopped = reason
            runs.stop(reason)
            bar.console.print("stopping; the running ones save and end. Give the same command again to go on.")
    lock.close()
    found = collect(folder, study)
    if stopped and not found:
        raise stopped
    if not found:
        raise FailedError(f"No run of {config.name} has ended yet; nothing to report. {'; '.join(runs.failures)}")
    write_json(folder / "runs.json", found)
    draw(folder / f"{config.name}.png", study, found)
    complete = len(found) == len(every)
    write_whole(folder / f"{config.name}.md", text := page(config.name, study, found, complete=complete))
    print(text)
    if stopped:
        raise stopped
    if runs.failures:
        raise FailedError("Some runs failed:\n" + "\n".join(runs.failures))
    if config.write and complete:
        KEPT.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / f"{config.name}.png", KEPT / f"{config.name}.png")
        (KEPT / f"{config.name}.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
    return folder


if __name__ == "__main__":
    main(Config, run, __doc__)
