"""YAML is read within limits: what is too large, too deep or stands for too much is refused in one line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from sources import ROOT, list_files, read_tree

from vlgym.errors import RegistryFileError
from vlgym.limited_yaml import TooMuchYaml, check_yaml, read_yaml
from vlgym.registry_file import PACKAGED, read_registry

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_ordinary_data_are_read_with_their_aliases() -> None:
    assert read_yaml("a: &x [1, 2]\nb: *x\nc: {d: no}") == {"a": [1, 2], "b": [1, 2], "c": {"d": False}}
    assert read_yaml("") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 4_000_001, "characters"),
        ("[" * 60 + "]" * 60, "nests deeper than the 40"),
        ("\n".join(f"{'  ' * depth}a:" for depth in range(60)), "nests deeper"),
        ("a: &a 1\nb: [" + ", ".join(["*a"] * 101) + "]", "more than the 100 aliases"),
        (LAUGHS, "stands for more than the 1000000 nodes"),
        ("a: &a [*a]", "stands within what it means"),
        ("a: &a {b: [*a]}", "stands within what it means"),
    ],
    ids=["long", "deep brackets", "deep blocks", "many aliases", "a billion laughs", "itself", "itself, deeper"],
)
def test_what_is_too_much_is_refused_quickly(text: str, message: str) -> None:
    begun = time.process_time()
    with pytest.raises(TooMuchYaml, match=message) as caught:
        read_yaml(text)
    assert "\n" not in str(caught.value)
    assert time.process_time() - begun < 5


def test_very_deep_nesting_is_no_recursion_error() -> None:
    with pytest.raises(yaml.YAMLError):
        check_yaml("[" * 200_000)


def test_tags_that_ask_for_objects_are_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        read_yaml("!!python/object/apply:os.getcwd []")


@pytest.mark.parametrize("text", [LAUGHS, "[" * 100, "a: &a [*a]"], ids=["laughs", "deep", "itself"])
def test_a_registry_that_is_too_much_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RegistryFileError, match=r"is not valid YAML: (it|the alias)") as caught:
        read_registry(path)
    assert "\n" not in str(caught.value)


def test_our_own_registry_is_far_within_the_limits() -> None:
    check_yaml(PACKAGED.read_text(encoding="utf-8"), most_characters=2_000_000, deepest=10, most_aliases=0)


def test_no_module_reads_yaml_without_limits() -> None:
    import ast

    known = {"vlgym/limited_yaml.py"}
    found = set()
    for path in list_files("vlgym", "plugins", "baselines"):
        calls = [node.func for node in ast.walk(read_tree(path)) if isinstance(node, ast.Call)]
        names = {f"{ast.unparse(call)}" for call in calls}
        if names & {"yaml.load", "yaml.safe_load", "yaml.full_load", "yaml.unsafe_load"}:
            found.add(str(path.relative_to(ROOT)))
        if "yaml.compose" in names and not any(name.endswith("check_yaml") for name in names):
            found.add(str(path.relative_to(ROOT)))
    assert found <= known
