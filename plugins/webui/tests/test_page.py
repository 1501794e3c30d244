"""What docs/webui.md shows runs as printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_everything_the_page_shows_runs() -> None:
    command = [sys.executable, str(DOCS / "run_page.py"), str(DOCS / "webui.md")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
