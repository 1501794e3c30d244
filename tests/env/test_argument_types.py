"""Constructor arguments of a wrong type are one line, in any class with annotations."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from vlgym.env.arguments import check_argument_types
from vlgym.errors import UserError
from vlgym.registry.making import make


class Base:
    def __init__(self, *, size: tuple[int, int] | None = None) -> None: ...


class Derived(Base):
    def __init__(
        self,
        *, count: int = 0, share: float = 0.0, file: Path | None = None, tasks: Sequence[str] = (),
        table: Mapping[str, int] | None = None, rule: Callable[[], int] | None = None,
        way: Literal["up", "down"] = "up", free: Any = None, bare=0, **more: Any,
    ) -> None: ...  # fmt: skip


GOOD = {
    "count": [3], "share": [0.5, 1], "file": ["a", None], "tasks": [["a"], ("a",), []],
    "table": [{"a": 1}], "rule": [len], "way": ["up"], "free": [3], "bare": ["x"],
    "size": [(1, 2), [1, 2], None], "unheard_of": [3],
}  # fmt: skip
WRONG = {
    "count": [True, 1.5, "1"], "share": [True, "1"], "file": [3], "tasks": ["abc", [1]],
    "table": [[1]], "rule": [3], "way": ["left"], "size": [300, "ab", [1], [1, "x"]],
}  # fmt: skip


def test_what_an_annotation_allows_is_taken_and_all_else_refused() -> None:
    for name, value in ((name, value) for name, values in GOOD.items() for value in values):
        check_argument_types("a/B-v0", Derived, {name: value})
    for name, value in ((name, value) for name, values in WRONG.items() for value in values):
        with pytest.raises(UserError, match=rf"a/B-v0: {name}=.* must be "):
            check_argument_types("a/B-v0", Derived, {name: value})


def test_an_environment_says_what_is_wrong_with_an_argument() -> None:
    with pytest.raises(UserError, match=r"max_turns='many' must be int \| None"):
        make("vlgym/NumberLine-v0", max_turns="many")
