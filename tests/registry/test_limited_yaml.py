"""YAML is read within limits: too large, too deep, or with aliases it is refused in one line."""

from __future__ import annotations

import pytest
import yaml

from vlgym.registry.limited_yaml import read_yaml


def test_ordinary_data_are_read() -> None:
    assert read_yaml("a: [1, 2]\nc: {d: no}") == {"a": [1, 2], "c": {"d": False}}
    assert read_yaml("") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 4_000_001, "characters"), ("[" * 60 + "]" * 60, "nests deeper than the 40"),
        ("\n".join(f"{'  ' * depth}a:" for depth in range(60)), "nests deeper"),
        ("[" * 200_000, "nests deeper"), ("a: &a [x, x]\nb: *a", "has an alias"),
    ],
    ids=["long", "deep brackets", "deep blocks", "very deep", "alias"],
)  # fmt: skip
def test_too_much_is_refused(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError, match=message):
        read_yaml(text)
