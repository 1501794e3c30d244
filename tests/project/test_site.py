"""The documentation site builds without a warning, and works offline."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sources import ROOT

DOCS = ROOT / "docs"


@pytest.mark.exhaustive
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run([*call, str(DOCS), str(tmp_path / "html")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    pages = {path.relative_to(tmp_path / "html"): path.read_text() for path in (tmp_path / "html").rglob("*.html")}
    assert {Path("cli.html"), Path("check.html"), Path("gallery.html"), Path("api.html")} <= pages.keys()
    assert "algorithms.html" in pages[Path("results.html")]  # a study's raw file is its page on the site
    pictures = {path.suffix for path in (tmp_path / "html" / "_images").iterdir()}
    assert pictures == {".png", ".webp"}
    outside = re.compile(r"""<(?:script|img|iframe|link[^>]*rel="stylesheet")[^>]*\s(?:src|href)=["']?(?:https?:)?//""")
    assert [str(name) for name, text in pages.items() if outside.search(text)] == []
