"""The Python that some pages show runs as it stands."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from sources import ROOT

HERE = (
    "docs/quickstart.md", "docs/evaluate.md", "docs/blind.md", "docs/sight.md", "docs/miniworld.md",
    "plugins/pettingzoo/README.md",
)  # fmt: skip
BLOCK = re.compile(r"(?<!-->\n)^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [(name, index) for name in HERE for index in range(len(BLOCK.findall((ROOT / name).read_text("utf-8"))))]


@pytest.mark.parametrize(("name", "index"), BLOCKS)
def test_a_block_runs(
    name: str, index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "block.py"
    script.write_text(BLOCK.findall((ROOT / name).read_text("utf-8"))[index])
    runpy.run_path(str(script), run_name="__main__")
    assert "Traceback" not in capsys.readouterr().err
