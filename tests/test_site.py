"""The documentation site builds without a warning, works offline, and leads a newcomer on in two clicks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from sources import ROOT

DOCS = ROOT / "docs"
DOORS = ("quickstart", "evaluate", "learner", "tutorials/first-environment")
"""Install, evaluate my model, train, add an environment."""
pytestmark = pytest.mark.xdist_group("documentation site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    call = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-d",
        str(out / "trees"),
        str(DOCS),
    ]
    done = subprocess.run([*call, str(out / "html")], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return out / "html"


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    pages = {page for page in pages if page.parts[0] != "results"}
    assert {page for page in pages if not (site / page.with_suffix(".html")).is_file()} == set()


def test_a_newcomer_is_there_in_two_clicks(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    for door in DOORS:
        assert re.search(rf'href="{door}\.html"', front), door


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|<link[^>]*rel=["'](?:stylesheet|preload|icon)["'][^>]*href=["'](?:https?:)?//"""
    )
    assert [str(page) for page in site.rglob("*.html") if loads.search(page.read_text(encoding="utf-8"))] == []


def test_the_search_knows_what_stands_on_the_pages(site: Path) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)", text, re.DOTALL)[1])  # type: ignore[index]
    assert "certificate" in index["terms"] or "certif" in index["terms"]
    assert "games" in index["docnames"]


def test_the_python_api_is_there_with_its_docstrings(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    for name in ("vlgym.make", "vlgym.MultiVLEnv", "vlgym.testing.certify", "baselines.learning.losses.step_gae"):
        assert f'id="{name}"' in text, name


def test_links_to_what_is_no_page_lead_to_the_repository(site: Path) -> None:
    front = (site / "tutorials" / "README.html").read_text(encoding="utf-8")
    assert 'href="https://github.com/vlgym/vlgym/blob/main/README.md#two-commands"' in front


def test_an_animation_of_the_gallery_moves(tmp_path: Path) -> None:
    call = [sys.executable, str(DOCS / "animate.py"), str(tmp_path), "--id", "vlgym/NumberLine-v1"]
    subprocess.run(call, check=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    (path,) = (tmp_path / "animations").iterdir()
    assert f"animations/{path.name}" in (DOCS / "gallery.md").read_text(encoding="utf-8")
    with Image.open(path) as picture:
        assert picture.n_frames > 1  # type: ignore[attr-defined]
        assert picture.width == 224
