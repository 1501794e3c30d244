"""The JSON parser: the first object with a legal `action`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlgym.parsers import JsonParser
from vlgym.types import Parsed

parser = JsonParser()


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", "no_json"),
        ("left", "no_json"),
        ('"action": "left"}', "no_json"),
        ("{", "bad_json"),
        ('{"action": "left"', "bad_json"),
        ("{'action': 'left'}", "bad_json"),
        ("{}", "no_action"),
        ("{broken {}", "no_action"),
        ('{"thoughts": "left"}', "no_action"),
        ('{"action": null}', "no_action"),
        ('{"action": true}', "no_action"),
        ('{"action": ["left"]}', "no_action"),
        ('{"action": {"name": "left"}}', "no_action"),
        ('{"action": ""}', "empty_action"),
        ('{"action": " \\n"}', "empty_action"),
    ],
)
def test_each_failure_has_its_code(text: str, failure: str) -> None:
    assert parser.parse(text) == Parsed(failure=failure)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"thoughts": "wall", "action": "left"}', "left"),
        ('```json\n{\n "action": " left "\n}\n```', "left"),
        ('{"action": "left"} no: {"action": "right"}', "left"),
        ('{"action": "ACTION"} so: {"action": "up"} or {"action": "left"}', "up"),
        ('{"move": [{"action": "left"}]}', "left"),
        ('{"action": "left"} {"thoughts": "hm"}', "left"),
        ('{"action": "left"} {broken', "left"),
        ('{"thoughts": "a {} b {", "action": "left"}', "left"),
        ('{"action": "left", "action": "right"}', "right"),
        ('{"thoughts": "a\nwall", "action": "left"}', "left"),
        ('{"action": "left",}', "left"),
        ('{"thoughts": "a,}", "list": [1, ], "action": "left",\n }', "left"),
        ('{"Action": "left"}', "left"),
        ('{"Action": "left", "action": "right"}', "right"),
        ('[{"action": "left"}]', "left"),
        ('[{"action": "left"},]', "left"),
        ('{"action": 10}', "10"),
        ('{"action": 2.5}', "2.5"),
        ('{"action": NaN}', "NaN"),
        ('{"action": "\\u5de6"}', "左"),
    ],
)
def test_the_first_object_with_a_legal_action_is_read(text: str, action: str) -> None:
    legal = ["left", "right", "up", "10", "2.5", "NaN", "左"]
    assert parser.parse(text, legal).actions == (action,)


@given(
    st.lists(
        st.sampled_from(['{"action": "left"}', '{"action":', "{", "}", '"', "x", "[", '{"a": {}}', "\\"]), max_size=20
    ).map("".join)
)
def test_the_span_is_the_object_that_was_read(text: str) -> None:
    parsed = parser.parse(text)
    if parsed.failure is None:
        assert parsed.span is not None
        assert json.loads(text[slice(*parsed.span)])["action"] == parsed.actions[0]
    else:
        assert (parsed.actions, parsed.span) == ((), None)


@given(st.text(max_size=400))
def test_it_never_raises(text: str) -> None:
    parsed = parser.parse(text, None)
    assert (parsed.failure is None) == (len(parsed.actions) == 1)


def test_fifty_thousand_hostile_pieces_are_read_at_once() -> None:
    """Nesting must not overflow the stack, and no more than 32 braces are tried."""
    for piece in ["{", '{"a":', "[", '{"action":', '{"action": "x" ', "{}", '"', "{[", "\\"]:
        assert parser.parse(piece * 50_000).failure is not None


def test_lists_nested_beyond_the_stack_do_not_raise() -> None:
    assert parser.parse('{"action": ' + "[" * 50_000).failure == "bad_json"


def test_a_number_of_ten_thousand_digits_does_not_raise() -> None:
    assert parser.parse('{"action": ' + "9" * 10_000 + "}").failure == "bad_json"


def test_an_action_behind_more_than_32_braces_is_not_looked_for() -> None:
    good = '{"action": "left"}'
    assert parser.parse('{"x" ' * 31 + good).actions == ("left",)
    assert parser.parse('{"x" ' * 32 + good).failure == "bad_json"


@given(st.text(max_size=40).map(str.strip).filter(bool), st.text(max_size=40))
def test_what_it_formats_it_reads_back(action: str, thoughts: str) -> None:
    assert parser.parse(parser.format([action], thoughts)).actions == (action,)
