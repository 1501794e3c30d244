"""What docs/sokoban.md and docs/magebench.md show runs as printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


def run_page(page: Path) -> subprocess.CompletedProcess[str]:
    """Run a page's blocks and commands."""
    command = [sys.executable, str(DOCS / "run_page.py"), str(page)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("name", ["sokoban.md", "magebench.md"])
def test_everything_the_page_shows_runs(name: str) -> None:
    done = run_page(DOCS / name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_lines_of_the_readme_make_this_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (DOCS.parent / "plugins" / "sokoban" / "README.md").read_text().split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("mine.xsb").write_text("#####\n#@$.#\n#####\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (code.count("gymnasium.make"), done.returncode, done.stderr) == (5, 0, "")


@pytest.mark.parametrize(
    ("block", "status"),
    [
        ("`a.py`:\n\n```text\nprint(6 * 7)\n```\n\n```\npython a.py  # answers\n```", 0),
        ("```\npython -c 'raise SystemExit(3)'\n```", 1),
        ("```python\nassert 1 == 2\n```", 1),
        ("```\nrm -r .\n```", 1),
        ("```yaml\na: 1\n```", 1),
    ],
)
def test_a_page_fails_with_its_first_block_that_fails(tmp_path: Path, block: str, status: int) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{block}\n")
    done = run_page(page)
    assert done.returncode == status
    assert ("42" in done.stdout) == (status == 0)
