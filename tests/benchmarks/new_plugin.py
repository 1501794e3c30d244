"""The first tutorial's own commands, from nothing to an environment with its certificate that is trained on: what a
person types, and how long each command takes.

    python tests/benchmarks/new_plugin.py --write

The commands are read from docs/tutorials/first-environment.md and run as they stand there, in an empty folder and a new
virtual environment that shares the installed packages. `pip install` fetches setuptools from the package index.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import PAGES, finish, parse_write, table

ROOT = PAGES.parents[1]
TUTORIAL = PAGES.parent / "tutorials" / "first-environment.md"
STEPS = ("vlgym new-plugin", "pip install", "vlgym check", "python -m baselines")
"""How the tutorial's commands begin, in their order."""
WORDS_PER_MINUTE, LETTERS_PER_WORD = 40, 5


def read_commands(text: str) -> list[str]:
    """Return the commands of the tutorial's first block of code.

    Raises:
        ValueError: they are not a plugin's writing, installation, certificate and training.
    """
    block = re.search(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    commands = block[1].splitlines() if block else []
    if len(commands) != len(STEPS) or not all(map(str.startswith, commands, STEPS)):
        raise ValueError(f"the tutorial's commands are {commands}, not {', '.join(STEPS)}")
    return commands


def seconds_to_type(letters: int) -> float:
    """Return how long a person types who types 40 words of five letters a minute."""
    return letters / (WORDS_PER_MINUTE * LETTERS_PER_WORD) * 60


def make_place(folder: Path) -> dict[str, str]:
    """Make a virtual environment as a user has it; return the variables that switch it on."""
    sys.path.insert(0, str(ROOT / "tests"))
    from fresh import make_fresh

    python = make_fresh(folder, [])
    start = python.parent / "vlgym"  # pip would write it with vlgym, which is shared here
    start.write_text(f"#!{python}\nimport sys\n\nfrom vlgym.cli.app import main\n\nsys.exit(main())\n")
    start.chmod(0o755)
    return {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": str(python.parent.parent)}


def run(command: str, place: Path, env: dict[str, str]) -> tuple[float, float, str]:
    """Run one command; return seconds, seconds of processor time, and what it printed."""
    begun, used = time.perf_counter(), processor_time()
    done = subprocess.run(shlex.split(command), cwd=place, env=env, capture_output=True, text=True, check=False)
    seconds, used = time.perf_counter() - begun, processor_time() - used
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
    print(f"{seconds:6.1f} s  {command}", file=sys.stderr, flush=True)
    return seconds, used, done.stdout


def processor_time() -> float:
    """Return the seconds that all finished child processes have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Run the commands one after another and write the page."""
    write = parse_write(__doc__ or "").write
    commands = read_commands(TUTORIAL.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        env, place = make_place(Path(name)), Path(name) / "work"
        place.mkdir()
        results = [run(command, place, env) for command in commands]
        (log,) = place.glob("runs/**/log.jsonl")
        updates = [json.loads(line) for line in log.read_text().splitlines()]
    letters = [len(command) + 1 for command in commands]
    rows = [
        [f"`{command}`", count, f"{seconds_to_type(count):.0f} s", f"{took:.0f} s", f"{used:.0f} s"]
        for command, count, (took, used, _) in zip(commands, letters, results, strict=True)
    ]
    typed, worked, used = seconds_to_type(sum(letters)), *(sum(each[at] for each in results) for at in (0, 1))
    rows.append(["**together**", sum(letters), f"{typed:.0f} s", f"{worked:.0f} s", f"{used:.0f} s"])
    said = next(line for line in reversed(results[2][2].splitlines()) if line.strip())
    body = (
        "The commands of [the first tutorial](../tutorials/first-environment.md), read from the page and run in an "
        "empty folder and a new virtual environment; the environment is the one that the first command writes, "
        f"unchanged. Typing: {WORDS_PER_MINUTE} words of {LETTERS_PER_WORD} letters a minute, the line's end included. "
        "`pip install` asks the package index for setuptools; vlgym and the learner are installed already. Running "
        "takes longer than the processor time where the machine has other work.\n\n"
        "Target: under five minutes of typing.\n\n"
        + table(["command", "letters", "typing", "running", "processor time"], rows)
        + f"\n\nThe check's last line: `{' '.join(said.split())}`. The training made {len(updates)} updates of "
        f"{updates[-1]['env_steps']:,} environment steps in all, after its warm start. Typing and running together: "
        f"{(typed + worked) / 60:.1f} minutes."
    )
    finish("new_plugin", "From nothing to a trained environment", body, ["vlgym", "torch", "transformers"], write)


if __name__ == "__main__":
    main()
