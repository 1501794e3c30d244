"""Break the rules of each family, one at a time, and see whether the behaviour fingerprint notices.

    python tests/behaviour_mutations.py [--only REGEX] [--write]

Each mutation is a replacement in one source file; the list stands in behaviour_mutations.yaml. The package is copied
into a temporary folder, changed there, and measured in a process of its own, against the unchanged package measured in
the same way. Nothing is downloaded, and the working tree is never touched. `--write` writes
docs/benchmarks/behaviour_mutations.md; with `--only` the rows of the others are kept.
`tests/test_behaviour_mutations.py` runs some of the cheap ones and checks that all still apply.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "behaviour_mutations.md"
ROWS = PAGE.with_suffix(".json")
LIST = Path(__file__).with_suffix(".yaml")

MEASURE = """
import json, sys
from functools import partial
from vlgym.making import build
from vlgym.registry import get_registry
from vlgym.testing.fingerprint import measure_behaviour
spec = get_registry().get(sys.argv[1])
behaviour = measure_behaviour(partial(build, spec), spec)
sys.stderr.write("MEASURED " + json.dumps([behaviour.fingerprint, behaviour.pictures]) + chr(10))
"""


@dataclass(frozen=True)
class Mutation:
    """One rule, broken.

    Attributes:
        what: what is wrong then, in words.
        env_id: environment that is measured, without `vlgym/` and version.
        path: source file, from the repository's root.
        old: text that occurs once in it.
        new: what stands there instead.
        unseen: why the fingerprint does not notice, where that is known.
    """

    what: str
    env_id: str
    path: str
    old: str
    new: str
    unseen: str = ""


MUTATIONS = tuple(Mutation(**row) for row in yaml.safe_load(LIST.read_text(encoding="utf-8")))


def mutate(mutation: Mutation, folder: Path) -> list[str]:
    """Copy the package of a mutation into `folder`, changed; return what to put first on the module search path.

    Raises:
        ValueError: the old text does not occur exactly once.
    """
    package = ROOT / Path(*Path(mutation.path).parts[: 1 if mutation.path.startswith("vlgym/") else 4])
    target = folder / package.name
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__"))
    file = target / (ROOT / mutation.path).relative_to(package)
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.path}: the text of {mutation.what!r} occurs {text.count(mutation.old)} times")
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return [str(folder)]


def measure(env_id: str, first: list[str]) -> tuple[str, str]:
    """Measure fingerprint and pictures of `vlgym/NAME-v0` in a process of its own; an error counts as a behaviour.

    Raises:
        RuntimeError: this machine lacks a part that the environment needs; that says nothing about the mutation.
    """
    given = [*first, *filter(None, [os.environ.get("PYTHONPATH", "")]), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(given), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, f"vlgym/{env_id}-v0"], capture_output=True, text=True, env=environment,
        timeout=900, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    for line in done.stderr.splitlines():
        if line.startswith("MEASURED "):
            fingerprint, pictures = json.loads(line.removeprefix("MEASURED "))
            return fingerprint, pictures
    error = (done.stderr.strip().splitlines() or ["?"])[-1]
    if "MissingSystemPartError" in error:
        raise RuntimeError(f"{env_id} does not run here: {error}")
    return f"error: {error[:100]}", ""


def judge(mutation: Mutation, usual: tuple[str, str]) -> str:
    """Return what noticed the mutation: `fingerprint`, `pictures`, an error; or an empty string."""
    from vlgym.pictures import compare_sheets, unpack
    from vlgym.registry import get_registry

    with tempfile.TemporaryDirectory() as folder:
        fingerprint, pictures = measure(mutation.env_id, mutate(mutation, Path(folder)))
    if fingerprint.startswith("error"):
        return fingerprint
    if fingerprint != usual[0]:
        return "fingerprint"
    exact = get_registry().get(f"vlgym/{mutation.env_id}-v0").pictures == "exact"
    return "pictures" if compare_sheets(unpack(usual[1]), unpack(pictures), exact=exact) else ""


def main() -> int:
    """Run the mutations; exit status 1 when more than is known goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression for path, id or words of the mutations")
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if re.search(options.only, f"{m.path} {m.env_id} {m.what}")]
    known = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    usual: dict[str, tuple[str, str]] = {}
    for mutation in chosen:
        if mutation.env_id not in usual:
            usual[mutation.env_id] = measure(mutation.env_id, [])
            if usual[mutation.env_id][0].startswith("error"):
                raise RuntimeError(f"{mutation.env_id}, unchanged, fails: {usual[mutation.env_id][0]}")
        noticed = judge(mutation, usual[mutation.env_id])
        known[f"{mutation.env_id}: {mutation.what}"] = noticed
        print(f"{mutation.env_id}: {mutation.what}: {noticed or 'UNNOTICED'}", flush=True)
        if options.write:
            ROWS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if options.write:
        PAGE.write_text(write_page(known), encoding="utf-8")
    return int(any(not known[f"{m.env_id}: {m.what}"] and not m.unseen for m in chosen))


def write_page(rows: dict[str, str]) -> str:
    """Return the page: a table of what was noticed by what."""
    seen = sum(bool(rows.get(f"{m.env_id}: {m.what}")) for m in MUTATIONS)
    run = sum(f"{m.env_id}: {m.what}" in rows for m in MUTATIONS)
    lines = [
        "# Mutations of behaviour\n",
        f"Written by `tests/behaviour_mutations.py --write`. Each row breaks one rule of one environment in a copy of "
        f"the source; the fingerprint of the changed copy is compared with that of the unchanged one. {run} of "
        f"{len(MUTATIONS)} were run, {seen} were noticed: by the hash of texts, rewards, flags and info (fingerprint), "
        "by the small pictures alone (pictures), or because the environment failed.\n",
        "| environment | what was broken | noticed by |",
        "|---|---|---|",
    ]
    for m in MUTATIONS:
        noticed = rows.get(f"{m.env_id}: {m.what}")
        told = (
            "not run"
            if noticed is None
            else noticed.replace("|", "/") or f"**not noticed**: {m.unseen or 'why is open'}"
        )
        lines.append(f"| {m.env_id} | {m.what} | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
