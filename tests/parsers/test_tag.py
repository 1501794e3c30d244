"""The tag parser: `<action>...</action>`, the first tag with a legal action is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlgym.parsers import TagParser, match_legal
from vlgym.types import Parsed

parser = TagParser()


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", "no_action"),
        ("turn left", "no_action"),
        ("</action>", "no_action"),
        ("<action>left", "unclosed_action"),
        ("</action> turn left <action>", "unclosed_action"),
        ("<action>left<action>", "unclosed_action"),
        ("<action></action>", "empty_action"),
        ("<action> \n </action>", "empty_action"),
    ],
)
def test_each_failure_has_its_code(text: str, failure: str) -> None:
    assert parser.parse(text) == Parsed(failure=failure)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<action>left</action>", "left"),
        ("I think <action> turn left </action>, yes", "turn left"),
        ("<ACTION>Left</Action>", "Left"),
        ("<action>left</action><action>right</action>", "left"),
        ("<action></action> <action>left</action> <action></action>", "left"),
        ("<action>left</action> then <action>right", "left"),
        ("<action><action>right</action>", "right"),
        ("<action>right</action></action>", "right"),
        ("<action>a <b> {c}</action>", "a <b> {c}"),
    ],
)
def test_the_first_complete_tag_is_read(text: str, action: str) -> None:
    assert parser.parse(text).actions == (action,)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("end with <action>ACTION</action>: <action>right</action> or <action>left</action>", "right"),
        ("<action>up</action> or <action>ACTION</action>", "ACTION"),
        ("<action> turn  LEFT </action> <action>right</action>", "turn  LEFT"),
    ],
)
def test_a_tag_without_a_legal_action_does_not_count_where_another_has_one(text: str, action: str) -> None:
    legal = ["turn left", "left", "right"]
    assert parser.parse(text, legal).actions == (action,)
    assert parser.parse(text, None, lambda word: match_legal(word, legal)).actions == (action,)


@given(st.lists(st.sampled_from(["<action>", "</action>", "left", " ", "<", ">", "\n", "é"]), max_size=25).map("".join))
def test_the_span_is_where_the_action_stands(text: str) -> None:
    parsed = parser.parse(text)
    if parsed.failure is None:
        assert parsed.span is not None
        start, end = parsed.span
        assert text[start:end].strip() == parsed.actions[0]
        assert text[:start].lower().endswith("<action>")
        assert text[end:].lower().startswith("</action>")
        assert "</action>" not in text[start:end]
    else:
        assert parsed.actions == ()
        assert parsed.span is None


@given(st.text(max_size=400))
def test_it_never_raises(text: str) -> None:
    parsed = parser.parse(text, ["left"])
    assert (parsed.failure is None) == (len(parsed.actions) == 1)


def test_fifty_thousand_hostile_pieces_are_read_at_once() -> None:
    """A parser whose work grew with the square of the length would hang here."""
    for piece in ["<action>", "</action>", "<action></action>", "<action>a", "<", "<action", "a</action>"]:
        parsed = parser.parse(piece * 50_000)
        assert parsed.failure is not None or len(parsed.actions) == 1


@given(
    st.text(max_size=40).map(str.strip).filter(lambda text: text and "action>" not in text.lower()),
    st.sampled_from(["", "<wall>?"]),
)
def test_what_it_formats_it_reads_back(action: str, thoughts: str) -> None:
    text = parser.format([action], thoughts)
    assert text.startswith(thoughts)
    assert parser.parse(text).actions == (action,)


def test_only_the_last_action_is_formatted() -> None:
    assert parser.format(["left", "right"]) == "<action>right</action>"
    assert parser.format([]) == "<action></action>"


def test_its_description_shows_the_format() -> None:
    assert "<action>ACTION</action>" in parser.describe()
