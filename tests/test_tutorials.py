"""The tutorials' plugin as a user meets it: built, installed, certified, evaluated with its own policy. What the other
tutorials print is tested where it comes from: test_new_plugin, test_example_plugin, baselines/test_own_learner."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from fresh import make_fresh, run_fresh
from sources import ROOT

from vlgym.trajectory import read_trajectories

SOURCE = ROOT / "tests" / "fixtures" / "vlgym_tutorial"
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PLUGIN, ENV = "vlgym-tutorial", "tutorial/Missing-v0"
pytestmark = pytest.mark.xdist_group("tutorials")  # one worker, so that the environment is made once


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_fresh(tmp_path_factory.mktemp("fresh"), [SOURCE])


def run(python: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = run_fresh(python, "-m", "vlgym", *words, plugins=PLUGIN, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_environment_of_several_pictures_earns_its_certificate(python: Path, tmp_path: Path) -> None:
    done = run(python, "check", ENV, "--json", cwd=tmp_path)
    checks = json.loads(done.stdout)[0]["checks"]
    assert [check["name"] for check in checks if check["warning"]] == []


@pytest.mark.parametrize(("policy", "options", "least", "most"), [
    ("compare", [], 1.0, 1.0),
    ("compare", ["--history-turns", "0"], 0.0, 0.6),
    ("compare:guess", [], 0.0, 0.6),
])  # fmt: skip
def test_the_policy_of_the_page_wins_with_both_pictures_only(
    python: Path, tmp_path: Path, policy: str, options: list[str], least: float, most: float
) -> None:
    out = tmp_path / "run"
    run(
        python, "eval", "--policy", policy, "--env", ENV, "--episodes", "40", "--seed", "1", "--out", str(out),
        *options, cwd=tmp_path,
    )  # fmt: skip
    episodes = [episode[-1].success for episode in read_trajectories(out)]
    assert len(episodes) == 40
    assert least <= sum(episodes) / 40 <= most


def test_code_on_the_pages_is_printed_from_files_that_are_tested() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("```python") == len(
            re.findall(r"^<!-- (?:file|new-plugin) ?.*-->\n```python$", text, re.MULTILINE)
        )


def test_the_benchmark_of_the_first_tutorial_reads_its_commands_from_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "benchmarks"))
    import new_plugin

    page = new_plugin.TUTORIAL.read_text(encoding="utf-8")
    commands = new_plugin.read_commands(page)
    assert all(f"\n{command}\n" in page for command in commands)
    assert len(commands) == 4
    assert new_plugin.seconds_to_type(sum(len(command) + 1 for command in commands)) < 300
    assert new_plugin.seconds_to_type(200) == 60
    with pytest.raises(ValueError, match="the tutorial's commands are"):
        new_plugin.read_commands(page.replace("vlgym check", "vlgym chek"))


def test_every_tutorial_is_in_the_list() -> None:
    names = {page.name for page in PAGES} - {"README.md"}
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "tutorials" / "README.md").read_text(encoding="utf-8"))
    assert set(listed) >= names
    assert len(names) == 7
