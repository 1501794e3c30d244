"""Make the learners wrong in many ways, one at a time, and see whether the tests of direction notice.

    python tests/mutations.py                       # all of tests/mutations.toml: about 20 minutes of one core
    python tests/mutations.py --only ArCHer --workers 2
    python tests/mutations.py --write               # writes docs/benchmarks/mutations.md, too
    python tests/mutations.py --suite before        # the ten of the list's head against the older learner tests

Each change is made to a copy of `baselines/` in a temporary folder, and `tests/baselines/test_direction*.py` run on
that copy until the first failure; the unchanged copy comes first and must pass. Mutation libraries (mutmut, cosmic-ray)
change operators and constants everywhere; here each change is a mistake in the use of an equation, which only a person
can name, so the list is ours and the few lines that apply it are, too.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))

from report import PAGES, finish, table  # noqa: E402

COPIED = ("baselines", "vlgym", "tests", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md")
SUITES = {
    "direction": sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/baselines/test_direction*.py")),
    "before": [f"tests/baselines/test_{name}.py" for name in ("losses", "algorithms", "archer", "vldac")],
}
FIRST = {
    "loop.py": "groups", "grpo.py": "groups", "archer.py": "archer", "learning/critics.py": "archer",
    "learning/replay.py": "archer", "learning/warm_start.py": "runs", "learning/evaluation.py": "runs",
    "learning/run.py": "runs",
}  # fmt: skip
"""Which of the files is run first, where another would only take time."""
RESULTS = PAGES / "mutations.json"
SECONDS = 600  # of the processor in one run, after which it counts as caught: it would not have ended
PASSED, FOREIGN = 0, 86
ASK = """
import sys, pytest, matplotlib.pyplot, torch.utils.tensorboard
pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]])
outside = [name for name, module in sys.modules.items() if "site-packages" in (getattr(module, "__file__", None) or "")]
print("", "loaded:", *outside, sep="\\n")
"""
TOGETHER, UNCHANGED = "all ten together", "unchanged"
TOKENIZER = "baselines.models.tokenizer"  # trained where it is first used, for a second: kept for all, and in no list


class Mutation(NamedTuple):
    """One wrong change.

    Attributes:
        name: what goes wrong; file: where, in `baselines/`.
        old: a text that the file holds exactly once; new: what stands there instead.
    """

    name: str
    file: str
    old: str
    new: str


LIST = tomllib.loads((ROOT / "tests" / "mutations.toml").read_text(encoding="utf-8"))
LISTED: list[str] = LIST.pop("listed")
MUTATIONS = [Mutation(name, file, *change) for file, changes in LIST.items() for name, change in changes.items()]


class Result(NamedTuple):
    """What a run of the tests said: the test that failed ("" if all passed), its error, and the CPU seconds it took."""

    test: str
    error: str
    seconds: float


def apply(root: Path, changes: Sequence[Mutation]) -> None:
    """Change the sources under `root`.

    Raises:
        SystemExit: a source does not hold a change's old text exactly once.
    """
    for change in changes:
        path = root / "baselines" / change.file
        text = path.read_text(encoding="utf-8")
        if (count := text.count(change.old)) != 1:
            sys.exit(
                f"mutation {change.name!r}: baselines/{change.file} holds its old text {count} times, not once; "
                f"change it in tests/mutations.toml: {change.old!r}"
            )
        path.write_text(text.replace(change.old, change.new), encoding="utf-8")


@contextlib.contextmanager
def changed_copy(changes: Sequence[Mutation]) -> Iterator[Path]:
    """A temporary copy of the project with changes."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, Path(folder, name), ignore=shutil.ignore_patterns("*.png"))
            else:
                shutil.copy(ROOT / name, folder)
        apply(Path(folder), changes)
        yield Path(folder)


