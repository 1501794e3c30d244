"""The measurement of parsers' time finds what is quadratic or worse, and no parser that ships."""

import re
from collections.abc import Sequence

import pytest

from vlgym.parsers import PARSERS, TagParser, get_parser
from vlgym.testing.interface_checks import find_slow_shape
from vlgym.types import Parsed

LEGAL = ("search[red mug]", "click[buy now]")


class Ambiguous(TagParser):
    """Two neighbours of its pattern match the same blanks."""

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        re.search(r"^`{3}[ \t]*([^\n`]*)$", text, re.MULTILINE)
        return super().parse(text, legal)

    def format(self, actions: Sequence[str], thoughts: str = "") -> str:
        return f"{thoughts}\n```html\n{super().format(actions)}\n```"


class Exponential(TagParser):
    """A repetition inside a repetition."""

    def parse(self, text: str, legal: Sequence[str] | None = None) -> Parsed:
        re.match(r"(?:a|aa)+$", text)
        return super().parse(text, legal)


@pytest.mark.exhaustive  # tests/parsers have texts on which a slow parser would hang
@pytest.mark.parametrize("style", [*PARSERS, "vlgym_webui.code_parser:CodeBlockParser"])
def test_a_parser_that_ships_is_linear(style: str) -> None:
    assert find_slow_shape(get_parser(style), LEGAL) == ""


# test_checks.py has a quadratic one
@pytest.mark.parametrize("planted", [pytest.param(Ambiguous, marks=pytest.mark.exhaustive), Exponential])
def test_a_planted_parser_that_is_not_linear_is_found(planted: type[TagParser]) -> None:
    assert find_slow_shape(planted(), LEGAL)
