"""The Python that pages show runs as it stands: here that of the pages without a test of their own, and a list of who
runs the others'."""

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
ELSEWHERE = {
    "README.md": "tests/test_docs.py",
    "docs/alfworld.md": "plugins/alfworld/tests/test_docs.py",
    "docs/football.md": "plugins/football/tests/test_page.py",
    "docs/games.md": "plugins/pettingzoo/tests/test_games_page.py",
    "docs/magebench.md": "plugins/sokoban/tests/test_pages.py",
    "docs/reproducibility.md": "tests/test_doctests.py",
    "docs/sokoban.md": "plugins/sokoban/tests/test_pages.py",
    "docs/webshop.md": "plugins/webshop/tests/test_docs.py",
    "docs/webui.md": "plugins/webui/tests/test_page.py",
    "docs/write-a-plugin.md": "tests/test_docs.py",
    "plugins/alfworld/README.md": "plugins/alfworld/tests/test_readme.py",
    "plugins/cards/README.md": "plugins/cards/tests/test_plugin.py",
    "plugins/football/README.md": "plugins/football/tests/test_page.py",
    "plugins/miniworld/README.md": "plugins/miniworld/tests/test_readme.py",
    "plugins/sight/README.md": "plugins/sight/tests/test_plugin.py",
    "plugins/sokoban/README.md": "plugins/sokoban/tests/test_pages.py",
    "plugins/webshop/README.md": "plugins/webshop/tests/test_docs.py",
    "plugins/webui/README.md": "plugins/webui/tests/test_page.py",
}
"""Page -> test that runs its Python. The tutorials print files only (tests/test_tutorials.py)."""
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[!t]*/*.md"), *ROOT.glob("plugins/*/README.md")]
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


def test_every_page_that_shows_python_is_run_somewhere() -> None:
    showing = {str(page.relative_to(ROOT)) for page in PAGES if "```python" in page.read_text("utf-8")}
    assert showing == {*HERE, *ELSEWHERE}
    assert {name for name, _ in BLOCKS} == set(HERE)
    for page, test in ELSEWHERE.items():
        assert re.search(r"README\.md|DOCS|PAGES?\b", (ROOT / test).read_text("utf-8")), (page, test)
