"""What docs/football.md and the README show runs as printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_everything_the_page_shows_runs() -> None:
    command = [sys.executable, str(DOCS / "run_page.py"), str(DOCS / "football.md")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_of_the_readme_runs() -> None:
    code = (DOCS.parent / "plugins" / "football" / "README.md").read_text().split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("R6_T_1 ")
