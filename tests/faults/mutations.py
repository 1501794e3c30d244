"""Make learners and environments wrong, one change at a time, and see whether it is noticed.

    python tests/faults/mutations.py --only losses.py --workers 2

Every change of mutations.yaml is made in a copy of the sources. A mistake in a learner must fail the
tests of direction (`tests/baselines/direction`); one in an environment must change the behaviour that
registry.yaml records (`vlgym check ID --only recorded`); one elsewhere must fail the test file that it
names. The unchanged copy must pass.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("baselines", "docs", "vlgym", "plugins", "tests", "pyproject.toml")
LONGEST_S = 900  # a run that takes longer counts as noticed: it would not have ended
NEAREST = {"archer": "_archer", "loop": "_groups", "grpo": "_groups"}  # the tests of direction to run first


class Mutation(NamedTuple):
    """A wrong change: in words, old and new text, and the environment or test file that fails."""

    file: str
    what: str
    old: str = ""
    new: str = ""
    env_id: str = ""


def read_list() -> list[Mutation]:
    """Return the changes of mutations.yaml.

    Raises:
        SystemExit: a file does not hold a change's old text exactly once.
    """
    table = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    mutations = [Mutation(file, *change) for file, changes in table.items() for change in changes]
    for each in mutations:
        count = (ROOT / each.file).read_text(encoding="utf-8").count(each.old)
        if count != 1:
            sys.exit(f"{each.file} holds the old text of {each.what!r} {count} times, not once: {each.old!r}")
    return mutations


def is_noticed(mutation: Mutation) -> bool:
    """Return whether the checks fail on a copy with the change.

    Raises:
        RuntimeError: they did not run on the copy.
    """
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        copy = Path(name)
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("build"))
            else:
                shutil.copy(ROOT / part, copy)
        if mutation.old:
            path = copy / mutation.file
            path.write_text(path.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
        if mutation.env_id.startswith("tests/"):
            command = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", mutation.env_id]
        elif mutation.env_id:
            command = ["-m", "vlgym", "check", mutation.env_id, "--only", "recorded"]
        else:
            tests = copy.glob("tests/baselines/direction/test_direction*.py")
            first = f"test_direction{NEAREST.get(Path(mutation.file).stem, '')}.py"
            direction = sorted(map(str, tests), key=lambda path: (not path.endswith(first), path))
            command = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *direction]
        sources = [str(copy), *map(str, copy.glob("plugins/*/src"))]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sources), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                [sys.executable, *command], cwd=copy, env=env, capture_output=True, text=True, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            return True
        if done.returncode not in (0, 1) or "MissingSystemPartError" in done.stdout + done.stderr:
            raise RuntimeError(f"{mutation.what}: status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
        return done.returncode == 1


def run(mutations: Sequence[Mutation], workers: int) -> list[Mutation]:
    """Return those that go unnoticed."""
    missed = []
    with ThreadPoolExecutor(workers) as pool:
        for number, (each, noticed) in enumerate(zip(mutations, pool.map(is_noticed, mutations), strict=True), 1):
            print(f"{number}/{len(mutations)} {each.file}: {each.what}: {noticed or 'UNNOTICED'}", flush=True)
            if not noticed:
                missed.append(each)
    return missed


def main() -> None:
    """Read the command line, and run; the exit status is 1 where a change goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATTERN", help="changes that it matches")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    changes = ((each, f"{each.file} {each.env_id} {each.what}") for each in read_list())
    chosen = [each for each, words in changes if re.search(args.only, words)]
    unchanged = {each.env_id: Mutation(each.file, "nothing", env_id=each.env_id) for each in chosen}
    if wrong := [each.env_id or "the learners" for each in unchanged.values() if is_noticed(each)]:
        sys.exit(f"the unchanged copy fails: {', '.join(wrong)}")
    missed = run(chosen, args.workers)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} noticed")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
