"""The measurement of parsers' time: it finds what is quadratic or worse, and nothing in what ships."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from broken_toys import RescanningParser

from vlgym.parsers import PARSERS, TagParser, get_parser
from vlgym.registry import get_registry
from vlgym.testing import Subject, interface_checks
from vlgym.testing.interface_checks import (
    LENGTHS,
    Slowest,
    check_parser_time,
    measure_parser,
    write_shapes,
    write_string,
)
from vlgym.testing.subject import CheckFailure
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


@pytest.mark.parametrize("style", [*PARSERS, "vlgym_webui.code_parser:CodeBlockParser"])
def test_a_parser_that_ships_is_linear(style: str) -> None:
    slowest = measure_parser(get_parser(style), LEGAL)
    assert slowest.linear, slowest


@pytest.mark.parametrize("planted", [RescanningParser, Ambiguous, Exponential])
def test_a_planted_parser_that_is_not_linear_is_found(planted: type[TagParser]) -> None:
    assert not measure_parser(planted(), LEGAL).linear


def test_strings_have_the_length_that_is_asked_for_and_hold_the_format_s_own_pieces() -> None:
    shapes = list(write_shapes(TagParser(), LEGAL))
    assert {"<", "action", "</"} <= {piece for _, piece, _ in shapes}
    for shape in shapes[::37]:
        assert [len(write_string(shape, length)) for length in LENGTHS] == list(LENGTHS)


def test_a_failure_names_the_style_and_the_string(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = get_registry().get("vlgym/NumberLine-v0")
    assert check_parser_time(Subject(spec, {})).startswith("all are the core's")
    monkeypatch.setattr(interface_checks, "get_parser", lambda style: RescanningParser())
    own = replace(spec, reply_styles=("auto", "a_plugin.parsing:Rescanning"))
    with pytest.raises(
        CheckFailure, match=r"^a_plugin.parsing:Rescanning: prefix, repeated piece and end .* be linear"
    ):
        check_parser_time(Subject(own, {}))


def test_short_times_say_nothing_about_growth() -> None:
    assert Slowest(("", "a", ""), (1e-6, 1e-6, 1e-5, 1e-3)).linear
    assert not Slowest(("", "a", ""), (0.01, 0.04, 0.16, 0.64)).linear
