"""The stop rule: a reply is over after its shortest beginning with an action."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlgym.parsers import AutoParser, JsonParser, Parser, PlanParser, TagParser, find_end, read_reply

PIECES = {
    "auto": ["<action>", "</action>", "<ACTION>", "+", " ", "\n", "<", "＜action＞"],
    "tag": ["<action>", "</action>", "<ACTION>", "</Action>", "+", " ", "\n", "<", "é"],
    "plan": ["<plan>", "</plan>", "</PLAN>", "up", ";", "\n", " ", "1. ", "- "],
    "json": [
        '{"action": "+"}', '{"action": ', '"+"', "{", "}", '{"thoughts": "a}b", ', '"action": "-"', '""', "\n", "[]",
    ],
}  # fmt: skip
PARSERS: dict[str, Parser] = {"tag": TagParser(), "plan": PlanParser(), "json": JsonParser(), "auto": AutoParser()}


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_a_reply_is_over_after_the_shortest_beginning_that_is_read(name, data):
    parser = PARSERS[name]
    text = "".join(data.draw(st.lists(st.sampled_from(PIECES[name]), max_size=16)))
    readable = [n for n in range(len(text) + 1) if parser.parse(text[:n], None).failure is None]
    assert find_end(parser, text) == (readable[0] if readable else None)


@pytest.mark.parametrize(
    ("text", "action", "over"),
    [
        ("<think>maybe <action>-</action>", None, None),
        ("<Think>maybe <action>-</action> no</think> <action>+</action> so", "+", " so"),
        ("<think>a</think> <action>+</action> <think>or <action>-</action>", "+", " <think>or <action>-</action>"),
    ],
)
def test_what_stands_in_a_thought_is_no_action(text, action, over):
    read, end = read_reply(PARSERS["tag"], text), find_end(PARSERS["tag"], text)
    assert (read.actions[0] if read.actions else None) == action
    assert (None if end is None else text[end:]) == over
    assert read.span is None or text[slice(*read.span)] == action


HOSTILE = ["<action>", "</action>", "<action></action>", "<plan>;</plan>", "{", "}", '{"a":', "{}", "[", '"', "\\",
           '{"action": "x" ', "<think>", "</think>", "<think></think>", "<think>{"]  # fmt: skip


@pytest.mark.parametrize("name", PARSERS)
def test_a_hostile_text_neither_hangs_nor_overflows_the_stack(name: str) -> None:
    """A rule whose work grew with the square of the length would hang here."""
    for piece in HOSTILE:
        assert find_end(PARSERS[name], piece * 10_000) is None, piece


def test_a_parser_without_a_rule_never_says_that_a_reply_is_over() -> None:
    class Plain:
        name, version = "plain", 1
        parse, format, describe = TagParser.parse, TagParser.format, TagParser.describe

    assert find_end(Plain(), "<action>+</action>") is None
