"""CONTRIBUTING.md lists the files that an addition touches; whatever was added before is in each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from vlgym.cli.app import app

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LOAD = (ROOT / "baselines" / "models" / "load.py").read_text(encoding="utf-8")
MEMBERS = {
    "family of environments": sorted(path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")),
    "algorithm": ["vldac", "rl4vlm", "loop", "grpo", "archer"],
    "model family": re.findall(r'^    "(\w+)": \(', LOAD, re.MULTILINE),
    "command": sorted(get_command(app).commands),  # type: ignore[attr-defined]
}


def listed(kind: str) -> list[str]:
    """The paths that begin the section's items."""
    (section,) = re.findall(rf"^## A new {kind}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    return re.findall(r"^- `([^`]+)`", section, re.MULTILINE)


def plain(text: str) -> str:
    """Spelling aside: `qwen2_5_vl` is Qwen2.5-VL."""
    return re.sub(r"[-_.]", "", text).lower()


@pytest.mark.parametrize(
    ("kind", "count"), [("family of environments", 7), ("algorithm", 5), ("model family", 4), ("command", 2)]
)
def test_every_file_of_the_list_has_what_was_added_before(kind: str, count: int) -> None:
    paths, members = listed(kind), MEMBERS[kind]
    assert (len(paths), len(members) >= 4) == (count, True)
    missing = []
    for path in paths:
        for member in members:
            file = ROOT / path.replace("NAME", member)
            if not file.is_file():
                missing.append(str(file.relative_to(ROOT)))
            elif "NAME" not in path and plain(member) not in plain(file.read_text(encoding="utf-8")):
                missing.append(f"{member} in {path}")
    assert missing == []
