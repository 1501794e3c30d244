"""Hints say what works today: from a clone, and only through `vlgym/registry/installing.py`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from sources import list_files, read_tree

from vlgym.registry import installing
from vlgym.registry.installing import how_to_install, how_to_install_all


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    for folder in (".", "plugins/air", "plugins/sea"):
        (tmp_path / "a clone" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "a clone" / folder / "pyproject.toml").touch()
    return tmp_path / "a clone"


def test_outside_of_a_clones_root_the_hint_names_the_clone(clone: Path) -> None:
    assert how_to_install("vlgym-air", clone=clone, here=clone) == "pip install -e plugins/air"
    assert how_to_install("vlgym[train]", clone=clone, here=clone) == "pip install -e '.[train]'"
    assert how_to_install("vlgym-air", clone=clone, here=clone.parent) == f"pip install -e '{clone}/plugins/air'"
    assert how_to_install("vlgym[train]", clone=clone, here=clone.parent) == f"pip install -e '{clone}[train]'"
    assert how_to_install_all(clone=clone, here=clone) == "pip install -e plugins/air -e plugins/sea"


def test_without_a_clone_the_hint_says_that_one_is_needed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()  # a project that is not ours
    words = "in a clone of vlgym's repository: "
    assert how_to_install("vlgym-air", clone=tmp_path) == f"{words}pip install -e plugins/air"
    assert how_to_install("vlgym[train]", clone=tmp_path) == f"{words}pip install -e '.[train]'"
    assert how_to_install_all(clone=tmp_path) == f"{words}make install"


def test_after_the_release_pip_suffices(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "RELEASED", True)
    assert how_to_install("vlgym-air", clone=clone) == "pip install --upgrade vlgym-air"
    assert how_to_install("vlgym[train]") == "pip install --upgrade 'vlgym[train]'"
    assert how_to_install_all() == "pip install 'vlgym[all]'"


@pytest.mark.exhaustive
def test_pip_accepts_the_hint_for_this_very_clone(tmp_path: Path) -> None:
    words = how_to_install("vlgym[train]", here=(here := Path("/"))).split()[1:]
    words[-1] = words[-1].strip("'")
    command = [sys.executable, "-m", "pip", *words, "--no-deps", "--no-build-isolation", "--target", str(tmp_path)]
    done = subprocess.run([*command, "--dry-run"], cwd=here, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_no_text_names_a_distribution_that_no_index_has() -> None:
    wrong = []
    for path in list_files("vlgym", "plugins", "baselines"):
        tree = read_tree(path) if "pip install" in path.read_text(encoding="utf-8") else ast.Module([], [])
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        hints = [text for text in texts if isinstance(text, str) and "pip install" in text and "vlgym" in text]
        wrong += hints if path.name != "installing.py" else []
    assert wrong == []
