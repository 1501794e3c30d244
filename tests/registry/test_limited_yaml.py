"""YAML is read within limits: what is too large, too deep or stands for too much is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vlgym.errors import RegistryFileError
from vlgym.registry.limited_yaml import read_yaml
from vlgym.registry.registry_file import read_registry


def test_ordinary_data_are_read() -> None:
    assert read_yaml("a: [1, 2]\nc: {d: no}") == {"a": [1, 2], "c": {"d": False}}
    assert read_yaml("") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 4_000_001, "characters"),
        ("[" * 60 + "]" * 60, "nests deeper than the 40"),
        ("\n".join(f"{'  ' * depth}a:" for depth in range(60)), "nests deeper"),
        ("a: &a [x, x]\nb: *a", "has an alias"),
    ],
    ids=["long", "deep brackets", "deep blocks", "alias"],
)
def test_what_is_too_much_is_refused(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError, match=message):
        read_yaml(text)


def test_very_deep_nesting_is_no_crash() -> None:
    with pytest.raises(yaml.YAMLError):
        read_yaml("[" * 200_000)


def test_tags_that_ask_for_objects_are_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        read_yaml("!!python/object/apply:os.getcwd []")


def test_a_registry_that_is_too_much_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text("[" * 100, encoding="utf-8")
    with pytest.raises(RegistryFileError, match=r"cannot be read: it nests deeper") as caught:
        read_registry(path)
    assert "\n" not in str(caught.value)