def run_tests(copy: Path, files: Sequence[str]) -> int:
    """In a process of its own: run test files on a copy; return pytest's status, or `FOREIGN`."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    os.chdir(copy)
    sys.dont_write_bytecode = True
    sys.path[:] = [str(copy), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    output = os.open("output.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest

    status = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files]))
    sys.stdout.flush()
    used = Path(sys.modules["baselines"].__file__ or "").resolve()
    return status if used.is_relative_to(copy.resolve()) else FOREIGN


def judge(copy: Path, status: int, seconds: float) -> Result:
    """Read what a run wrote.

    Raises:
        SystemExit: it did not test the copy, or no test of it was run.
    """
    text = (copy / "output.txt").read_text(encoding="utf-8", errors="replace")
    if status == PASSED:
        return Result("", "", seconds)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return Result("(did not end)", f"more than {SECONDS} s", seconds)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?\.py)(?:::(.+?))?(?: - (.*))?$", text, re.MULTILINE)
    if os.waitstatus_to_exitcode(status) == FOREIGN or failed is None:
        sys.exit(f"the tests did not run on the copy (status {status}):\n{text[-3000:]}")
    raised = re.findall(r"^\S+:\d+: (\w+)$", text, re.MULTILINE)
    return Result(failed[2] or failed[1], raised[-1] if raised else "", seconds)


def load_libraries() -> None:
    """Load what the tests import beside our own packages, so that every run begins with it."""
    command = [sys.executable, "-c", ASK, *SUITES["direction"]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.split("loaded:\n")[1].split():
        if not name.startswith("vlgym") and "baselines" not in name:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    importlib.import_module(TOKENIZER).build_tokenizer()
    for name in [name for name in sys.modules if name.split(".")[0] in ("baselines", "vlgym") and name != TOKENIZER]:
        del sys.modules[name]
    gc.freeze()  # what is here need not be looked through again in every process


def run_all(jobs: Sequence[tuple[str, Sequence[Mutation]]], suite: str, workers: int) -> Iterator[tuple[str, Result]]:
    """Run a suite once for each (name, changes), up to `workers` at a time, in processes that have the libraries
    loaded already but nothing of ours; yield results as they come."""
    open_runs: dict[int, tuple[str, Path, contextlib.ExitStack]] = {}
    waiting = list(jobs)
    while waiting or open_runs:
        if waiting and len(open_runs) < workers:
            name, changes = waiting.pop(0)
            stack = contextlib.ExitStack()
            copy = stack.enter_context(changed_copy(changes))
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    first = [FIRST[change.file] for change in changes[:1] if change.file in FIRST]
                    status = run_tests(copy, sorted(SUITES[suite], key=lambda file: f"{[*first, '-'][0]}." not in file))
                finally:
                    os._exit(status)
            open_runs[child] = (name, copy, stack)
            continue
        child, status, used = os.wait4(-1, 0)
        name, copy, stack = open_runs.pop(child)
        with stack:
            result = judge(copy, status, used.ru_utime + used.ru_stime)
        yield name, result


def write_page(saved: dict[str, Any], write: bool) -> None:
    """Print the page of what is known, and write it if asked to."""
    found, before = saved["direction"], saved.get("before", {})
    rows, caught = [], 0
    for change in MUTATIONS:
        if change.name in found:
            test, error, seconds = found[change.name]
            caught += bool(test)
            earlier = "" if change.name not in before else "caught" if before[change.name][0] else "not caught"
            rows.append([change.name, f"`{change.file}`", "caught" if test else "**not caught**",
                         f"`{test}`" if test else "", error, f"{seconds:.0f}", earlier])  # fmt: skip
    untried = f" ({len(MUTATIONS) - len(rows)} more of the list were not tried)" if len(rows) < len(MUTATIONS) else ""
    whole = ""
    if UNCHANGED in found:
        whole = (
            f"On the unchanged copy these pass, in {found[UNCHANGED][2]:.0f} CPU seconds beside what loading the "
            "libraries takes, which is done once for all. "
        )
    parts = [
        f"{caught} of {len(rows)} mistakes in the learners{untried} are caught by the tests of direction alone "
        "(`tests/baselines/test_direction*.py`), each made by itself in a copy of the package. "
        f"{whole}`caught by` is the first test that failed and `error` what it raised; the seconds are those until "
        "then."
    ]
    if before:
        files = ", ".join(f"`{file}`" for file in SUITES["before"])
        parts.append(
            f"The last column is of the learner tests that there were before ({files}), for the ten changes that a "
            "review named."
        )
    if TOGETHER in before:
        test = before[TOGETHER][0]
        parts[-1] += f" With all ten at once {f'`{test}` fails' if test else 'they all pass'}."
    header = ["mistake", "file in `baselines/`", "", "caught by", "error", "CPU s", "by the tests before"]
    if not before:
        header, rows = header[:-1], [row[:-1] for row in rows]
    body = "\n\n".join([*parts, table(header, rows)])
    finish("mutations", "Mistakes that the tests notice", body, ["torch", "transformers", "pytest"], write,
           script="tests/mutations.py")  # fmt: skip


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATTERN", help="mutations whose name or file it matches")
    parser.add_argument("--suite", choices=SUITES, default="direction")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/mutations.md and .json")
    args = parser.parse_args()
    listed = [change for change in MUTATIONS if change.name in LISTED]
    everything = [(change.name, [change]) for change in (listed if args.suite == "before" else MUTATIONS)]
    if args.suite == "before":
        everything.append((TOGETHER, listed))
    jobs = [(name, changes) for name, changes in everything if re.search(args.only, f"{name} {changes[0].file}")]
    saved: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    known = {name for name, _ in (everything if args.only else jobs)}  # older results of the same list are kept
    saved[args.suite] = {name: result for name, result in saved.get(args.suite, {}).items() if name in known}
    results: dict[str, Result] = {}
    load_libraries()
    if args.suite == "direction":
        jobs.insert(0, (UNCHANGED, []))
    for name, result in run_all(jobs, args.suite, args.workers):
        saved[args.suite][name] = results[name] = result
        print(f"{len(results)}/{len(jobs)} {name}: {result.test or 'passed'} {result.error}", flush=True)
        if args.write:
            RESULTS.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
        if name == UNCHANGED and result.test:
            sys.exit(f"the unchanged copy fails: {result}")
    if saved.get("direction"):
        write_page(saved, args.write)
    missed = [name for name, result in results.items() if name != UNCHANGED and not result.test]
    if missed and args.suite == "direction":
        sys.exit(f"not caught: {', '.join(missed)}")


if __name__ == "__main__":
    main()
