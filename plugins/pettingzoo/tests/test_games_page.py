"""What docs/games.md shows runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "games.md"
BLOCKS = re.findall(r"(?<!-->\n)```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block: str) -> None:
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_the_tournament_of_the_page_runs(tmp_path: Path) -> None:
    (line, _) = re.findall(r"^vlgym tournament .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    call = [sys.executable, "-m", "vlgym", *line.replace("--games 10", "--games 1").split()[1:]]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "runs" / "cup").iterdir()} >= {"table.md", "table.json", "table.png"}


def test_the_page_shows_blocks() -> None:
    assert len(BLOCKS) == 3
