"""The pages made from the code are fresh, and name environments and numbers as they are."""

from __future__ import annotations

import importlib
import importlib.machinery
import re
import statistics
import subprocess
import types

import pytest
from sources import ROOT

from vlgym.integrations.canary import CANARIES
from vlgym.registry.registry_file import read_registry


def load(name: str):
    """Import a file that is no package."""
    module = types.ModuleType(f"loaded_{name}")
    module.__file__ = str(ROOT / f"{name}.py")
    importlib.machinery.SourceFileLoader(module.__name__, module.__file__).exec_module(module)
    return module


def test_pages_from_the_code_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pages = load("docs/generate").generate()
    whole = {f"{name}.md" for name in ("check", "cli", "environments", "errors", "gallery", "hooks")}
    assert {*whole, "results.md", "../README.md"} <= pages.keys()
    assert {f"docs/{name}" for name in pages if not name.startswith("..")} <= {*HELD}  # a clone has them
    stale = [name for name, text in pages.items() if (ROOT / "docs" / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"


def test_trained_arms_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    figures = importlib.import_module("figures")
    judged = [(row.name, row.outcome.label) for row in figures.judge_all()]
    assert len(judged) == len(set(judged)) == 19  # without controls, repeated arms and arms with words
    assert not [label for _, label in judged if "grey" in label or "none" in label]
    assert ("algorithms", "VL-DAC") in judged
    assert not {("sight-NumberLine-v1", "VL-DAC"), ("words-NumberLine-v1", "VL-DAC, image")} & set(judged)
    assert not [name for name, _ in judged if name.startswith("words")]
    rows = figures.write_outcomes().splitlines()[2:]
    first = {row.study.label: row for row in reversed(figures.judge_all())}
    assert len(rows) == len(first)  # the first arm of each environment and form, not the best
    for row in rows:
        mean = statistics.mean(first[row[3 : row.index("]")]].outcome.after)
        assert f"| {mean:.2f}±" in row


def test_every_study_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    assert len((ROOT / "docs/results.md").read_text(encoding="utf-8").split()) <= 700
    pages = importlib.import_module("figures").write_study_pages()
    raw = {path.stem for path in (ROOT / "docs/studies").glob("*.json*")} - {"made", "real-model", "screens", "speed"}
    assert raw <= pages.keys()
    for name, text in pages.items():
        assert re.match(r"# .+\n", text), name
        assert "\n| " in text, name
        assert "Date: 20" in text or name == "outcomes", name


def test_the_readme_counts_current_environments_and_families() -> None:
    specs = [entry["spec"] for entry in read_registry().values() if not entry["spec"].replaced_by]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"**{len(specs)} vision environments in {len({spec.family for spec in specs})} families" in readme
    measured = sum(bool(entry.get("blind")) for entry in read_registry().values() if not entry["spec"].replaced_by)
    assert f"For {measured} of {len(specs)} environments" in readme
    assert f"| environments | {len(specs)} |" in readme
    ids = [int(cell) for cell in re.findall(r"^\| <img .*\| (\d+) \|$", readme, re.MULTILINE)]
    assert sum(ids) == len(specs)


HELD = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.split()
PAGES = [name for name in HELD if not re.search(r"/projects/|^tests/|CHANGELOG", name)]
MADE = r"<!-- table:.*?<!-- end of table -->|<!-- Written by docs/generate.py. -->.*|^```.*?^```|`[^`\n]+`"
MEASURED = (
    r"(?<![\w.])-?(?:[01]\.\d{2,3}(?!\w|\.\d)|\d[\d,.]* (?:steps|replies|frames|tokens)/s|\d[\d.]* (?:± \d|nats))"
)
ALLOWED = {  # TRL's version, places on the pitch, a default
    ("docs/trainers.md", "1.16"), ("docs/football.md", "-0.42"), ("docs/football.md", "0.42"),
    ("docs/learner.md", "0.001"),
}  # fmt: skip


def test_pages_written_by_hand_hold_no_measured_number() -> None:
    """Measured numbers come by a table mark; the log tells of past runs."""
    found = []
    for name in PAGES:
        if name in {"docs/log.md", "docs/security.md"}:
            continue
        text = re.sub(MADE, "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        found += [(name, hit[0]) for hit in re.finditer(MEASURED, text)]
    assert {*found} == ALLOWED


def test_every_picture_is_on_a_page() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in HELD)
    assert [path.name for path in (ROOT / "docs/images").iterdir() if f"images/{path.name}" not in text] == []


def test_ids_on_pages_exist() -> None:
    known = {*read_registry(), *CANARIES}
    for name in PAGES:
        ids = set(re.findall(r"vlgym/[A-Z]\w*-v\d+\b", (ROOT / name).read_text(encoding="utf-8")))
        assert ids <= known, name


def test_the_adapter_example_of_the_docs_walks_the_cliff() -> None:
    env = load("tests/fixtures/adapter_example").CliffWalk(max_turns=50)
    observation, info = env.reset(seed=1)
    assert observation["image"].shape == (224, 224, 3)
    for action in ["up", *["right"] * 11, "down"]:
        assert not info["success"]
        _, _, terminated, _, info = env.step(f"<action>{action}</action>")
    assert (terminated, info["success"], env.episode_return) == (True, True, -13)
    env.close()
