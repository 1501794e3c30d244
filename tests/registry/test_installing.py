"""Hints say what works today: from a clone, and only through `vlgym/registry/installing.py`."""

import ast
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sources import list_files, read_tree

from vlgym.registry import installing
from vlgym.registry.installing import how_to_install, how_to_install_all


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    place = tmp_path / "a clone"
    for folder in (".", "plugins/air", "plugins/sea"):
        (place / folder).mkdir(parents=True, exist_ok=True)
        (place / folder / "pyproject.toml").touch()
    return place


def test_the_hint_names_a_clone_or_says_that_one_is_needed(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()  # a project that is not ours
    places = {"clone": clone, "here": clone}, {"clone": clone, "here": tmp_path}, {"clone": tmp_path}
    needed = "in a clone of vlgym's repository: "
    assert [how_to_install("vlgym-air", **place) for place in places] == [
        "pip install -e plugins/air", f"pip install -e '{clone}/plugins/air'",
        f"{needed}pip install -e plugins/air",
    ]  # fmt: skip
    assert [how_to_install("vlgym[train]", **place) for place in places] == [
        "pip install -e '.[train]'", f"pip install -e '{clone}[train]'",
        f"{needed}pip install -e '.[train]'",
    ]  # fmt: skip
    assert how_to_install_all(**places[0]) == "pip install -e plugins/air -e plugins/sea"
    assert how_to_install_all(**places[2]) == f"{needed}make install"


def test_after_the_release_pip_suffices(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "RELEASED", True)
    assert how_to_install("vlgym-air", clone=clone) == "pip install --upgrade vlgym-air"
    assert how_to_install("vlgym[train]") == "pip install --upgrade 'vlgym[train]'"
    assert how_to_install_all() == "pip install 'vlgym[all]'"


@pytest.mark.exhaustive
def test_pip_accepts_the_hint_for_this_very_clone(tmp_path: Path) -> None:
    words = shlex.split(how_to_install("vlgym[train]", here=Path("/")))[1:]
    options = ["--no-deps", "--no-build-isolation", "--dry-run", "--target", str(tmp_path)]
    command = [sys.executable, "-m", "pip", *words, *options]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_no_text_names_a_distribution_that_no_index_has() -> None:
    wrong = []
    for path in list_files("vlgym", "plugins", "baselines"):
        if path.name == "installing.py" or "pip install" not in path.read_text(encoding="utf-8"):
            continue
        nodes = ast.walk(read_tree(path))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        wrong += [text for text in map(str, texts) if "pip install" in text and "vlgym" in text]
    assert wrong == []
