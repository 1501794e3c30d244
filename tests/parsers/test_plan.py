"""The plan parser: a sequence of actions in one reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlgym.parsers import PlanParser
from vlgym.parsers.plan_reply import MAX_ACTIONS
from vlgym.types import Parsed

parser = PlanParser()


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("up; up", "no_action"),
        ("</plan>", "no_action"),
        ("<plan>up; up", "unclosed_action"),
        ("<plan></plan>", "empty_action"),
        ("<plan> ; \n;</plan>", "empty_action"),
        ("<plan>1. ; 2) </plan>", "empty_action"),
    ],
)
def test_each_failure_has_its_code(text: str, failure: str) -> None:
    assert parser.parse(text) == Parsed(failure=failure)


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("<plan>up; turn left;up</plan>", ("up", "turn left", "up")),
        ("<PLAN>\n1. up\n2) left\n- right\n* down\n</PLAN>", ("up", "left", "right", "down")),
        ("<plan>up</plan> better: <plan>down</plan>", ("up",)),
        ("<plan>up</plan> <plan>down", ("up",)),
        ("<plan>up</plan></plan>", ("up",)),
        ("<plan>3.5; 24</plan>", ("3.5", "24")),
    ],
)
def test_actions_come_in_order_without_list_marks(text: str, actions: tuple[str, ...]) -> None:
    assert parser.parse(text).actions == actions


def test_a_plan_that_begins_with_no_legal_action_does_not_count_where_another_does() -> None:
    text = "<plan>ACTION; ACTION</plan> so <plan>up; jump</plan> <plan>down</plan>"
    assert parser.parse(text, ["up", "down"]).actions == ("up", "jump")
    assert parser.parse(text, ["left"]).actions == ("down",)


def test_a_long_plan_is_cut_off() -> None:
    assert len(parser.parse(f"<plan>{'up;' * 5000}</plan>").actions) == MAX_ACTIONS == 512


@given(st.lists(st.sampled_from(["<plan>", "</plan>", "up", ";", "\n", " ", "1. ", "é"]), max_size=25).map("".join))
def test_the_span_is_the_plan_that_was_read(text: str) -> None:
    parsed = parser.parse(text)
    if parsed.failure is None:
        assert parsed.span is not None
        start, end = parsed.span
        assert text[:start].endswith("<plan>")
        assert text[end:].startswith("</plan>")
        assert all(action in text[start:end] for action in parsed.actions)


@given(st.text(max_size=400))
def test_it_never_raises(text: str) -> None:
    assert parser.parse(text).failure or parser.parse(text).actions


def test_fifty_thousand_hostile_pieces_are_read_at_once() -> None:
    for piece in ["<plan>", "</plan>", "<plan>;</plan>", ";", "1. ", "<plan>a", " "]:
        assert len(parser.parse(piece * 50_000).actions) <= MAX_ACTIONS
        assert len(parser.parse(f"<plan>{piece * 50_000}</plan>").actions) <= MAX_ACTIONS


@given(
    st.lists(st.sampled_from(["up", "turn left", "pick up key 1", "(", "+"]), min_size=1, max_size=10),
    st.sampled_from(["", "I go."]),
)
def test_what_it_formats_it_reads_back(actions: list[str], thoughts: str) -> None:
    assert parser.parse(parser.format(actions, thoughts)).actions == tuple(actions)
