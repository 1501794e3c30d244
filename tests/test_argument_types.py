"""Constructor arguments of a wrong type are one line, in any class whose arguments are annotated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from vlgym.argument_types import check_argument_types
from vlgym.errors import UserError
from vlgym.making import make
from vlgym.types import Parser


class Base:
    def __init__(self, *, size: tuple[int, int] | None = None, parser: str | Parser | None = None) -> None: ...


class Derived(Base):
    def __init__(
        self,
        *,
        count: int = 0,
        share: float = 0.0,
        name: str = "",
        switch: bool = False,
        file: Path | None = None,
        tasks: Sequence[str] = (),
        table: Mapping[str, int] | None = None,
        rule: Callable[[], int] | None = None,
        way: Literal["up", "down"] = "up",
        free: Any = None,
        bare=0,
        **more: Any,
    ) -> None: ...


GOOD = {
    "count": [3, -1], "share": [0.5, 1], "name": [""], "switch": [True], "file": ["a", Path("a"), None],
    "tasks": [["a"], ("a",), []], "table": [{"a": 1}, None], "rule": [len, None], "way": ["up"], "free": [3, None, "x"],
    "bare": ["x"], "size": [(1, 2), [1, 2], None], "parser": ["tag", None], "unheard_of": [3],
}  # fmt: skip
WRONG = {
    "count": [True, 1.5, "1", None, [1]], "share": [True, "1", None], "name": [3, None], "switch": [1, "yes"],
    "file": [3, []], "tasks": ["abc", 3, [1], {"a": 1}], "table": [[1], "a"], "rule": [3], "way": ["left", 3],
    "size": [300, "ab", [1], [1, 2, 3], [1, "x"], [1, True]], "parser": [3, []],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in GOOD.items() for value in values])
def test_what_an_annotation_allows_is_taken(name: str, value: Any) -> None:
    check_argument_types("a/B-v0", Derived, {name: value})


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_it_does_not_allow_is_refused(name: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"a/B-v0: {name}=.* must be "):
        check_argument_types("a/B-v0", Derived, {name: value})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("image_size", 300, "image_size=300 must be a list of an integer and an integer, or left out"),
        ("image_size", [8, 8], "must be .height, width. in pixels, each from 16 to 4096"),
        ("max_turns", "many", "max_turns='many' must be an integer, or left out"),
        ("max_turns", -1, "max_turns=-1 must be >= 1"),
        ("invalid_penalty", [], r"invalid_penalty=\[\] must be a number"),
        ("parser", 3, "parser=3 must be"),
    ],
)
def test_an_environment_says_what_is_wrong_with_an_argument(name: str, value: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make("vlgym/NumberLine-v0", **{name: value})
