"""The processes of a study: warm starts and runs of the learners, stopped and resumed."""

import datetime
import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from vlgym.errors import FailedError, UserError, check_writable
from vlgym.files import discard, lock_folder, make_folder, open_end, write_whole
from vlgym.terminal import INTERRUPTED, TERMINATED, Terminated, open_console, open_progress

from ..runs.folder import checkpoints, encode_json, read_checkpoint_record, write_json
from .arms import Arm, Study

PHASE_FILE, PLAN, WARM_REPORT, MODEL_FILE = "done.json", "study.json", "warm.json", "model/config.json"
RESULTS_FOLDER = Path(__file__).parents[2] / "docs" / "studies"
MADE = "made.json"  # date and host of each study there
Phase = tuple[str, Sequence[Callable[[], object]]]  # title, and the jobs that are done side by side


class Runs:
    """The processes of one study, and how to stop them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stopping = threading.Event()
        self.failures: list[str] = []
        self.running: set[subprocess.Popen[bytes]] = set()

    def call(self, arguments: Sequence[str], log: Path) -> bool:
        """Run one module as a command, its output in a file; return whether it ended well."""
        if self.stopping.is_set():
            return False
        make_folder(log.parent)
        with open_end(log) as file:
            process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=file, stderr=file)
            self.running.add(process)
            code = process.wait()
            self.running.discard(process)
        if code not in (0, INTERRUPTED, TERMINATED) and not self.stopping.is_set():
            self.failures.append(f"{' '.join(arguments)} ended with code {code}; see {log}")
        return code == 0

    def stop(self, reason: KeyboardInterrupt) -> None:
        """Begin nothing more, and let what runs save and end. SIGTERM does not reach it."""
        self.stopping.set()
        if isinstance(reason, Terminated):
            for process in list(self.running):
                process.terminate()

    def warm(self, study: Study, seed: int) -> Path:
        """The folder of the warm start that all arms of a seed share; made if missing."""
        out = self.folder / "warm" / f"seed-{seed}"
        if not (out / WARM_REPORT).is_file():
            discard(out)
            arguments = ["baselines.sft", "--env", study.env, "--seed", str(seed), "--out", str(out)]
            arguments += ["--threads", "1", *(study.warm_options or ())]
            self.call(arguments, self.folder / "logs" / f"warm-{seed}.txt")
        return out

    def train(self, study: Study, arm: Arm, seed: int, options: Sequence[str]) -> None:
        """One run of one arm, unless it is done. Only the first arm judges the warm start."""
        fresh = ["--env", study.env, "--seed", str(seed), *study.options, *arm.options, *options]
        if study.warm_options is not None:
            warm = self.folder / "warm" / f"seed-{seed}"
            if not (warm / WARM_REPORT).is_file():
                return
            limit = read_checkpoint_record(warm / WARM_REPORT)["report"]["max_new_tokens"]
            fresh += ["--model", str(warm), "--max-new-tokens", str(limit)]
            if arm != study.arms[0]:
                fresh += ["--no-eval-before"]
        self.learn(arm.module, f"{arm.slug}-{seed}", study.env_steps, fresh, {"arm": arm.label, "seed": seed})

    def learn(self, module: str, name: str, env_steps: int, fresh: Sequence[str], done: Mapping[str, Any]) -> None:
        """One run of a learner: begun with the options `fresh`, resumed, or done already."""
        out, steps = self.folder / "runs" / name, ("--env-steps", str(env_steps))
        if (out / PHASE_FILE).is_file() or self.stopping.is_set():
            return
        begun = bool(checkpoints(out / "checkpoints"))
        if not begun:
            discard(out)

        # A run without a model has failed, or can be resumed.
        resume = ["--resume"] if begun else []
        arguments = [module, *resume, "--out", str(out), *steps, "--threads", "1", *fresh]
        ended = self.call(arguments, self.folder / "logs" / f"{name}.txt")
        if ended and (out / MODEL_FILE).is_file():
            write_json(out / PHASE_FILE, done)

    def publish(
        self, name: str, results: Sequence[Any], draw: Callable[[Path], None], page: str,
        stopped: KeyboardInterrupt | None, *, write: bool,
    ) -> Path:  # fmt: skip
        """Write raw runs, plot and page, with `write` to docs/studies/ too; a `FailedError` without runs."""
        if not results:
            failures = "; ".join(self.failures)
            raise stopped or FailedError(f"No run of {name} has ended yet; nothing to report. {failures}")
        write_json(self.folder / "runs.json", results)
        draw(self.folder / f"{name}.png")
        write_whole(self.folder / f"{name}.md", page)
        print(page)
        if stopped:
            raise stopped
        if self.failures:
            raise FailedError("Some runs failed:\n" + "\n".join(self.failures))

        # The pages of the documentation are generated from these files.
        if write:
            RESULTS_FOLDER.mkdir(parents=True, exist_ok=True)
            write_whole(RESULTS_FOLDER / f"{name}.png", (self.folder / f"{name}.png").read_bytes())
            data = json.dumps(results, separators=(",", ":")) + "\n"
            write_whole(RESULTS_FOLDER / f"{name}.json", data)
            note_made(name)
        return self.folder

    def carry_out(self, workers: int, phases: Sequence[Phase]) -> KeyboardInterrupt | None:
        """Do the jobs of each phase side by side; return what stopped them."""
        with open_progress(open_console()) as bar, ThreadPoolExecutor(workers) as pool:
            tasks = [bar.add_task(title, total=len(jobs)) for title, jobs in phases]
            try:
                for task, (_, jobs) in zip(tasks, phases, strict=True):
                    for _ in pool.map(lambda job: job(), jobs):
                        bar.advance(task)
            except KeyboardInterrupt as reason:
                self.stop(reason)
                bar.console.print("stopping; the running ones save and end. Give the same command again to go on.")
                return reason
        return None


def note_made(name: str) -> None:
    """Write date and host of a study next to its raw runs."""
    file, host = RESULTS_FOLDER / MADE, f"{platform.machine()}, {os.cpu_count()} cores"
    made = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    made[name] = {"date": f"{datetime.date.today()}", "host": host}
    write_whole(file, json.dumps(made, indent=1) + "\n")


def open_study(folder: Path, plan: Mapping[str, Any]) -> IO[bytes]:
    """Make or reopen the folder of a study; return its lock. A `UserError` where it cannot be
    written to, or holds this study with another plan."""
    check_writable("--out", folder)
    file = folder / PLAN
    if file.is_file() and file.read_bytes() != encode_json(plan):
        raise UserError(f"{folder} holds this study with other options; take another --out, or remove that folder.")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, plan)
    return lock_folder(folder)
