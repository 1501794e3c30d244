"""Everything that needs a GPU, in pieces of under ten minutes, the most valuable first.

    python tests/benchmarks/gpu.py --write
    python tests/benchmarks/gpu.py decode prefill --out results
    python tests/benchmarks/gpu.py --merge results --write

Each piece is a process of its own with a time limit. What it found is added to docs/benchmarks/gpu.json (with `--out`,
to a folder, from which `--merge` takes it over), and `--write` makes the pages of all that is there. Without CUDA
nothing is run, every piece is shown as not run, and the program ends well. A checkout that is not installed will do.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from report import PAGES, describe_machine, finish, parse_write, table

ROOT = Path(__file__).resolve().parents[2]
HERE = "tests/benchmarks"
RESULTS, SPEED = "gpu.json", "gpu_speed.json"
NONE = "No piece has been run on a GPU yet: every row says so, and nothing on this page says anything about one."
PACKAGES = ("vlgym", "torch", "transformers", "peft")
LIMIT = 570  # seconds


@dataclass(frozen=True)
class Piece:
    """Something to run on a GPU.

    Attributes:
        name: on the command line.
        what: in words.
        command: words after `python`; OUT stands for the folder of results, WORK for one that is thrown away.
        settings: environment variables.
    """

    name: str
    what: str
    command: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()


def _speed(part: str, what: str) -> Piece:
    return Piece(part, what, (f"{HERE}/gpu_speed.py", "--part", part, "--results", f"OUT/{SPEED}"))


PIECES = (
    Piece(
        "tests", "the learner tests that follow a device, on the GPU",
        (
            "-m", "pytest", "-q", "-m", "on_device", "--junitxml", "WORK/tests.xml", "-p", "no:cacheprovider",
            "tests/baselines",
        ),
        (("VLGYM_TEST_DEVICE", "cuda"),),
    ),
    _speed("decode", "milliseconds per token against the time to read the weights, with graphs and without"),
    _speed("prefill", "tokens per second of prompts"),
    _speed("vision", "milliseconds per image"),
    _speed("update", "tokens per second and memory by micro-batch, sampler against scorer"),
    _speed("loop", "environment steps per second of the whole loop"),
    Piece(
        "learn", "VL-DAC on NumberLine for 100 updates, tiny model",
        (
            "-m", "baselines.vldac", "--env", "vlgym/NumberLine-v0", "--updates", "100", "--device", "cuda",
            "--out", "WORK/run",
        ),
    ),
    Piece(
        "generate", "the same replies as transformers' `generate`, and how much faster",
        (f"{HERE}/gpu_pieces.py", "generate", "WORK/found.json"),
    ),
    Piece(
        "memory", "the most memory of updates and rollouts against what `--plan` says",
        (f"{HERE}/gpu_pieces.py", "memory", "WORK/found.json"),
    ),
)  # fmt: skip


# ---- running ---------------------------------------------------------------------------------------------------------


def command_of(piece: Piece, out: Path | str = "OUT", work: Path | str = "WORK") -> list[str]:
    """The words after `python`, with the folders filled in."""
    return [word.replace("OUT", str(out)).replace("WORK", str(work)) for word in piece.command]


def environment(folder: Path, settings: Sequence[tuple[str, str]] = ()) -> dict[str, str]:
    """Environment variables under which the checkout's packages and plugins are found, installed or not."""
    sources = [ROOT, *sorted(ROOT.glob("plugins/*/src"))]
    try:
        metadata.version("vlgym")
    except metadata.PackageNotFoundError:
        sources.insert(0, describe_distributions(folder))
    paths = [*map(str, sources), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **dict(settings)}


