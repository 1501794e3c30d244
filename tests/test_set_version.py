"""One command gives the core and all plugins a version."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from sources import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import set_version as tool


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the project that hold its version."""
    for pattern in (tool.HOME, *tool.REPEATED):
        for path in ROOT.glob(pattern):
            target = tmp_path / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return tmp_path


def test_every_distribution_its_bounds_and_the_citation_get_the_version(copy: Path) -> None:
    tool.set_version(copy, "1.4.0rc2")
    assert tool.read_version(copy) == "1.4.0rc2"
    projects = [tomllib.loads(path.read_text())["project"] for path in copy.rglob("pyproject.toml")]
    assert len(projects) >= 12
    assert {project["version"] for project in projects} == {"1.4.0rc2"}
    wanted = [line for project in projects for line in project["dependencies"] if re.match(r"vlgym\b", line)]
    extras = [
        line for project in projects for lines in project.get("optional-dependencies", {}).values() for line in lines
    ]
    assert {line.removeprefix("vlgym") for line in wanted} == {">=1.4,<2"}
    assert {line.partition(">=")[2] for line in extras if line.startswith("vlgym-")} == {"1.4,<2"}
    assert "\nversion: 1.4.0rc2\n" in (copy / "CITATION.cff").read_text()
    assert not [path for path in copy.rglob("*.*") if path.is_file() and "0.1.0" in path.read_text()]


def test_other_packages_keep_their_versions_and_the_way_back_restores_every_byte(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    tool.set_version(copy, "0.2.0")
    changed = [path for path, text in before.items() if path.read_bytes() != text]
    assert len(changed) == len(before)
    assert "gym-sokoban==0.0.6" in (copy / "plugins" / "sokoban" / "pyproject.toml").read_text()
    assert "vlgym>=0.2,<0.3" in (copy / "plugins" / "sokoban" / "pyproject.toml").read_text()
    tool.set_version(copy, "0.1.0")
    assert {path: path.read_bytes() for path in before} == before


def test_nothing_is_written_where_the_version_is_none_or_a_file_does_not_hold_it(copy: Path) -> None:
    with pytest.raises(ValueError, match=r"'2' is no version; write three numbers"):
        tool.set_version(copy, "2")
    broken = copy / "CITATION.cff"
    broken.write_text(broken.read_text().replace("0.1.0", "0.0.9"))
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"CITATION\.cff does not hold version 0\.1\.0; nothing was written"):
        tool.set_version(copy, "0.3.0")
    assert {path: path.read_bytes() for path in before} == before
