"""The pages made from the code are fresh, and name environments and numbers as they are."""

import importlib
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from sources import ROOT

from vlgym.integrations.canary import CANARIES
from vlgym.registry.registry_file import read_registry


@pytest.fixture(autouse=True)
def docs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of docs/ can be imported."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))


def test_pages_from_the_code_are_fresh() -> None:
    pages = importlib.import_module("generate").generate()
    names = ("check", "cli", "environments", "errors", "gallery", "hooks", "results")
    assert {*(f"{name}.md" for name in names), "../README.md"} <= pages.keys()
    assert {f"docs/{name}" for name in pages if not name.startswith("..")} <= {*HELD}  # a clone has them
    stale = [name for name, text in pages.items() if (ROOT / "docs" / name).read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"


def test_trained_arms_count_once() -> None:
    figures = importlib.import_module("figures")
    rows = figures.judge_all()
    judged = [(row.name, row.outcome.label) for row in rows]
    assert len(judged) == len(set(judged)) == 19  # without controls, repeated arms and arms with words
    assert not [label for _, label in judged if "grey" in label or "none" in label]
    assert ("algorithms", "VL-DAC") in judged
    assert ("sight-NumberLine-v1", "VL-DAC") not in judged
    assert not [name for name, _ in judged if name.startswith("words")]
    first = {row.study.label: row.outcome for row in reversed(rows)}
    lines = figures.write_outcomes().splitlines()[2:]
    assert len(lines) == len(first)  # the first arm of each environment and form, not the best
    for line in lines:
        mean = statistics.mean(first[line[3 : line.index("]")]].after)
        assert f"| {mean:.2f}±" in line


def test_every_study_has_a_page() -> None:
    assert len((ROOT / "docs/results.md").read_text(encoding="utf-8").split()) <= 700
    pages = importlib.import_module("figures").write_study_pages()
    others = {"made", "real-model", "screens", "speed"}
    assert {path.stem for path in (ROOT / "docs/studies").glob("*.json*")} - others <= pages.keys()
    for name, text in pages.items():
        assert re.match(r"# .+\n", text), name
        assert "\n| " in text, name
        assert "Date: 20" in text or name == "outcomes", name


def test_the_readme_counts_current_environments_and_families() -> None:
    entries = [entry for entry in read_registry().values() if not entry["spec"].replaced_by]
    count, families = len(entries), {entry["spec"].family for entry in entries}
    measured = sum(bool(entry.get("blind")) for entry in entries)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for words in (
        f"**{count} vision environments in {len(families)} families", f"| environments | {count} |",
        f"For {measured} of {count} environments",
    ):  # fmt: skip
        assert words in readme
    assert sum(map(int, re.findall(r"^\| <img .*\| (\d+) \|$", readme, re.MULTILINE))) == count


LISTING = ["git", "ls-files", "*.md"]
HELD = subprocess.run(LISTING, cwd=ROOT, capture_output=True, text=True).stdout.split()
PAGES = [name for name in HELD if not re.search(r"/projects/|^tests/|CHANGELOG", name)]
TABLE = r"<!-- table:.*?<!-- end of table -->|<!-- Written by docs/generate.py. -->.*"
MADE = rf"{TABLE}|^```.*?^```|`[^`\n]+`"
SPEED = r"\d[\d,.]* (?:steps|replies|frames|tokens)/s"
MEASURED = rf"(?<![\w.])-?(?:[01]\.\d{{2,3}}(?!\w|\.\d)|{SPEED}|\d[\d.]* (?:± \d|nats))"
ALLOWED = {  # TRL's version, places on the pitch, a default
    ("docs/trainers.md", "1.16"), ("docs/football.md", "-0.42"), ("docs/football.md", "0.42"),
    ("docs/learner.md", "0.001"),
}  # fmt: skip


def test_pages_written_by_hand_hold_no_measured_number() -> None:
    """Measured numbers come by a table mark; the log tells of past runs."""
    numbers = []
    for name in PAGES:
        if name in {"docs/log.md", "docs/security.md"}:
            continue
        text = re.sub(MADE, "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        numbers += [(name, hit[0]) for hit in re.finditer(MEASURED, text)]
    assert {*numbers} == ALLOWED


def test_every_picture_is_on_a_page() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in HELD)
    names = [path.name for path in (ROOT / "docs/images").iterdir()]
    assert [name for name in names if f"images/{name}" not in text] == []


def test_ids_on_pages_exist() -> None:
    known = {*read_registry(), *CANARIES}
    for name in PAGES:
        ids = set(re.findall(r"vlgym/[A-Z]\w*-v\d+\b", (ROOT / name).read_text(encoding="utf-8")))
        assert ids <= known, name


def test_the_adapter_example_of_the_docs_walks_the_cliff() -> None:
    env = importlib.import_module("fixtures.adapter_example").CliffWalk(max_turns=50)
    observation, info = env.reset(seed=1)
    assert observation["image"].shape == (224, 224, 3)
    for action in ["up", *["right"] * 11, "down"]:
        assert not info["success"]
        _, _, terminated, _, info = env.step(f"<action>{action}</action>")
    assert (terminated, info["success"], env.episode_return) == (True, True, -13)
    env.close()


@pytest.mark.exhaustive
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    site, options = tmp_path / "html", ["-W", "--keep-going", "-q", "-b", "html"]
    call = [sys.executable, "-m", "sphinx", *options, "-d", str(tmp_path / "trees"), "docs", str(site)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    pages = {str(path.relative_to(site)): path.read_text() for path in site.rglob("*.html")}
    assert {"cli.html", "check.html", "gallery.html", "api.html"} <= pages.keys()
    assert "algorithms.html" in pages["results.html"]  # a study's raw file is its page on the site
    assert {path.suffix for path in (site / "_images").iterdir()} == {".png", ".webp"}
    tags = r"""<(?:script|img|iframe|link[^>]*rel="stylesheet")[^>]*"""
    outside = re.compile(tags + r"""\s(?:src|href)=["']?(?:https?:)?//""")
    assert [name for name, text in pages.items() if outside.search(text)] == []