def describe_distributions(folder: Path) -> Path:
    """Write what an installer would note of the checkout's distributions: names, versions and entry points."""
    for file in (ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        name, version = project["name"], project.get("version", "0")
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        lines = []
        for group, points in project.get("entry-points", {}).items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def run(piece: Piece, out: Path, limit: float) -> dict[str, Any]:
    """Run a piece; say how it ended, and what it found."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        command = [sys.executable, *command_of(piece, out.resolve(), work)]
        start, ended = time.perf_counter(), ""
        try:
            variables = environment(work / "distributions", piece.settings)
            done = subprocess.run(command, cwd=ROOT, env=variables, timeout=limit, capture_output=True, text=True)
            print(done.stdout[-6000:], done.stderr[-6000:], sep="\n", flush=True)
            ended = "ran" if done.returncode == 0 else f"failed (exit status {done.returncode})"
        except subprocess.TimeoutExpired:
            ended = f"stopped after {limit:.0f} s"
        found = read_found(work)
        return {"ended": ended, "seconds": time.perf_counter() - start, "found": found, "machine": machine()}


def read_found(work: Path) -> dict[str, Any]:
    """What a piece left in its folder, by name."""
    found: dict[str, Any] = {}
    if (work / "found.json").is_file():
        found |= json.loads((work / "found.json").read_text(encoding="utf-8"))
    if (work / "tests.xml").is_file():
        suite = ElementTree.parse(work / "tests.xml").getroot().find("testsuite")
        if suite is not None:
            found |= {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
            bad = [case for case in suite.iter("testcase") if case.find("failure") is not None]
            found["failed"] = [str(case.get("name")) for case in bad]
    log = work / "run" / "log.jsonl"
    if log.is_file():
        last = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
        names = ("rollout/logp_diff_mean", "rollout/logp_diff_max", "speed/env_steps_per_s", "speed/peak_memory_gib")
        found |= {"updates": last["update"], **{name: last[name] for name in names}}
        evaluations = json.loads((work / "run" / "evaluation.json").read_text(encoding="utf-8"))
        found |= {"success before": evaluations[0].get("success"), "success after": evaluations[-1].get("success")}
    return found


def has_cuda() -> bool:
    """Whether torch finds a CUDA device."""
    import torch

    return torch.cuda.is_available()


def machine() -> str:
    """The GPU, and what else a page states."""
    import torch

    return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}; {describe_machine(PACKAGES)}"


# ---- results and pages -----------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """A file of results; empty where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(path: Path, results: dict[str, Any]) -> None:
    """Write a file of results."""
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def merge(folder: Path, pages: Path | None = None) -> None:
    """Take over the results in a folder, those of both files; what is newer there wins."""
    pages = pages or PAGES
    write(pages / RESULTS, read(pages / RESULTS) | read(folder / RESULTS))
    speed = read(pages / SPEED)
    for where, parts in read(folder / SPEED).items():
        speed.setdefault(where, {}).update(parts)
    if speed:
        write(pages / SPEED, speed)


def status(results: dict[str, Any], piece: Piece) -> str:
    """How a piece ended, in words."""
    result = results.get(piece.name)
    return f"{result['ended']}, {result['seconds']:.0f} s" if result else "not run"


def show(value: Any) -> str:
    """A number in four digits, or text."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def page(results: dict[str, Any]) -> str:
    """The body of the page."""
    rows = [(f"`{piece.name}`", piece.what, status(results, piece)) for piece in PIECES]
    text = [
        "What needs a GPU, in order of value. The five parts from `decode` to `loop` write their tables to "
        "[gpu_speed.md](gpu_speed.md).",
        "" if results else NONE,
        table(("piece", "what", "how it ended"), rows),
    ]
    for piece in PIECES:
        result = results.get(piece.name)
        if result and result["found"]:
            found = table(("what", "value"), [(name, show(value)) for name, value in result["found"].items()])
            text += [f"## {piece.name}", found]
        if result:
            text.append(f"`{piece.name}`: {result['machine']}")
    return "\n\n".join(part for part in text if part)


def main() -> int:
    """Command line; returns the exit status: 1 if a piece failed."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help="what to run; all if not given")
    parser.add_argument("--list", action="store_true", help="list the pieces, and end")
    parser.add_argument("--dry-run", action="store_true", help="show the commands, and end")
    parser.add_argument("--out", type=Path, help="folder for the results instead of docs/benchmarks/")
    parser.add_argument("--merge", type=Path, metavar="FOLDER", help="run nothing; take over the results in FOLDER")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds per piece (default {LIMIT})")
    args = parse_write(__doc__ or "", parser)
    names = [piece.name for piece in PIECES]
    unknown = [name for name in args.pieces if name not in names]
    if unknown:
        parser.error(f"no piece {unknown[0]!r}; choose from {', '.join(names)}")
    chosen = [piece for piece in PIECES if piece.name in (args.pieces or names)]
    if args.list or args.dry_run:
        for piece in chosen:
            settings = "".join(f"{name}={value} " for name, value in piece.settings)
            print(
                f"{settings}python {shlex.join(command_of(piece))}" if args.dry_run else f"{piece.name}: {piece.what}"
            )
        return 0
    out, failed = args.out or PAGES, False
    if args.merge:
        merge(args.merge)
    elif has_cuda():
        out.mkdir(parents=True, exist_ok=True)
        for piece in chosen:
            print(f"{piece.name}: {piece.what}", flush=True)
            result = run(piece, out, args.limit)
            failed |= result["ended"] != "ran"
            write(out / RESULTS, read(out / RESULTS) | {piece.name: result})
            print(f"{piece.name}: {status({piece.name: result}, piece)}", flush=True)
    else:
        print("torch finds no CUDA device: nothing is run.", flush=True)
    finish("gpu", "What was run on a GPU", page(read(out / RESULTS)), PACKAGES, args.write)
    if args.write and (args.merge or has_cuda()):
        command = [sys.executable, f"{HERE}/gpu_speed.py", "--render", "--write"]
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(command, cwd=ROOT, env=environment(Path(scratch)), check=True, stdout=subprocess.DEVNULL)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
